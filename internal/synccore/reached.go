package synccore

import (
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// A threshold that has fired stays reached until it is certain that fewer than k members were in a
// run. A set that is found while it stays reached is no new alarm. Which sets are found on the way
// depends on whose evidence arrives first; when the threshold is reached does not.
//
// The newest state that is known of a member counts until the next one arrives: a run that is open
// goes on, and a member that has told of no run is in none. So no alarm waits for a member that was
// in no run when it was cut off.

const (
	pastRuns  = 8  // of a member that have ended are kept: without older ones a set may fire twice
	firedSets = 16 // of a threshold are kept, with the same effect
	heldSets  = 8  // that wait to be parted from those are kept
)

// reach is what a threshold needs to know whether it stays reached.
type reach struct {
	fired []*reached  // the newest sets that have fired, oldest first
	edges uint64      // how many runs have begun and ended: only that can part a set from those that have fired
	all   []scgs.Part // the runs that were known when edges was of
	turns []turn      // their starts and ends, clock by clock
	of    uint64
	both  []scgs.Part // scratch
	mark  uint64
}

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

// reached is a set that has fired, with the ends of its runs as they become known.
type reached []scgs.Part

// noteStart takes note that a run has begun, if it did with a state.
func (w *runs) noteStart(n scgs.Member, seq uint64) {
	if p, open := w.sets.Run(n); open && p.Seq == seq {
		w.reach.edges++
	}
}

// noteEnd keeps a run that has ended.
func (w *runs) noteEnd(p *scgs.Part) {
	w.reach.edges++
	past := &w.known[p.Member].past
	if len(*past) == pastRuns {
		*past = (*past)[:copy(*past, (*past)[1:])]
	}
	*past = append(*past, *p)
}

// noteGone ends the runs of members that leave.
func (w *runs) noteGone(remove []scgs.Member) {
	if w.k == 0 {
		return
	}
	for _, m := range remove {
		if p, open := w.sets.Run(m); open {
			p.Open = false
			w.noteEnd(&p)
		}
	}
	for _, set := range w.reach.fired {
		w.update(*set)
		for i := range *set {
			if p := &(*set)[i]; slices.Contains(remove, p.Member) {
				p.Open = false // Its number is given to others.
			}
		}
	}
}

// forgetHeld forgets the oldest set that is held back, if there are too many.
func (w *runs) forgetHeld() {
	n, oldest := 0, -1
	for i, f := range w.found {
		if f.held {
			if n++; oldest < 0 {
				oldest = i
			}
		}
	}
	if n > heldSets {
		w.found = slices.Delete(w.found, oldest, oldest+1)
	}
}

// noteFired keeps a set that has fired, or that had fired in an earlier epoch.
func (w *runs) noteFired(f *found) {
	if w.k == 0 {
		return
	}
	same := func(s *reached) bool { return (&found{runs: *s}).within(f) && len(*s) == len(f.runs) }
	w.reach.fired = slices.DeleteFunc(w.reach.fired, same)
	set := reached(slices.Clone(f.runs))
	if len(w.reach.fired) == firedSets {
		w.reach.fired = slices.Delete(w.reach.fired, 0, 1)
	}
	w.reach.fired = append(w.reach.fired, &set)
}

// update brings the ends of a set's runs up to date.
func (w *runs) update(set reached) {
	for i := range set {
		p := &set[i]
		if !p.Open {
			continue
		}
		if now, open := w.sets.Run(p.Member); open && now.Seq == p.Seq {
			p.End = now.End
			continue
		}
		p.Open = false // Of a run that is not kept the newest evidence that was known counts.
		past := w.known[p.Member].past
		if i := slices.IndexFunc(past, func(q scgs.Part) bool { return q.Seq == p.Seq }); i >= 0 {
			p.End = past[i].End
		}
	}
}

// continues reports whether the threshold may have stayed reached between a set and one that has
// fired. It gives the set up if the two are one that has grown.
func (w *runs) continues(now clocksync.Instant, f *found) bool {
	if len(w.reach.fired) == 0 {
		f.held = false
		return false
	}
	if f.held && f.edges == w.reach.edges && now < f.look {
		return true
	}
	f.held, f.edges, f.look = true, w.reach.edges, now.Add(askPeriod)
	var left []*reached // those that it is not certainly apart from
	for _, set := range slices.Backward(w.reach.fired) {
		w.update(*set)
		w.reach.both = append(append(w.reach.both[:0], *set...), f.runs...)
		if together(w.reach.both) {
			f.waits = false
			return true
		}
		left = append(left, set)
	}
	w.collect()
	for len(left) > 0 { // The newest first: what parts that from this one mostly parts the older ones too.
		at, ok := w.parts(*left[0], f.runs)
		if !ok {
			return true
		}
		this := extentOf(f.runs, at.Domain)
		left = slices.DeleteFunc(left, func(set *reached) bool { return at.between(extentOf(*set, at.Domain), this) })
	}
	f.held = false
	return false
}

// parts finds an instant between two sets at which fewer than k members were in a run.
func (w *runs) parts(a, b []scgs.Part) (at instant, ok bool) {
	window := noWindow.with(a).with(b)
	var one, other extent
	var seen bool // one and other are of the clock of the turn
	for i := range w.reach.turns {
		t := &w.reach.turns[i]
		seen = seen && t.Domain == w.reach.turns[i-1].Domain
		if t.level == high || !window.has(&t.Stamp) {
			continue
		}
		if !seen {
			one, other, seen = extentOf(a, t.Domain), extentOf(b, t.Domain), true
		}
		if !t.between(one, other) {
			continue
		}
		if t.level == unknown {
			if t.level = high; w.below(t.instant) {
				t.level = low
			}
		}
		if t.level == low {
			return t.instant, true
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

// window is when an instant can lie that parts one set from another: a run of one has ended and a run of the other has
// not begun. It spares a look at runs of long ago.
type window struct{ from, to clocksync.Instant }

var noWindow = window{clocksync.MaxInstant, clocksync.MinInstant}

// with is the window with the runs of one more set.
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

// together reports whether all runs certainly held at one instant.
func together(runs []scgs.Part) bool {
	span := scgs.SpanOf(runs)
	from, to, ok := stretch(&span)
	return ok && from < to
}

// collect lists the runs that are known, the latest of each member first.
func (w *runs) collect() {
	if w.reach.of == w.reach.edges {
		return
	}
	w.reach.all, w.reach.turns, w.reach.of = w.reach.all[:0], w.reach.turns[:0], w.reach.edges
	for n := range w.known {
		if p, open := w.sets.Run(scgs.Member(n)); open { //nolint:gosec // There are at most 100,000.
			w.reach.all = append(w.reach.all, p)
		}
	}
	for n := range w.known {
		w.reach.all = append(w.reach.all, w.known[n].past...)
	}
	for i := range w.reach.all {
		p := &w.reach.all[i]
		w.reach.turns = append(w.reach.turns, turn{instant: instant{p.Start, false}})
		if !p.Open {
			w.reach.turns = append(w.reach.turns, turn{instant: instant{p.End, true}})
		}
	}
	slices.SortStableFunc(w.reach.turns, func(a, b turn) int { return strings.Compare(string(a.Domain), string(b.Domain)) })
}

// instant is just before a stamp, or just after it.
type instant struct {
	clocksync.Stamp
	after bool
}

// between reports whether a run of one set had certainly ended by the instant, and a run of the other
// had certainly not begun. The extents are those that the instant's clock sees.
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
func (w *runs) below(at instant) bool {
	w.reach.mark++
	n := 0
	for i := range w.reach.all {
		p := &w.reach.all[i]
		k := &w.known[p.Member]
		if k.mark == w.reach.mark || at.awaits(p) || at.ended(p) {
			continue
		}
		k.mark = w.reach.mark
		if n++; n >= w.k {
			return false
		}
	}
	return true
}
