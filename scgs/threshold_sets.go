package scgs

import (
	"cmp"
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
)

// search is the working memory of the search for sets of an input.
type search struct {
	near      []*run     // what can be in a set with the changed run, in order of members
	begun     []*run     // of them, those that it has begun to overlap
	all       bool       // it has begun to overlap all of them
	chosen    []*run     // a set in the making
	rows      []uint64   // for each of near, which others it overlaps
	clique    []uint64   // of near, what is in the set in the making
	stack     [][]uint64 // three sets of near for each depth
	fresh     []uint64   // of near, those in begun
	steps     int        // that may still be taken
	truncated bool       // sets may have been left out
	full      bool       // there is no room for more
	old       int        // the sets that earlier inputs have completed
	ticks     uint64     // of profiles
	picks     uint64     // of sets that were looked for reported ones
	lasts     []*run     // of alarms: which runs can be the last of one, if not any
	later     []*run     // than the last one of a set in the making
}

// completeSets finds the sets that became certain when r's end, or the evidence that
// stands for it, moved on to where it is now: those that have r and a run that it
// has begun to overlap by that.
func (t *Threshold) completeSets(r *run, from point) {
	if t.alarmsOnly {
		t.completeAlarms(r, from)
		return
	}
	if !r.certainlyHeld() || t.count < t.k {
		return
	}
	t.tick++
	s := &t.search
	s.all = r.start.m >= from.m
	s.begun = s.begun[:0]
	if !s.all {
		t.collectBegun(r, from)
		if len(s.begun) == 0 {
			return
		}
	}
	s.old, s.truncated, s.full = len(t.sets), false, false
	t.seekSets(r)
	t.numberSets()
}

// seekSets looks for the sets that have r and a run that it has begun to overlap.
func (t *Threshold) seekSets(r *run) {
	if t.tooFew(r) {
		return
	}
	s := &t.search
	t.gatherRuns(r)
	if len(s.near)+1 < t.k {
		return
	}
	t.enumerateSets(r)
}

// collectBegun collects the runs that r did not overlap before its end moved on.
func (t *Threshold) collectBegun(r *run, from point) {
	s := &t.search
	if t.isMulti() && r.end.lo > from.lo {
		for i := t.starts.findPlace(from.lo, 0); i < len(t.starts.list) && t.starts.list[i].key < r.end.lo; i++ {
			if x := t.starts.list[i].run; x != nil && x.clockRuns != r.clockRuns && x.certainlyHeld() && x.overlapsRun(r) {
				s.begun = append(s.begun, x)
				x.fresh = t.tick
			}
		}
	}
	c := r.clockRuns
	for i := c.starts.findPlace(from.m, 0); i < len(c.starts.list) && c.starts.list[i].key < r.end.m; i++ {
		if x := c.starts.list[i].run; x != nil && x != r && x.certainlyHeld() && x.overlapsRun(r) {
			s.begun = append(s.begun, x)
			x.fresh = t.tick
		}
	}
}

// tooFew reports, in O(log runs) for each run that r has begun to overlap, that
// no set can have k runs: all others in it are open or ended after that one
// started.
func (t *Threshold) tooFew(r *run) bool {
	most := func(x *run) int {
		return len(t.open) + t.over.countAbove(x.start.hi) + x.clockRuns.over.countAbove(x.start.m)
	}
	s := &t.search
	if s.all {
		return most(r)+1 < t.k
	}
	return !slices.ContainsFunc(s.begun, func(x *run) bool { return most(x)+1 >= t.k })
}

// gatherRuns collects the runs that can be in a set with r: those that overlap it and
// at least one that it has begun to overlap.
func (t *Threshold) gatherRuns(r *run) {
	s := &t.search
	s.near = s.near[:0]
	r.mark = t.tick
	for _, x := range t.open {
		t.consider(r, x)
	}
	if s.all {
		t.considerEnded(r, r)
	}
	for _, x := range s.begun {
		t.considerEnded(r, x)
	}
}

// considerEnded looks at the ended runs that can overlap x.
func (t *Threshold) considerEnded(r, x *run) {
	if t.isMulti() {
		t.considerFrom(&t.over, r, x.start.hi)
	}
	t.considerFrom(&x.clockRuns.over, r, x.start.m)
}

// considerFrom looks at the ended runs in the list with a key above a limit.
func (t *Threshold) considerFrom(o *ordered, r *run, limit clocksync.Instant) {
	for i := len(o.list) - 1; i >= 0 && o.list[i].key > limit; i-- {
		if x := o.list[i].run; x != nil {
			t.consider(r, x)
		}
	}
}

// consider takes x among the runs near r if it belongs there.
func (t *Threshold) consider(r, x *run) {
	if x.mark == t.tick {
		return
	}
	x.mark = t.tick
	s := &t.search
	if !x.certainlyHeld() || !x.overlapsRun(r) {
		return
	}
	if len(s.lasts) > 0 && !slices.Contains(s.lasts, x) && !slices.ContainsFunc(s.lasts, x.overlapsRun) {
		return
	}
	if s.all || x.fresh == t.tick || slices.ContainsFunc(s.begun, x.overlapsRun) {
		s.near = append(s.near, x)
	}
}

// compareRuns orders runs by member and number.
func compareRuns(a, b *run) int {
	if c := cmp.Compare(a.member, b.member); c != 0 {
		return c
	}
	if c := cmp.Compare(a.first, b.first); c != 0 {
		return c
	}
	return cmp.Compare(a.serial, b.serial)
}
