package agentcore

import (
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/wire"
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

// A slot has a transition: the start of a state, or its explicit end. It is some words,
// of which the first four are these. Then comes one word for each field ([Word]).
// Neither is there a pointer in it, nor a gap between two slots: one goroutine writes
// them and another one reads them, so each cache line that they take costs.
const (
	slotMono = iota
	slotEarliest
	slotLatest
	slotMarks // markEnd, markAside, and above them the size
	slotHead  // how many there are

	markEnd   = 1 << 0
	markAside = 1 << 1 // the row is not in the slot
	markBits  = 2
)

// ring keeps the newest transitions. Each has a position, counted from 0 and never reused; the
// ring holds [first, next), whose numbers follow one another too. The newest is never dropped.
// It grows rather than drop an unreported one, and does not shrink.
type ring struct {
	schema scgs.Schema
	plain  bool
	packed []uint64 // the words of a row, for pack
	stride int      // words of a slot
	slots  uint64   // a power of two
	words  []uint64
	// aside has the rows of slots that are not plain: with texts, lists, or fields
	// without a value. Nil until there is one.
	aside [][]scgs.Value

	domain      clocksync.Domain // of all stamps
	first, next uint64
	bytes       int
}

// fit makes an empty ring for rows of a schema; positions continue.
func (r *ring) fit(schema scgs.Schema) {
	*r = ring{
		schema: schema, plain: Plain(schema), packed: make([]uint64, len(schema)), stride: slotHead + len(schema), slots: ringLeast,
		first: r.next, next: r.next,
	}
	r.words = make([]uint64, ringLeast*r.stride)
}

func (r *ring) at(position uint64) []uint64 {
	i := int(position&(r.slots-1)) * r.stride //nolint:gosec // Below RingTransitions.
	return r.words[i : i+r.stride : i+r.stride]
}

// push adds the start of a state with a copy of its row, which is plain if there are
// words. Transitions at the positions below told may be dropped for it while the ring
// can still grow.
func (r *ring) push(at *clocksync.Stamp, row []scgs.Value, words []uint64, told uint64) {
	if words == nil {
		r.put(at, sizeOf(row), markAside, told)
		r.keep(row)
		return
	}
	copy(r.put(at, plainSize(len(words)), 0, told)[slotHead:], words)
}

// end adds an end.
func (r *ring) end(at *clocksync.Stamp, told uint64) { r.put(at, plainSize(0), markEnd, told) }

// put adds a transition without its row.
func (r *ring) put(at *clocksync.Stamp, size int, marks, told uint64) []uint64 {
	for r.full(size) {
		if r.first >= told && r.slots < RingTransitions {
			r.grow()
		} else {
			r.drop()
		}
	}
	slot := r.at(r.next)
	slot[slotMono], slot[slotEarliest], slot[slotLatest] = uint64(at.Mono), uint64(at.Within.Earliest), uint64(at.Within.Latest) //nolint:gosec // Their bits.
	slot[slotMarks] = uint64(size)<<markBits | marks                                                                             //nolint:gosec // It is above 0.
	r.domain = at.Domain
	r.next++
	r.bytes += size
	return slot
}

// keep keeps the row of the newest transition.
func (r *ring) keep(row []scgs.Value) {
	if r.aside == nil {
		r.aside = make([][]scgs.Value, r.slots)
	}
	i := (r.next - 1) & (r.slots - 1)
	r.aside[i] = append(r.aside[i][:0], row...)
}

// full reports whether there is no room for a transition of that size.
func (r *ring) full(size int) bool {
	n := r.next - r.first
	return n == r.slots || n > 0 && r.bytes+size > int(r.slots)*slotBytes //nolint:gosec // At most RingTransitions.
}

func (r *ring) grow() {
	old := *r
	r.slots *= 2
	r.words = make([]uint64, int(r.slots)*r.stride) //nolint:gosec // At most RingTransitions.
	if old.aside != nil {
		r.aside = make([][]scgs.Value, r.slots)
	}
	for p := r.first; p < r.next; p++ {
		copy(r.at(p), old.at(p))
		if old.aside != nil {
			r.aside[p&(r.slots-1)] = old.aside[p&(old.slots-1)]
		}
	}
}

func (r *ring) drop() {
	r.bytes -= int(r.at(r.first)[slotMarks] >> markBits) //nolint:gosec // It was an int.
	r.first++
}

// report fills a report but for its number with the transition at a position, and its row
// from the front of rows; the rest of these is returned.
func (r *ring) report(position uint64, to *wire.Report, rows []scgs.Value) []scgs.Value {
	slot := r.at(position)
	to.At.Domain, to.At.Mono = r.domain, instant(slot[slotMono])
	to.At.Within.Earliest, to.At.Within.Latest = instant(slot[slotEarliest]), instant(slot[slotLatest])
	to.End, to.Row = slot[slotMarks]&markEnd != 0, nil
	if to.End {
		return rows
	}
	n := len(r.schema)
	to.Row = rows[:n:n]
	if slot[slotMarks]&markAside != 0 {
		copy(to.Row, r.aside[position&(r.slots-1)])
	} else {
		r.unpack(to.Row, slot[slotHead:])
	}
	return rows[n:]
}

func instant(word uint64) clocksync.Instant { return clocksync.Instant(word) } //nolint:gosec // Its bits.

// newest replaces a row by the row of the newest transition, which is no end.
func (r *ring) newest(row []scgs.Value) []scgs.Value {
	var newest wire.Report
	row = resizeSlice(row, len(r.schema))
	r.report(r.next-1, &newest, row)
	return row
}

// resizeSlice makes a slice one of n items, whatever these are.
func resizeSlice[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }

// ended reports whether the newest transition is an end.
func (r *ring) ended() bool { return r.next > r.first && r.at(r.next - 1)[slotMarks]&markEnd != 0 }

// clear forgets everything; positions continue.
func (r *ring) clear() { r.first, r.bytes = r.next, 0 }

// oldest is the number of the oldest transition kept, given the number of the last one ever.
// The numbers between are kept without a gap.
func (r *ring) oldest(last uint64) uint64 { return last + 1 - (r.next - r.first) }

// find returns the position of the transition with a number, or of the oldest
// kept if that is gone; next for those to come.
func (r *ring) find(seq, last uint64) uint64 {
	if oldest := r.oldest(last); seq > oldest {
		return min(r.first+seq-oldest, r.next)
	}
	return r.first
}

// plainSize bounds the encoded size of a plain transition from above: number, three
// instants and flags, then at most nine bytes a value.
func plainSize(fields int) int { return 48 + 9*fields }

// sizeOf bounds the size of any transition: texts come on top, and the same again for each
// element of a list.
func sizeOf(row []scgs.Value) int {
	size := plainSize(len(row))
	for i := range row {
		v := &row[i]
		size += len(v.Text())
		if !v.Type().IsList() {
			continue
		}
		for j := range v.Len() {
			size += 9 + len(v.At(j).Text())
		}
	}
	return size
}

// Held is how many transitions the ring holds, and the state that is to begin again.
func (c *Core) Held() uint64 {
	n := c.ring.next - c.ring.first
	if c.reopen {
		n++
	}
	return n
}
