package bnb

import (
	"cmp"
	"slices"
)

// Numbers tried out on instances of 50 to 150 cities; none is delicate.
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
	nd.seen = true
	if how == spent && s.kind == Prefix {
		if how = s.extend(nd); how == spent {
			s.release(nd)
			return
		}
	}
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

// way is an edge that a prefix may go on by, and the node behind it.
type way struct {
	to, edge int32
	node     *node
}

// extend opens the children of a node of kind Prefix: one for each city that
// may come next, tried like a branch, the least bound last so that it is
// searched first. The outcome is stopped if the node has to stay open instead.
func (s *Search) extend(nd *node) outcome {
	end := nd.prefix[len(nd.prefix)-1]
	s.follow(nd, end)
	open := s.ways[:0]
	for _, x := range s.ways {
		x.node = s.child(nd)
		x.node.prefix = append(x.node.prefix, x.to)
		x.node.state[x.edge] = required
		sum, how := s.try(nd, x.edge, required, x.node.price)
		switch how {
		case closed, toured:
			s.release(x.node)
		case stopped:
			for _, y := range append(open, x) {
				s.release(y.node)
			}
			return stopped
		case spent:
			x.node.sum = sum
			open = append(open, x)
		}
	}
	slices.SortFunc(open, func(a, b way) int {
		return cmp.Or(cmp.Compare(a.node.sum, b.node.sum), cmp.Compare(a.to, b.to))
	})
	if len(nd.prefix) == 1 { // a tour may begin either way: search it once
		for i, x := range open {
			for _, y := range open[:i] {
				x.node.barred = append(x.node.barred, edge(end, y.to))
				x.node.state[y.edge] = forbidden
			}
		}
	}
	for _, x := range slices.Backward(open) {
		s.open = append(s.open, x.node)
	}
	return spent
}

// follow lists the edges by which the prefix of a node may go on from its end:
// a required one alone, as every tour goes there, one way or the other.
func (s *Search) follow(nd *node, end int32) {
	s.ways = s.ways[:0]
	for _, h := range s.p.graph.around(end) {
		if nd.state[h.edge] == forbidden || slices.Contains(nd.prefix, h.to) {
			continue
		}
		s.ways = append(s.ways, way{to: h.to, edge: h.edge})
		if nd.state[h.edge] == required {
			s.ways = append(s.ways[:0], way{to: h.to, edge: h.edge})
			return
		}
	}
}
