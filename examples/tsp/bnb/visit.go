package bnb

import (
	"cmp"
	"slices"
)

// Numbers tried out on instances of 50 to 150 towns; none is delicate.
const (
	freshSteps  = 3   // times the ascent of an ordinary node, as prices are the root's
	visitLambda = 1.0 // aim of an ascent at a node
	revisits    = 4   // ascents in a visit while edges get decided
	trials      = 12  // edges tried before branching on one
	trialSteps  = 12  // of the ascent for each of its two branches
	trialLambda = 0.7 // its aim
)

// visit works on one node: raises its bound, decides edges, and opens its
// children unless the node is closed. When trying edges decided some, the node
// stays open to be visited again with a bound that may have risen.
func (s *Search) visit(nd *node) {
	how := closed
	if s.set.load(nd.state) {
		how = s.settle(nd, s.steps(nd))
	}
	if how == spent && s.kind == Prefix {
		s.extend(nd)
		return
	}
	nd.seen = true
	if how == spent {
		before := s.set.fixed
		var best trial
		best, how = s.choose(nd, s.candidates(nd))
		if how == spent && s.set.fixed == before && best.edge >= 0 {
			s.fork(nd, best)
			return
		}
	}
	if how == spent || how == stopped {
		s.open = append(s.open, nd)
		return
	}
	s.release(nd)
}

// steps is how far the first ascent of a visit goes.
func (s *Search) steps(nd *node) int {
	n := s.p.in.N
	switch {
	case nd.seen:
		return n/8 + 5
	case nd.fresh:
		return freshSteps * (n/4 + 5)
	default:
		return n/4 + 5
	}
}

// settle climbs at a node and decides edges by turns while that helps.
func (s *Search) settle(nd *node, steps int) outcome {
	for range revisits {
		if how := s.raise(nd, steps); how != spent {
			return how
		}
		before := s.set.fixed
		if !s.decide(nd) {
			return closed
		}
		if s.set.fixed == before {
			break
		}
		steps = s.p.in.N/8 + 5
	}
	return spent
}

// raise climbs at a node and leaves the best prices and bound in it.
func (s *Search) raise(nd *node, steps int) outcome {
	s.up.tree.load(s.p.graph, nd.state)
	how := s.up.climb(nd.price, steps, visitLambda, s.ask)
	if how == toured {
		s.improve(s.up.tree.tour())
	}
	if s.up.bound > unsetBound {
		copy(nd.price, s.up.best)
		nd.sum = max(nd.sum, s.up.bound)
	}
	return how
}

// decide fixes edges by the 1-tree of the node's prices.
func (s *Search) decide(nd *node) bool {
	t := s.up.tree
	t.load(s.p.graph, nd.state)
	sum, ok := t.build(nd.price)
	return ok && s.fix.fix(t, s.set, nd.price, sum, s.limit())
}

// extend opens the children of a node of kind Prefix: one for each town that
// may come next, the cheapest last so that it is searched first.
func (s *Search) extend(nd *node) {
	type next struct {
		town, edge int32
		cost       int64
	}
	var list []next
	end := nd.prefix[len(nd.prefix)-1]
	for _, h := range s.p.graph.around(end) {
		if nd.state[h.edge] == forbidden || slices.Contains(nd.prefix, h.to) {
			continue
		}
		x := next{h.to, h.edge, s.p.graph.cost[h.edge] + nd.price[h.to]}
		if nd.state[h.edge] == required { // every tour goes there, one way or the other
			list = []next{x}
			break
		}
		list = append(list, x)
	}
	slices.SortFunc(list, func(a, b next) int {
		return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.town, b.town))
	})
	at := len(s.open)
	var barred []next
	for _, x := range list {
		kid := s.child(nd)
		kid.prefix = append(kid.prefix, x.town)
		kid.state[x.edge] = required
		for _, b := range barred {
			kid.barred = append(kid.barred, edge(end, b.town))
			kid.state[b.edge] = forbidden
		}
		if len(nd.prefix) == 1 { // a tour may begin either way: search it once
			barred = append(barred, x)
		}
		s.open = append(s.open, kid)
	}
	slices.Reverse(s.open[at:])
	s.release(nd)
}
