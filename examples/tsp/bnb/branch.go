package bnb

import (
	"cmp"
	"slices"
)

// trial is the outcome of trying both branches on an edge.
type trial struct {
	edge          int32
	with, without int64 // bounds of the branches, shifted
}

// score prefers edges that raise both bounds: the product of the gains, each
// with a little of their sum, so that one without gain does not hide the other.
func (t trial) score(sum int64) float64 {
	with, without := float64(t.with-sum), float64(t.without-sum)
	little := (with + without + 1) / 64
	return (with + little) * (without + little)
}

// choose tries candidate edges with a short ascent on either branch (strong
// branching) and returns the best one to branch on, with the prices to go on
// from in s.pick. A branch that closes on trial decides its edge the other way
// at once. The outcome is closed if that closes the node.
func (s *Search) choose(nd *node, candidates []int32) (trial, outcome) {
	best := trial{edge: -1}
	for _, e := range candidates {
		if nd.state[e] != free {
			continue
		}
		t := trial{edge: e}
		var how outcome
		if t.with, how = s.try(nd, e, required, s.aside[0]); how == stopped {
			return best, stopped
		}
		if how == closed {
			if !s.set.forbid(e) {
				return best, closed
			}
			continue
		}
		if t.without, how = s.try(nd, e, forbidden, s.aside[1]); how == stopped {
			return best, stopped
		}
		if how == closed {
			if !s.set.require(e) {
				return best, closed
			}
			continue
		}
		if best.edge < 0 || t.score(nd.sum) > best.score(nd.sum) {
			best = t
			s.aside, s.pick = s.pick, s.aside
		}
	}
	return best, spent
}

// try climbs shortly with one more edge decided. It returns the bound reached
// and leaves its prices in price.
func (s *Search) try(nd *node, e int32, as uint8, price []int64) (int64, outcome) {
	copy(s.state, nd.state)
	s.state[e] = as
	if !s.probe.load(s.state) {
		return 0, closed
	}
	s.up.tree.load(s.p.graph, s.state)
	how := s.up.climb(nd.price, trialSteps, trialLambda, s.ask)
	if how == toured {
		s.improve(s.up.tree.tour())
		how = closed
	}
	copy(price, s.up.best)
	return max(nd.sum, s.up.bound), how
}

// candidates lists the edges worth trying: those of the 1-tree that decide has
// left behind, at cities with more than two, dearest to replace first.
func (s *Search) candidates(nd *node) []int32 {
	t := s.up.tree
	s.worth = s.worth[:0]
	add := func(a, b, place int32, gain int64) {
		if e := t.arcs[place].edge; nd.state[e] == free && (t.degree[a] > 2 || t.degree[b] > 2) {
			s.worth = append(s.worth, worth{e, gain})
		}
	}
	for _, c := range t.order[1:] {
		gain := int64(0)
		if c != t.leaf && t.parent[c] != t.leaf {
			gain = s.fix.swap[c] - t.key[c]
		}
		add(c, t.parent[c], t.via[c], gain)
	}
	add(t.leaf, t.arcs[t.extra].to, t.extra, 0)
	slices.SortFunc(s.worth, func(a, b worth) int {
		return cmp.Or(cmp.Compare(b.gain, a.gain), cmp.Compare(a.edge, b.edge))
	})
	s.list = s.list[:0]
	for _, w := range s.worth[:min(trials, len(s.worth))] {
		s.list = append(s.list, w.edge)
	}
	return s.list
}

// worth is a candidate edge and what it costs to replace it.
type worth struct {
	edge int32
	gain int64
}

// fork opens the two branches on an edge, the more promising one last so that
// it is searched first.
func (s *Search) fork(nd *node, t trial) {
	with, without := s.child(nd), nd
	e := s.p.graph.edges[t.edge]
	with.state[t.edge], without.state[t.edge] = required, forbidden
	with.required, without.barred = append(with.required, e), append(without.barred, e)
	copy(with.price, s.pick[0])
	copy(without.price, s.pick[1])
	with.sum, without.sum = t.with, t.without
	without.fresh, without.seen = false, false
	if t.with < t.without {
		s.open = append(s.open, without, with)
	} else {
		s.open = append(s.open, with, without)
	}
}
