package agentcore

import (
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// The limits of the resend ring: whichever is reached first. No more transitions
// than a detector lets wait for the other members.
const (
	RingTransitions = 1024
	RingBytes       = RingTransitions * slotBytes

	ringLeast = 256 // transitions that are kept in any case
	slotBytes = 256 // of the rows, on average
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
// never reused; the ring holds [first, next). The newest is never dropped. It grows
// when one would be dropped that nobody was told, and stays as large as it is.
type ring struct {
	slots       []transition     // a power of two
	domain      clocksync.Domain // of all stamps
	first, next uint64
	bytes       int
}

func newRing() ring { return ring{slots: make([]transition, ringLeast)} }

func (r *ring) at(position uint64) *transition {
	return &r.slots[position&uint64(len(r.slots)-1)]
}

// push adds a transition with a copy of the row. Those at the positions below told
// may be dropped for it while the ring can still grow.
func (r *ring) push(seq uint64, end bool, at *clocksync.Stamp, row []scgs.Value, told uint64) {
	size := sizeOf(row)
	for r.full(size) {
		if r.first >= told && len(r.slots) < RingTransitions {
			r.grow()
		} else {
			r.drop()
		}
	}
	t := r.at(r.next)
	t.seq, t.end, t.mono, t.within = seq, end, at.Mono, at.Within
	t.row = append(t.row[:0], row...)
	t.size = int32(size) //nolint:gosec // Rows are far smaller.
	r.domain = at.Domain
	r.next++
	r.bytes += size
}

// full reports whether there is no room for a transition of that size.
func (r *ring) full(size int) bool {
	n, limit := int(r.next-r.first), len(r.slots) //nolint:gosec // At most RingTransitions.
	return n == limit || n > 0 && r.bytes+size > limit*slotBytes
}

func (r *ring) grow() {
	old := *r
	r.slots = make([]transition, 2*len(old.slots))
	for p := r.first; p < r.next; p++ {
		*r.at(p) = *old.at(p)
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
