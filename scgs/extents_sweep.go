package scgs

import "github.com/gopegasus/pegasus/clocksync"

// Extents sweeps along reference time and holds, for the instant it has reached,
// the states that each member may be in. A state from S to T may be the current
// one at t if lo(S) <= t < hi(T), as it is held on [S, T). Only stamps constrain
// the members, so at one instant each may be in any state of its own window,
// whatever the others are in: the global states possible there are all
// combinations. (Of members in one clock domain some are excluded by their
// readings; those are kept, so nothing possible is missed.)
//
// Where nothing is known of a member its window holds an UNKNOWN: before its
// first report, after its End, from the newest evidence before a loss to the
// first report after it.
//
// What holds at an instant is final once every member's newest stamp is later in
// its lo, as what follows starts no earlier and what is open ends no earlier.

// window is one member's states, from the oldest that is still possible at the
// instant reached to the newest report. Neither from nor to decreases along
// them, and each begins no later than the one before it ends, so that the window
// proper, the first in of them, is empty only until the next shift, when the
// member is new or its candidates were collapsed.
type window struct {
	stampOrder
	candidates ring[candidate]
	in         int32
	base       uint64 // number of the first candidate, counted from when the member joined
	alive      bool
	lost       bool       // given up: taken as UNKNOWN, and not waited for
	low, high  slidingMax // of the window proper: the low ends, negated, and the high ones
}

// candidate is a local state, or an UNKNOWN, as long as it may be the current one.
type candidate struct {
	mono      clocksync.Instant // reading of the start
	from      clocksync.Instant // lo(S)
	to        clocksync.Instant // hi(T), or MaxInstant while nothing bounds the end
	low, high float64           // between what the value is
	unknown   bool
}

// mark is what orders the sweep: up to where a member's window is final, and when
// it changes next.
type mark struct {
	final, next clocksync.Instant
}

var idle = mark{clocksync.MaxInstant, clocksync.MaxInstant}

func (a mark) least(b mark) mark { return mark{min(a.final, b.final), min(a.next, b.next)} }

func (e *Extents) joinMember(s Spec) Member {
	m := Member(len(e.members))
	if n := len(e.free); n > 0 {
		m, e.free = e.free[n-1], e.free[:n-1]
	} else {
		e.members = append(e.members, window{})
	}
	win := &e.members[m]
	*win = window{stampOrder: newStampOrder(s.Domain), alive: true}
	win.openUnknown(e.nothing)
	return m
}

// rebuildTrees rebuilds the trees.
func (e *Extents) rebuildTrees() {
	n := len(e.members)
	for m := range e.members {
		e.marks[n+m], e.tree[n+m] = e.mark(&e.members[m]), e.members[m].extremesOf()
	}
	for i := n - 1; i > 0; i-- {
		e.marks[i] = e.marks[2*i].least(e.marks[2*i+1])
		e.tree[i].joinExtremes(&e.tree[2*i], &e.tree[2*i+1])
	}
}

func (e *Extents) mark(win *window) mark {
	if !win.alive {
		return idle
	}
	k := mark{win.last.lo, clocksync.MaxInstant}
	if win.lost || e.finished {
		k.final = clocksync.MaxInstant
	}
	if win.in > 0 {
		k.next = win.candidates.front().to
	}
	if win.in < win.candidates.n {
		k.next = min(k.next, win.candidates.at(win.in).from)
	}
	return k
}

// refreshTree brings the tree up to date after the member's window changed.
func (e *Extents) refreshTree(m Member) {
	k := len(e.marks)/2 + int(m)
	e.marks[k] = e.mark(&e.members[m])
	for k /= 2; k > 0; k /= 2 {
		v := e.marks[2*k].least(e.marks[2*k+1])
		if v == e.marks[k] {
			return
		}
		e.marks[k] = v
	}
}

// nextInstant is the next instant at which a window changes, or before the first
// event of an epoch the first one left.
func (e *Extents) nextInstant() clocksync.Instant {
	if e.index == 0 {
		return e.until
	}
	return max(e.until, e.marks[1].next)
}

// advanceInstant advances to the upcoming instant. It returns false if what holds then is not
// final yet. While it returns true, all of due must be shifted before the next call.
func (e *Extents) advanceInstant() bool {
	if len(e.members) == len(e.free) {
		return false
	}
	at, final := e.nextInstant(), e.marks[1].final
	switch {
	case at < final:
		e.reached, e.until = at, at+1
		return true
	case final != clocksync.MaxInstant: // else it rests on promises and members given up alone
		e.until = max(e.until, final)
	}
	return false
}

// findDue returns a member whose window is not yet at the instant reached, or none.
func (e *Extents) findDue() Member {
	if e.marks[1].next > e.reached {
		return none
	}
	k := 1
	for k < len(e.marks)/2 {
		k *= 2
		if e.marks[k].next > e.reached {
			k++
		}
	}
	return Member(k - len(e.marks)/2)
}

// shiftWindow brings the member's window to the instant reached.
func (e *Extents) shiftWindow(m Member) {
	win := &e.members[m]
	if win.in == 0 {
		win.low.n, win.high.n = 0, 0
	}
	for ; win.in < win.candidates.n && win.candidates.at(win.in).from <= e.reached; win.in++ {
		s, number := win.candidates.at(win.in), win.base+uint64(win.in)
		win.low.pushValue(number, -s.low)
		win.high.pushValue(number, s.high)
	}
	for win.candidates.front().to <= e.reached {
		win.candidates.pop()
		win.in--
		win.base++
	}
	e.refreshTree(m)
	e.setLeaf(m, win.extremesOf())
}

func (e *Extents) findWindow(m Member) *window {
	if m < 0 || int(m) >= len(e.members) || !e.members[m].alive || e.finished {
		return nil
	}
	return &e.members[m]
}
