package scgs

import (
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
)

// How an input is shown to complete no alarm, without a search.
//
// Let a(x) be the Latest of the start of x and b(x) the Earliest of its end, and
// let the last run of a set be the one with the greatest a or, in a set of one
// clock, with the latest reading of the start. A set that r completes contains r
// and a run that r has begun to overlap. Its last run q is r itself, or r has
// begun to overlap q, or q is of r's clock and a(q) is not before the Earliest
// that r had shown before. These are the candidates: few, and each run is one at
// most about once for each other run.
//
// An alarm A covers q if every maximal set with q as its last run contains A. For
// A was found in such a set, so of its runs those of other clocks than q's have
// a <= a(q) < b, and those of q's clock were open at the reading of q's start; and
// what overlaps all runs of a maximal set is in it. Only two kinds of run y
// can be in a set with q and not overlap all of A. One is of q's clock, and its b
// is not after the latest a in A of the other clocks (front). The other is of
// another clock, and its a is not before the earliest b in A of q's clock (back).
//
// All this rests on stamps of one clock that rise together. A run whose start
// does not (see the promises of [Threshold.Evidence]) is odd, and while one is
// kept nothing is taken to be covered. With one clock in all only readings count.

// cover is the alarm that covers a run.
type cover struct {
	alarm       *alarm
	lapse       uint64 // Threshold.lapse when it was looked at
	front, back clocksync.Instant
}

// completeAlarms is what a Threshold does in place of [Threshold.complete] if only the
// alarms are wanted.
func (t *Threshold) completeAlarms(r *run, from point) {
	if t.isMulti() {
		t.judgeEnd(r)
	}
	if !r.certainlyHeld() {
		return
	}
	t.tick++
	s := &t.search
	s.all = r.start.m >= from.m
	s.begun, s.lasts = s.begun[:0], s.lasts[:0]
	t.collectBegun(r, from)
	if s.all {
		s.lasts = append(s.lasts, r)
		t.gatherRuns(r)
		r.meet(s.near)
		t.tick++
	} else {
		if len(s.begun) == 0 {
			return
		}
		r.meet(s.begun)
	}
	t.candidates(r, from)
	odd := t.isMulti() && t.odd > 0
	s.lasts = slices.DeleteFunc(s.lasts, func(q *run) bool { return q.reach+1 < t.k || !odd && (q.before+1 < t.k || t.covered(q)) })
	if len(s.lasts) == 0 || t.count < t.k {
		for _, q := range s.lasts {
			q.next = next{} // Nobody has looked whether it overlaps r.
		}
		return
	}
	s.old, s.truncated, s.full = len(t.sets), false, false
	if !odd {
		s.lasts = slices.DeleteFunc(s.lasts, func(q *run) bool { return t.seekLast(r, q) })
	}
	if len(s.lasts) > 0 {
		if odd || slices.Contains(s.lasts, r) {
			s.lasts = s.lasts[:0]
		}
		t.tick++
		for _, x := range s.begun {
			x.fresh = t.tick
		}
		t.seekSets(r)
	}
	t.numberSets()
}

// meet counts the runs that r has begun to overlap. Of what q is the last run of have
// started by it, in numbers near half of all members only about half of what overlaps it.
func (r *run) meet(begun []*run) {
	r.reach += len(begun)
	for _, x := range begun {
		x.reach++
		if x.startsBy(r) {
			r.before++
		}
		if r.startsBy(x) {
			x.before++
		}
	}
}

// seekLast looks for the set that has r and of which q is the last run, and
// returns false if there may be more than one: not all that start by q and overlap
// both overlap each other.
func (t *Threshold) seekLast(r, q *run) bool {
	if !r.startsBy(q) {
		return true
	}
	// With one clock all that is in a set with q as the last holds at the start of q, and so
	// overlaps each other. A later run that overlaps all of them does so for good: as long as what
	// comes to them overlaps it as well, each set is found with that one as the last.
	if x := q.next; x.run != nil && x.run.serial == x.serial && x.lapse == t.lapse && !t.isMulti() && r.overlapsRun(x.run) {
		return true
	}
	q.next = next{}
	s := &t.search
	t.tick++
	s.near, s.later = s.near[:0], s.later[:0]
	r.mark, q.mark = t.tick, t.tick
	p := t.newProfile()
	p.putRun(r)
	s.chosen = append(s.chosen[:0], r)
	if q != r {
		p.putRun(q)
		s.chosen = append(s.chosen, q)
	}
	for _, x := range t.open {
		if !t.joinLast(&p, r, q, x) {
			return false
		}
	}
	lists := [2]*ordered{&q.clockRuns.over, &t.over}
	limits := [2]clocksync.Instant{q.start.m, q.start.hi}
	for n, o := range lists {
		for i := len(o.list) - 1; i >= 0 && o.list[i].key > limits[n]; i-- {
			if x := o.list[i].run; x != nil && !t.joinLast(&p, r, q, x) {
				return false
			}
		}
	}
	set := s.chosen
	for _, x := range s.begun {
		x.fresh = t.tick
	}
	if len(set) < t.k || !s.all && !slices.ContainsFunc(set, func(x *run) bool { return x.fresh == t.tick }) {
		return true
	}
	if a := t.containedSet(set); a != nil {
		t.coverLast(set, a)
		return true
	}
	if t.isMulti() && slices.ContainsFunc(s.later, p.fitsAll) {
		return true // it is found with that one as the last
	}
	for _, x := range s.later { // What ends soon overlaps the earliest of them, if any.
		if n := q.next.run; !t.isMulti() && (n == nil || x.start.m < n.start.m) && p.fitsAll(x) {
			q.next = next{x, x.serial, t.lapse}
		}
	}
	if q.next.run != nil {
		return true
	}
	slices.SortFunc(set, compareRuns)
	t.addSet(set)
	return true
}

// joinLast takes x in if it starts by q and overlaps both. It is false if x does
// not fit what was taken in before.
func (t *Threshold) joinLast(p *profile, r, q, x *run) bool {
	if x.mark == t.tick {
		return true
	}
	x.mark = t.tick
	s := &t.search
	switch {
	case !x.certainlyHeld() || !x.overlapsRun(q) || !x.overlapsRun(r):
	case !x.startsBy(q):
		s.later = append(s.later, x)
	case !p.fitsAll(x):
		return false
	default:
		p.putRun(x)
		s.chosen = append(s.chosen, x)
	}
	return true
}

// candidates collects which runs can be the last of a set that r completes.
func (t *Threshold) candidates(r *run, from point) {
	s := &t.search
	s.lasts = append(s.lasts, s.begun...)
	if !t.isMulti() || r.start.hi == clocksync.MaxInstant {
		return
	}
	if !s.all && r.start.hi >= from.lo {
		s.lasts = append(s.lasts, r)
	}
	c := r.clockRuns
	for i := c.starts.findPlace(from.m, 0) - 1; i >= 0; i-- {
		x := c.starts.list[i].run
		if x == nil || x.start.hi == clocksync.MaxInstant {
			continue
		}
		if x.start.hi < from.lo && !x.odd {
			return
		}
		if x != r && x.certainlyHeld() && x.overlapsRun(r) {
			s.lasts = append(s.lasts, x)
		}
	}
}

// covered reports whether an alarm covers q.
func (t *Threshold) covered(q *run) bool {
	v := &q.cover
	switch {
	case v.alarm == nil || v.lapse != t.lapse && !t.look(q):
		return false
	case !t.isMulti():
		return true
	}
	return !t.before(q) && (!t.beside(q) || !v.alarm.isGone() && t.look(q) && !t.beside(q))
}

// isSettled reports whether it covers q whatever is still to come.
func (t *Threshold) isSettled(q *run) bool {
	v := &q.cover
	if v.alarm == nil || v.lapse != t.lapse && !t.look(q) {
		return false
	}
	return !t.isMulti() || t.odd == 0 && v.front < q.start.lo && (v.front == clocksync.MinInstant || q.clockRuns.unbounded == 0) &&
		(v.back > q.start.hi || q.start.hi == clocksync.MaxInstant)
}

// look sums up the alarm that is to cover q.
func (t *Threshold) look(q *run) bool {
	v := &q.cover
	if v.alarm.isGone() {
		*v = cover{}
		return false
	}
	v.lapse, v.front, v.back = t.lapse, clocksync.MinInstant, clocksync.MaxInstant
	for _, m := range v.alarm.runs {
		switch {
		case m.run.clockRuns != q.clockRuns:
			v.front = max(v.front, m.run.start.hi)
		case m.run.start.hi > q.start.hi: // it is unbounded, no run of another clock overlaps it
			v.back = clocksync.MinInstant
		case m.run != q:
			v.back = min(v.back, m.run.end.lo)
		}
	}
	return true
}

// before reports whether a run of q's clock can be in a set with q and end before
// the front of its cover.
func (t *Threshold) before(q *run) bool {
	v, c := &q.cover, q.clockRuns
	switch {
	case v.front == clocksync.MinInstant:
		return false
	case c.unbounded > 0:
		return true
	case v.front < q.start.lo:
		return false
	}
	return slices.ContainsFunc(c.starts.list, func(e entry) bool {
		y := e.run
		return y != nil && y != q && y.end.lo <= v.front && y.overlapsRun(q)
	})
}

// beside reports whether a run of another clock can be in a set with q and start
// after the back of its cover.
func (t *Threshold) beside(q *run) bool {
	v := &q.cover
	if v.back > q.start.hi || q.start.hi == clocksync.MaxInstant {
		return false
	}
	for i := t.starts.findPlace(v.back, 0); i < len(t.starts.list) && t.starts.list[i].key <= q.start.hi; i++ {
		if y := t.starts.list[i].run; y != nil && y.clockRuns != q.clockRuns {
			return true
		}
	}
	return false
}

// coverLast notes an alarm that the set contains as what covers its last run.
func (t *Threshold) coverLast(set []*run, a *alarm) {
	q, one := set[0], true
	for _, x := range set[1:] {
		one = one && x.clockRuns == q.clockRuns
	}
	for _, x := range set[1:] {
		later := x.start.hi > q.start.hi
		if one || x.start.hi == q.start.hi && x.clockRuns == q.clockRuns {
			later = x.start.m > q.start.m
		}
		if later {
			q = x
		}
	}
	q.cover, q.next = cover{alarm: a}, next{}
	t.look(q)
}

// judgeStart finds out whether the start of r is odd beside the starts and ends of
// its clock.
func (t *Threshold) judgeStart(r *run) {
	for _, e := range r.clockRuns.starts.list {
		x := e.run
		if x == nil || x == r {
			continue
		}
		if odd(r, x.end) || !x.odd && (x.start.m < r.start.m && disordered(x, r) || r.start.m < x.start.m && disordered(r, x)) {
			t.mark(r)
			return
		}
	}
}

// judgeEnd finds the starts that are odd beside the newest end of r.
func (t *Threshold) judgeEnd(r *run) {
	list := r.clockRuns.starts.list
	at := r.clockRuns.starts.findPlace(r.end.m, 0)
	for i := at; i < len(list); i++ {
		if x := list[i].run; x != nil && !x.odd && odd(x, r.end) {
			t.mark(x)
		}
	}
	for i := at - 1; i >= 0; i-- {
		x := list[i].run
		if x == nil || x.odd {
			continue
		}
		if !odd(x, r.end) {
			return
		}
		t.mark(x)
	}
}

// odd reports whether the start of x and the end of a run of its clock do not rise
// together.
func odd(x *run, end point) bool {
	if end.m <= x.start.m {
		return end.lo > x.start.hi
	}
	return end.lo < x.start.lo
}

// disordered reports the same of two starts, the first of which has the earlier
// reading. An unbounded one is in order.
func disordered(first, second *run) bool {
	return first.start.lo > second.start.lo || first.start.hi != clocksync.MaxInstant && first.start.hi > second.start.hi
}

func (t *Threshold) mark(r *run) {
	r.odd = true
	t.odd++
}
