package scgs

import "github.com/gopegasus/pegasus/clocksync"

// possibleStates sweeps along reference time and holds, for the instant it has
// reached, the states that each member may be in. A state from S to T may be the
// current one at t if lo(S) <= t < hi(T), as it is held on [S, T). Only stamps
// constrain the members, so at one instant each may be in any state of its own
// window, whatever the others are in: the global states possible there are all
// combinations. (Of members in one clock domain some are excluded by their
// readings; those are kept, so nothing possible is missed.)
//
// Where nothing is known of a member its window holds an UNKNOWN: before its
// first report, after its End, from the newest evidence before a loss to the
// first report after it.
//
// What holds at an instant is final once every member's newest stamp is later in
// its lo, as what follows starts no earlier and what is open ends no earlier.
type possibleStates struct {
	maxPending int
	nothing    candidate // an UNKNOWN
	members    []window
	free       []Member // removed, to be given out again, last first
	tree       []mark   // node i is the least of nodes 2i and 2i+1; the second half are the members
	reached    clocksync.Instant
	until      clocksync.Instant // no later event begins before it
	epoch      uint64
	index      uint64 // of the newest event of the epoch
	finished   bool
	released   []Ref
	stats      Stats
}

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
	lost       bool // given up: taken as UNKNOWN, and not waited for
}

// candidate is a local state, or an UNKNOWN, as long as it may be the current one.
type candidate struct {
	mono      clocksync.Instant // reading of the start
	from      clocksync.Instant // lo(S)
	to        clocksync.Instant // hi(T), or MaxInstant while nothing bounds the end
	low, high float64           // between what the value is
	ref       Ref
	unknown   bool
}

// mark is what orders the sweep: up to where a member's window is final, and when
// it changes next.
type mark struct {
	final, next clocksync.Instant
}

var idle = mark{clocksync.MaxInstant, clocksync.MaxInstant}

func (a mark) least(b mark) mark { return mark{min(a.final, b.final), min(a.next, b.next)} }

func newPossibleStates(maxPending int, low, high float64) possibleStates {
	if maxPending <= 0 {
		maxPending = defaultMaxPending
	}
	return possibleStates{
		maxPending: maxPending,
		nothing:    candidate{low: low, high: high, unknown: true},
		reached:    clocksync.MinInstant,
		until:      clocksync.MinInstant,
	}
}

// begin begins an epoch, at the first instant left.
func (w *possibleStates) begin(id uint64, remove []Member, add []Spec) []Member {
	for _, m := range remove {
		if win := w.find(m); win != nil {
			for i := range win.candidates.n {
				w.release(win.candidates.at(i).ref)
			}
			*win = window{}
			w.free = append(w.free, m)
		}
	}
	added := make([]Member, 0, len(add))
	for _, s := range add {
		added = append(added, w.join(s))
	}
	w.epoch, w.index = id, 0
	w.tree = make([]mark, 2*len(w.members))
	w.review()
	return added
}

func (w *possibleStates) join(s Spec) Member {
	m := Member(len(w.members))
	if n := len(w.free); n > 0 {
		m, w.free = w.free[n-1], w.free[:n-1]
	} else {
		w.members = append(w.members, window{})
	}
	win := &w.members[m]
	*win = window{stampOrder: newStampOrder(s.Domain), alive: true}
	win.open(w.nothing)
	return m
}

// review rebuilds the tree.
func (w *possibleStates) review() {
	n := len(w.members)
	for m := range w.members {
		w.tree[n+m] = w.mark(&w.members[m])
	}
	for i := n - 1; i > 0; i-- {
		w.tree[i] = w.tree[2*i].least(w.tree[2*i+1])
	}
}

func (w *possibleStates) mark(win *window) mark {
	if !win.alive {
		return idle
	}
	k := mark{win.last.lo, clocksync.MaxInstant}
	if win.lost || w.finished {
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

// refresh brings the tree up to date after the member's window changed.
func (w *possibleStates) refresh(m Member) {
	k := len(w.tree)/2 + int(m)
	w.tree[k] = w.mark(&w.members[m])
	for k /= 2; k > 0; k /= 2 {
		v := w.tree[2*k].least(w.tree[2*k+1])
		if v == w.tree[k] {
			return
		}
		w.tree[k] = v
	}
}

// upcoming is the next instant at which a window changes, or before the first
// event of an epoch the first one left.
func (w *possibleStates) upcoming() clocksync.Instant {
	if w.index == 0 {
		return w.until
	}
	return max(w.until, w.tree[1].next)
}

// advance goes on to the upcoming instant. It returns false if what holds then is
// not final yet. While it returns true, all of due must be windowChange before the next
// call.
func (w *possibleStates) advance() bool {
	if len(w.members) == len(w.free) {
		return false
	}
	at, final := w.upcoming(), w.tree[1].final
	switch {
	case at < final:
		w.reached, w.until = at, at+1
		return true
	case final != clocksync.MaxInstant: // else it rests on promises and members given up alone
		w.until = max(w.until, final)
	}
	return false
}

// due returns a member whose window is not yet at the instant reached, or none.
func (w *possibleStates) due() Member {
	if w.tree[1].next > w.reached {
		return none
	}
	k := 1
	for k < len(w.tree)/2 {
		k *= 2
		if w.tree[k].next > w.reached {
			k++
		}
	}
	return Member(k - len(w.tree)/2)
}

// windowChange says how a window changed: the candidates from number first on are
// new in it, and some may have left it. If it was rebuilt, numbers may stand for
// other candidates.
type windowChange struct {
	member        Member
	first         uint64
	left, rebuilt bool
}

// shift brings the member's window to the instant reached.
func (w *possibleStates) shift(m Member) windowChange {
	win := &w.members[m]
	c := windowChange{member: m, first: win.base + uint64(win.in), rebuilt: win.in == 0}
	for win.in < win.candidates.n && win.candidates.at(win.in).from <= w.reached {
		win.in++
	}
	for win.candidates.front().to <= w.reached {
		w.release(win.candidates.front().ref)
		win.candidates.pop()
		win.in--
		win.base++
		c.left = true
	}
	w.refresh(m)
	return c
}

// candidate returns the candidate of that number.
func (win *window) candidate(number uint64) *candidate {
	return win.candidates.at(int32(number - win.base))
}

func (w *possibleStates) find(m Member) *window {
	if m < 0 || int(m) >= len(w.members) || !w.members[m].alive || w.finished {
		return nil
	}
	return &w.members[m]
}

func (w *possibleStates) release(r Ref) {
	if r != 0 {
		w.released = append(w.released, r)
	}
}
