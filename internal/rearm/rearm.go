// Package rearm decides whether a threshold, "at least k members are in a run", that is found true
// again is a new alarm. It is, if between the two sets fewer than k members certainly were in a run.
//
// Which sets a detector finds on the way depends on whose evidence arrives first; when the threshold is
// reached does not. So a set that only grew is no new alarm.
//
// The newest state that is known of a member counts until the next one arrives: a run that is open
// continues, and a member that has told of no run is in none. So no alarm waits for a member that was
// in no run when it was cut off.
package rearm

import (
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// PastRuns is how many runs of a member that have ended a threshold keeps. Without older ones a set may
// fire twice.
const PastRuns = 8

// firedSets is how many sets that have fired are kept, with the same effect.
const firedSets = 16

// Runs finds the open run of a member.
type Runs interface {
	Run(m scgs.Member) (scgs.Part, bool)
}

// Threshold is a record of the runs of a threshold's members. It is used by one goroutine.
type Threshold struct {
	k     int
	open  Runs
	past  [][]scgs.Part // by member: its newest runs that have ended, oldest first
	fired []set         // the newest sets that have fired, oldest first
	edges uint64        // how many runs have begun and ended

	all   []scgs.Part // the runs that were known when edges was of
	turns []turn      // their starts and ends, clock by clock
	of    uint64
	both  []scgs.Part // scratch
	left  []int       // scratch
	seen  []uint64    // by member: the last count that it was in
	mark  uint64      // numbers those counts
}

// set is a set that has fired, with the ends of its runs as they become known.
type set []scgs.Part

// turn is the start or the end of a run, where the number of members in a run changes.
type turn struct {
	instant
	level level // whether fewer than k members can be in a run there
}

type level uint8

const (
	unknown level = iota // not counted yet
	low
	high
)

// New makes a threshold of k members.
func New(k int, open Runs) *Threshold { return &Threshold{k: k, open: open} }

// Edges counts the runs that have begun and ended: only they can make an alarm of a set that is none.
func (t *Threshold) Edges() uint64 { return t.edges }

// Enter makes a place for a member, which takes the number of a member that has left, or a new
// one.
func (t *Threshold) Enter(m scgs.Member) {
	if n := int(m) + 1 - len(t.past); n > 0 {
		t.past, t.seen = append(t.past, make([][]scgs.Part, n)...), append(t.seen, make([]uint64, n)...)
	}
	t.past[m] = nil
	t.edges++
}

// Start notes a report of a member that is in a run: if the run began with it, that is an edge.
func (t *Threshold) Start(m scgs.Member, seq uint64) {
	if p, open := t.open.Run(m); open && p.Seq == seq {
		t.edges++
	}
}

// End keeps a run that has ended.
func (t *Threshold) End(p *scgs.Part) {
	t.edges++
	past := &t.past[p.Member]
	if len(*past) == PastRuns {
		*past = (*past)[:copy(*past, (*past)[1:])]
	}
	*past = append(*past, *p)
}

// Leave ends the runs of members that leave.
func (t *Threshold) Leave(members []scgs.Member) {
	for _, m := range members {
		if p, open := t.open.Run(m); open {
			p.Open = false
			t.End(&p)
		}
	}
	for _, s := range t.fired {
		t.update(s)
		for i := range s {
			if p := &s[i]; slices.Contains(members, p.Member) {
				p.Open = false // Its number is given to others.
			}
		}
	}
}

// Fire keeps a set that has fired. The runs are in the order of their members.
func (t *Threshold) Fire(runs []scgs.Part) {
	same := func(a, b scgs.Part) bool { return a.Member == b.Member && a.Seq == b.Seq }
	t.fired = slices.DeleteFunc(t.fired, func(s set) bool { return slices.EqualFunc(s, runs, same) })
	if len(t.fired) == firedSets {
		t.fired = slices.Delete(t.fired, 0, 1)
	}
	t.fired = append(t.fired, slices.Clone(runs))
}

// Forget forgets all that has fired.
func (t *Threshold) Forget() { t.fired = nil }

// HasFired reports whether a set is kept that has fired.
func (t *Threshold) HasFired() bool { return len(t.fired) > 0 }

// update brings the ends of a set's runs up to date.
func (t *Threshold) update(s set) {
	for i := range s {
		p := &s[i]
		if !p.Open {
			continue
		}
		if now, open := t.open.Run(p.Member); open && now.Seq == p.Seq {
			p.End = now.End
			continue
		}
		p.Open = false // Of a run that is not kept the newest evidence that was known counts.
		past := t.past[p.Member]
		if i := slices.IndexFunc(past, func(q scgs.Part) bool { return q.Seq == p.Seq }); i >= 0 {
			p.End = past[i].End
		}
	}
}

// Answer is what a set is beside those that have fired.
type Answer uint8

// The answers.
const (
	Alarm   Answer = iota // the set is a new alarm
	Grown                 // the set and a set that has fired certainly held together: it never will be an alarm
	Perhaps               // it is not certain that the threshold was left in between
)

// Ask tells whether a set is a new alarm. It costs a look at each run that is known for each start and end that can lie
// between two sets, once until a run begins or ends.
func (t *Threshold) Ask(runs []scgs.Part) Answer {
	t.left = t.left[:0] // Those that it is not certainly apart from, the newest first.
	for i, s := range slices.Backward(t.fired) {
		t.update(s)
		t.both = append(append(t.both[:0], s...), runs...)
		if together(t.both) {
			return Grown
		}
		t.left = append(t.left, i)
	}
	t.collect()
	for len(t.left) > 0 { // What parts the newest from this one mostly parts the older ones too.
		at, ok := t.parts(t.fired[t.left[0]], runs)
		if !ok {
			return Perhaps
		}
		this := extentOf(runs, at.Domain)
		t.left = slices.DeleteFunc(t.left, func(i int) bool { return at.between(extentOf(t.fired[i], at.Domain), this) })
	}
	return Alarm
}

// together reports whether all runs certainly held at one instant.
func together(runs []scgs.Part) bool {
	span := scgs.SpanOf(runs)
	if span.SameClock {
		return span.MonoFrom < span.MonoTo
	}
	return span.HasCore
}

// parts finds an instant between two sets at which fewer than k members were in a run.
func (t *Threshold) parts(a, b []scgs.Part) (at instant, ok bool) {
	window := noWindow.with(a).with(b)
	var one, other extent
	var seen bool // one and other are of the clock of the turn
	for i := range t.turns {
		turn := &t.turns[i]
		seen = seen && turn.Domain == t.turns[i-1].Domain
		if turn.level == high || !window.has(&turn.Stamp) {
			continue
		}
		if !seen {
			one, other, seen = extentOf(a, turn.Domain), extentOf(b, turn.Domain), true
		}
		if !turn.between(one, other) {
			continue
		}
		if turn.level == unknown {
			if turn.level = high; t.below(turn.instant) {
				turn.level = low
			}
		}
		if turn.level == low {
			return turn.instant, true
		}
	}
	return at, false
}

// extent is the first end and the last start of a set's runs: those that were measured by one clock
// by its readings, the others by reference time.
type extent struct{ monoEnd, end, monoStart, start clocksync.Instant }

func extentOf(runs []scgs.Part, clock clocksync.Domain) extent {
	e := extent{clocksync.MaxInstant, clocksync.MaxInstant, clocksync.MinInstant, clocksync.MinInstant}
	for i := range runs {
		p := &runs[i]
		if p.Start.Domain == clock {
			e.monoStart = max(e.monoStart, p.Start.Mono)
		} else {
			e.start = max(e.start, p.Start.Within.Earliest)
		}
		switch {
		case p.Open:
		case p.End.Domain == clock:
			e.monoEnd = min(e.monoEnd, p.End.Mono)
		default:
			e.end = min(e.end, p.End.Within.Latest)
		}
	}
	return e
}

// window is when an instant can lie that parts one set from another: a run of either has ended and a run of the
// other has not begun. It spares a look at runs of long ago.
type window struct{ from, to clocksync.Instant }

var noWindow = window{clocksync.MaxInstant, clocksync.MinInstant}

// with is the window with the runs of another set added.
func (v window) with(runs []scgs.Part) window {
	for i := range runs {
		if p := &runs[i]; !p.Open {
			v.from = min(v.from, p.End.Within.Earliest)
		}
		v.to = max(v.to, runs[i].Start.Within.Latest)
	}
	return v
}

func (v window) has(s *clocksync.Stamp) bool {
	return s.Within.Latest >= v.from && s.Within.Earliest <= v.to
}

// collect lists the runs that are known, the latest of each member first.
func (t *Threshold) collect() {
	if t.of == t.edges {
		return
	}
	t.all, t.turns, t.of = t.all[:0], t.turns[:0], t.edges
	for n := range t.past {
		if p, open := t.open.Run(scgs.Member(n)); open { //nolint:gosec // There are at most 100,000.
			t.all = append(t.all, p)
		}
	}
	for n := range t.past {
		t.all = append(t.all, t.past[n]...)
	}
	for i := range t.all {
		p := &t.all[i]
		t.turns = append(t.turns, turn{instant: instant{p.Start, false}})
		if !p.Open {
			t.turns = append(t.turns, turn{instant: instant{p.End, true}})
		}
	}
	slices.SortStableFunc(t.turns, func(a, b turn) int { return strings.Compare(string(a.Domain), string(b.Domain)) })
}

// instant is just before a stamp, or just after it.
type instant struct {
	clocksync.Stamp
	after bool
}

// between reports whether a run of either set had certainly ended by the instant, and a run of the
// other had certainly not begun. The extents are those that the instant's clock sees.
func (t instant) between(a, b extent) bool {
	return t.follows(a) && t.precedes(b) || t.follows(b) && t.precedes(a)
}

// follows reports whether a run of a set had certainly ended by the instant.
func (t instant) follows(e extent) bool {
	return e.end < t.Within.Earliest || e.monoEnd < t.Mono || t.after && e.monoEnd == t.Mono
}

// precedes reports whether a run of a set had certainly not begun by the instant.
func (t instant) precedes(e extent) bool {
	return e.start > t.Within.Latest || e.monoStart > t.Mono || !t.after && e.monoStart == t.Mono
}

// ended reports whether a run had certainly ended by the instant.
func (t instant) ended(p *scgs.Part) bool {
	if p.Open || p.End.Domain != t.Domain {
		return !p.Open && clocksync.CertainlyBefore(p.End, t.Stamp)
	}
	return p.End.Mono < t.Mono || t.after && p.End.Mono == t.Mono
}

// awaits reports whether a run had certainly not begun by the instant.
func (t instant) awaits(p *scgs.Part) bool {
	if p.Start.Domain != t.Domain {
		return clocksync.CertainlyBefore(t.Stamp, p.Start)
	}
	return p.Start.Mono > t.Mono || !t.after && p.Start.Mono == t.Mono
}

// below reports whether fewer than k members can have been in a run at an instant.
func (t *Threshold) below(at instant) bool {
	t.mark++
	n := 0
	for i := range t.all {
		p := &t.all[i]
		if t.seen[p.Member] == t.mark || at.awaits(p) || at.ended(p) {
			continue
		}
		t.seen[p.Member] = t.mark
		if n++; n >= t.k {
			return false
		}
	}
	return true
}
