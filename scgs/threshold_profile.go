package scgs

import (
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
)

// profile sums up the runs of a set so that one look tells whether another run
// overlaps all of them: the latest start and the earliest end, each with the best
// of another clock.
type profile struct {
	tick       uint64
	start, end [2]bound
}

// bound is an instant and the clock it is of.
type bound struct {
	clockRuns *clockRuns
	at        clocksync.Instant
}

// extent is the latest start and the earliest end, by readings, of the runs of a
// clock that are in the set with that tick.
type extent struct {
	tick       uint64
	start, end clocksync.Instant
}

func (t *Threshold) newProfile() profile {
	t.search.ticks++
	return profile{
		tick:  t.search.ticks,
		start: [2]bound{{nil, clocksync.MinInstant}, {nil, clocksync.MinInstant}},
		end:   [2]bound{{nil, clocksync.MaxInstant}, {nil, clocksync.MaxInstant}},
	}
}

// fitsAll reports whether x overlaps all runs that were put in.
func (p *profile) fitsAll(x *run) bool {
	c := x.clockRuns
	if e := &c.extent; e.tick == p.tick && (e.start >= x.end.m || x.start.m >= e.end) {
		return false
	}
	start, end := p.start[0], p.end[0]
	if start.clockRuns == c {
		start = p.start[1]
	}
	if end.clockRuns == c {
		end = p.end[1]
	}
	return (start.clockRuns == nil || start.at < x.end.lo) && (end.clockRuns == nil || x.start.hi < end.at)
}

// putRun takes x in, which fits.
func (p *profile) putRun(x *run) {
	c := x.clockRuns
	if c.extent.tick != p.tick {
		c.extent = extent{p.tick, clocksync.MinInstant, clocksync.MaxInstant}
	}
	e := &c.extent
	e.start, e.end = max(e.start, x.start.m), min(e.end, x.end.m)
	rankBest(&p.start, bound{c, x.start.hi}, laterOf)
	rankBest(&p.end, bound{c, x.end.lo}, earlier)
}

func laterOf(a, b clocksync.Instant) bool { return a > b }
func earlier(a, b clocksync.Instant) bool { return a < b }

// rankBest enters b among the best of two different clocks.
func rankBest(best *[2]bound, b bound, better func(a, b clocksync.Instant) bool) {
	first, second := &best[0], &best[1]
	switch {
	case first.clockRuns == b.clockRuns:
		if better(b.at, first.at) {
			first.at = b.at
		}
	case first.clockRuns == nil || better(b.at, first.at):
		*second, *first = *first, b
	case second.clockRuns == nil || better(b.at, second.at):
		*second = b
	}
}

// allOverlap reports whether r and the runs near it are one set.
func (t *Threshold) allOverlap(r *run) bool {
	p := t.newProfile()
	p.putRun(r)
	for _, x := range t.search.near {
		if !p.fitsAll(x) {
			return false
		}
		p.putRun(x)
	}
	return true
}

// findSomeSets finds some sets where there are too many runs to find all: for each run
// that r has begun to overlap, those that held when it started, and then what
// overlaps all of these.
func (t *Threshold) findSomeSets(r *run) {
	s := &t.search
	s.truncated = true
	if s.all {
		t.around(r, r)
	}
	for _, x := range s.near {
		if s.full {
			return
		}
		if s.all || x.fresh == t.tick {
			t.around(r, x)
		}
	}
}

// around makes the set with r of the runs that held when b started.
func (t *Threshold) around(r, b *run) {
	s := &t.search
	p := t.newProfile()
	p.putRun(r)
	if b != r {
		p.putRun(b)
	}
	s.chosen = append(s.chosen[:0], r)
	for _, before := range []bool{true, false} {
		for _, x := range s.near {
			if x.startsBy(b) == before && x != b && p.fitsAll(x) {
				p.putRun(x)
				s.chosen = append(s.chosen, x)
			}
		}
	}
	if b != r {
		s.chosen = append(s.chosen, b)
	}
	if len(s.chosen) >= t.k {
		slices.SortFunc(s.chosen, compareRuns)
		t.addSet(s.chosen)
	}
}

// startsBy reports whether the run starts no later than x.
func (r *run) startsBy(x *run) bool {
	if r.clockRuns == x.clockRuns {
		return r.start.m <= x.start.m
	}
	return r.start.hi <= x.start.hi
}
