package scgs_test

import (
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
)

// greedy goes through complete runs by the rule of Possibly: what can overlap no
// run of another member any more is passed over, what may overlap is a find, and
// after a find the run that may end first is passed over. ends gives the upper
// end of a run's end or of the newest evidence.
func greedy(all [][]state, ends func(s state) clocksync.Instant) []tuple {
	var found []tuple
	for heads := make(tuple, len(all)); ; {
		for m := range all {
			if heads[m] == len(all[m]) {
				return found
			}
		}
		g := sweep{ends: ends}
		for m, k := range heads {
			g.heads = append(g.heads, all[m][k])
		}
		j := g.dead()
		if j < 0 {
			if g.undecided() {
				return found
			}
			found = append(found, slices.Clone(heads))
			if j = g.first(); j < 0 {
				return found
			}
		}
		heads[j]++
	}
}

// mayLast takes an open run whose newest evidence has no upper bound as one that
// may last for ever: nothing more will be heard.
func mayLast(s state) clocksync.Instant { return s.end.Within.Latest }

// mayEndSoon expects more to be heard.
func mayEndSoon(s state) clocksync.Instant {
	if s.closed || s.end.Within.Latest != clocksync.MaxInstant {
		return s.end.Within.Latest
	}
	return s.mayEnd
}

type sweep struct {
	heads []state
	ends  func(s state) clocksync.Instant
}

// misses reports whether some head starts too late for s, s itself included.
func (g sweep) misses(s state) bool {
	return slices.ContainsFunc(g.heads, func(i state) bool {
		if i.start.Domain == s.start.Domain {
			return i.start.Mono >= s.end.Mono
		}
		return i.start.Within.Earliest >= g.ends(s)
	})
}

func (g sweep) dead() int {
	return slices.IndexFunc(g.heads, func(s state) bool { return s.closed && g.misses(s) })
}

func (g sweep) undecided() bool {
	return slices.ContainsFunc(g.heads, func(s state) bool { return !s.closed && g.misses(s) })
}

// first gives the ended run with the least upper end, if no open one can come
// before it.
func (g sweep) first() int {
	j := -1
	for m, s := range g.heads {
		if s.closed && (j < 0 || g.ends(s) < g.ends(g.heads[j])) {
			j = m
		}
	}
	for m, s := range g.heads {
		if j < 0 || !s.closed && (g.ends(s) < g.ends(g.heads[j]) || g.ends(s) == g.ends(g.heads[j]) && m < j) {
			return -1
		}
	}
	return j
}
