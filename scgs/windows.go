package scgs

import "github.com/gopegasus/pegasus/clocksync"

// windows goes along reference time and keeps, for the instant that it has
// reached, the states that each member may be in. A state from S to T may be the
// current one at t if lo(S) <= t < hi(T), as it is held on [S, T). Stamps and
// nothing else bind the members, so at one instant each may be in any state of
// its own window, whatever the others are in: the global states possible there
// are all combinations. (Of members in one clock domain some are excluded by
// their readings; those are kept, so nothing possible is missed.)
//
// Where nothing is known of a member its window holds an UNKNOWN: before its
// first report, after its End, from the newest evidence before a loss to the
// first report after it.
//
// What holds at an instant is final once every member's newest stamp is later in
// its lo, as what follows starts no earlier and what is open ends no earlier.
type windows struct {
	maxPending int
	nothing    spell // an UNKNOWN
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
// member is new or its spells were collapsed.
type window struct {
	track
	spells ring[spell]
	in     int32
	base   uint64 // number of the first spell, counted from when the member joined
	alive  bool
	lost   bool // given up: UNKNOWN by fiat, and nobody waits for it
}

// spell is a local state, or an UNKNOWN, as long as it may be the current one.
type spell struct {
	mono      clocksync.Instant // reading of the start
	from      clocksync.Instant // lo(S)
	to        clocksync.Instant // hi(T), or MaxInstant while nothing bounds the end
	low, high float64           // between what the value is
	ref       Ref
	unknown   bool
}

// mark is what the order of the sweep needs of a member: up to where its window
// is final, and when it changes next.
type mark struct {
	final, next clocksync.Instant
}

var idle = mark{clocksync.MaxInstant, clocksync.MaxInstant}

func (a mark) least(b mark) mark { return mark{min(a.final, b.final), min(a.next, b.next)} }

func newWindows(maxPending int, low, high float64) windows {
	if maxPending <= 0 {
		maxPending = defaultMaxPending
	}
	return windows{
		maxPending: maxPending,
		nothing:    spell{low: low, high: high, unknown: true},
		reached:    clocksync.MinInstant,
		until:      clocksync.MinInstant,
	}
}

// begin begins an epoch, at the first instant left.
func (w *windows) begin(id uint64, remove []Member, add []Spec) []Member {
	for _, m := range remove {
		if win := w.find(m); win != nil {
			for i := range win.spells.n {
				w.release(win.spells.at(i).ref)
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

func (w *windows) join(s Spec) Member {
	m := Member(len(w.members))
	if n := len(w.free); n > 0 {
		m, w.free = w.free[n-1], w.free[:n-1]
	} else {
		w.members = append(w.members, window{})
	}
	win := &w.members[m]
	*win = window{track: newTrack(s.Domain), alive: true}
	win.open(w.nothing)
	return m
}

// review makes the tree anew.
func (w *windows) review() {
	n := len(w.members)
	for m := range w.members {
		w.tree[n+m] = w.mark(&w.members[m])
	}
	for i := n - 1; i > 0; i-- {
		w.tree[i] = w.tree[2*i].least(w.tree[2*i+1])
	}
}

func (w *windows) mark(win *window) mark {
	if !win.alive {
		return idle
	}
	k := mark{win.last.lo, clocksync.MaxInstant}
	if win.lost || w.finished {
		k.final = clocksync.MaxInstant
	}
	if win.in > 0 {
		k.next = win.spells.front().to
	}
	if win.in < win.spells.n {
		k.next = min(k.next, win.spells.at(win.in).from)
	}
	return k
}

// refresh brings the tree up to date after the member's window changed.
func (w *windows) refresh(m Member) {
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
func (w *windows) upcoming() clocksync.Instant {
	if w.index == 0 {
		return w.until
	}
	return max(w.until, w.tree[1].next)
}

// advance goes on to the upcoming instant. It returns false if what holds then is
// not final yet. While it returns true, all of due must be shifted before the next
// call.
func (w *windows) advance() bool {
	if len(w.members) == len(w.free) {
		return false
	}
	at, final := w.upcoming(), w.tree[1].final
	switch {
	case at < final:
		w.reached, w.until = at, at+1
		return true
	case final != clocksync.MaxInstant: // else it rests on promises and UNKNOWN by fiat alone
		w.until = max(w.until, final)
	}
	return false
}

// due returns a member whose window is not yet at the instant reached, or none.
func (w *windows) due() Member {
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

// shifted says how a window changed: the spells from number first on are new in
// it, and some may have left it. If it is anew, numbers may have other spells.
type shifted struct {
	member     Member
	first      uint64
	left, anew bool
}

// shift brings the member's window to the instant reached.
func (w *windows) shift(m Member) shifted {
	win := &w.members[m]
	c := shifted{member: m, first: win.base + uint64(win.in), anew: win.in == 0}
	for win.in < win.spells.n && win.spells.at(win.in).from <= w.reached {
		win.in++
	}
	for win.spells.front().to <= w.reached {
		w.release(win.spells.front().ref)
		win.spells.pop()
		win.in--
		win.base++
		c.left = true
	}
	w.refresh(m)
	return c
}

// spell returns the spell of that number.
func (win *window) spell(number uint64) *spell { return win.spells.at(int32(number - win.base)) }

func (w *windows) find(m Member) *window {
	if m < 0 || int(m) >= len(w.members) || !w.members[m].alive || w.finished {
		return nil
	}
	return &w.members[m]
}

func (w *windows) release(r Ref) {
	if r != 0 {
		w.released = append(w.released, r)
	}
}
