package agentcore

import (
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// The limits of the resend ring: whichever is reached first.
const (
	RingTransitions = 256
	RingBytes       = 64 << 10
)

// transition is the start of a state, or its explicit end. It takes one cache line:
// one goroutine writes it and another one reads it.
type transition struct {
	seq    uint64
	mono   clocksync.Instant
	within clocksync.Interval
	row    []scgs.Value
	size   int32
	end    bool
}

// ring keeps the newest transitions. Each has a position, counted from 0 and
// never reused; the ring holds [first, next). The newest is never dropped.
type ring struct {
	slots       [RingTransitions]transition
	domain      clocksync.Domain // of all stamps
	first, next uint64
	bytes       int
}

func (r *ring) at(position uint64) *transition { return &r.slots[position%RingTransitions] }

// push adds a transition with a copy of the row.
func (r *ring) push(seq uint64, end bool, at *clocksync.Stamp, row []scgs.Value) {
	if r.next-r.first == RingTransitions {
		r.drop()
	}
	t := r.at(r.next)
	t.seq, t.end, t.mono, t.within = seq, end, at.Mono, at.Within
	t.row = append(t.row[:0], row...)
	t.size = int32(sizeOf(row)) //nolint:gosec // Rows are far smaller.
	r.domain = at.Domain
	r.next++
	r.bytes += int(t.size)
	for r.bytes > RingBytes && r.next-r.first > 1 {
		r.drop()
	}
}

func (r *ring) drop() {
	r.bytes -= int(r.at(r.first).size)
	r.first++
}

// newest is the row of the newest transition, of which there is one.
func (r *ring) newest() []scgs.Value { return r.at(r.next - 1).row }

// clear forgets everything; positions go on.
func (r *ring) clear() { r.first, r.bytes = r.next, 0 }

// oldest is the number of the oldest transition kept, given that of the last one
// ever. The numbers between are kept without a gap.
func (r *ring) oldest(last uint64) uint64 { return last + 1 - (r.next - r.first) }

// find returns the position of the transition with a number, or of the oldest
// kept if that is gone; next for those to come.
func (r *ring) find(seq, last uint64) uint64 {
	if oldest := r.oldest(last); seq > oldest {
		return min(r.first+seq-oldest, r.next)
	}
	return r.first
}

// sizeOf bounds the encoded size of a transition from above: number, three
// instants and flags, then at most nine bytes and the text a value, and the same
// again for each element of a list.
func sizeOf(row []scgs.Value) int {
	size := 48
	for i := range row {
		v := &row[i]
		size += 9 + len(v.Text())
		if !v.Type().IsList() {
			continue
		}
		for j := range v.Len() {
			size += 9 + len(v.At(j).Text())
		}
	}
	return size
}

// Held is how many transitions the ring holds.
func (c *Core) Held() uint64 { return c.ring.next - c.ring.first }
