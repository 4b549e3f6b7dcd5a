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

// transition is the start of a state, or its explicit end.
type transition struct {
	seq  uint64
	end  bool
	at   clocksync.Stamp
	row  []scgs.Value
	size int
}

// ring keeps the newest transitions. Each has a position, counted from 0 and
// never reused; the ring holds [first, next). The newest is never dropped.
type ring struct {
	slots       [RingTransitions]transition
	first, next uint64
	bytes       int
}

func (r *ring) at(position uint64) *transition { return &r.slots[position%RingTransitions] }

// push adds a transition with a copy of the row.
func (r *ring) push(seq uint64, end bool, at clocksync.Stamp, row []scgs.Value) {
	if r.next-r.first == RingTransitions {
		r.drop()
	}
	t := r.at(r.next)
	t.seq, t.end, t.at = seq, end, at
	t.row = append(t.row[:0], row...)
	t.size = sizeOf(row)
	r.next++
	r.bytes += t.size
	for r.bytes > RingBytes && r.next-r.first > 1 {
		r.drop()
	}
}

// drop forgets the oldest transition. A start does not stay without the end of
// the state before it: whoever knew that state would take it to have lasted
// until the start.
func (r *ring) drop() {
	end := r.at(r.first).end
	r.bytes -= r.at(r.first).size
	r.first++
	if end && r.next-r.first > 1 {
		r.drop()
	}
}

// clear forgets everything; positions go on.
func (r *ring) clear() { r.first, r.bytes = r.next, 0 }

// find returns the position of the first start kept that is not below seq, or
// next.
func (r *ring) find(seq uint64) uint64 {
	for p := r.first; p < r.next; p++ {
		if t := r.at(p); !t.end && t.seq >= seq {
			return p
		}
	}
	return r.next
}

// lead steps back to an explicit end right before a position: it travels
// together with what follows it, so that it cannot be lost alone.
func (r *ring) lead(p uint64) uint64 {
	if p > r.first && r.at(p-1).end {
		return p - 1
	}
	return p
}

// oldest is the first state whose start the ring still holds, given the last one
// that began.
func (r *ring) oldest(last uint64) uint64 {
	if p := r.find(0); p < r.next {
		return r.at(p).seq
	}
	return last + 1
}

// sizeOf bounds the encoded size of a transition from above: number, three
// instants and flags, then at most nine bytes and the text a value.
func sizeOf(row []scgs.Value) int {
	size := 48
	for _, v := range row {
		size += 9 + len(v.Text())
	}
	return size
}
