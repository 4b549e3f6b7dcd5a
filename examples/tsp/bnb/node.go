package bnb

import "slices"

// node is an open node of the search tree.
type node struct {
	state []uint8 // of every candidate edge, consequences included
	price []int64 // to start the next ascent from
	sum   int64   // bound, shifted
	fresh bool    // made of a subtask without prices: they are the root's
	seen  bool    // visited before, and not yet done with

	// What branching decided, enough to make the node again elsewhere, with the prices.
	required, barred []Edge
	prefix           []int32
}

// subtask returns what the node stands for.
func (s *Search) subtask(nd *node) Subtask {
	t := Subtask{Kind: s.kind, Forbidden: slices.Clone(nd.barred), LowerBound: s.p.lower(nd.sum, s.upper()), Prices: slices.Clone(nd.price)}
	if s.kind == Prefix {
		t.Prefix = slices.Clone(nd.prefix)
	} else {
		t.Required = slices.Clone(nd.required)
	}
	return t
}

// root makes the node of a subtask, or returns nil if no tour is left in it.
func (s *Search) root(t Subtask) *node {
	g := s.p.graph
	nd := s.spare()
	clear(nd.state)
	copy(nd.price, s.p.price)
	copy(nd.price, t.Prices)
	nd.sum = max(s.p.sum, int64(min(t.LowerBound, s.upper())-1)<<s.p.shift+1)
	nd.fresh, nd.seen = len(t.Prices) == 0, false
	nd.required = append(nd.required[:0], t.Required...)
	nd.barred = append(nd.barred[:0], t.Forbidden...)
	nd.prefix = append(nd.prefix[:0], t.Prefix...)
	limit := s.limit()
	for e, bound := range g.bound {
		if bound > limit {
			nd.state[e] = forbidden
		}
	}
	for _, e := range t.Forbidden {
		if k := g.find(e.U, e.V); k >= 0 {
			nd.state[k] = forbidden
		}
	}
	for _, e := range slices.Concat(t.Required, path(t.Prefix)) {
		k := g.find(e.U, e.V)
		if k < 0 || nd.state[k] == forbidden {
			s.release(nd)
			return nil
		}
		nd.state[k] = required
	}
	return nd
}

// path lists the edges between successive cities.
func path(cities []int32) []Edge {
	var list []Edge
	for i := 1; i < len(cities); i++ {
		list = append(list, edge(cities[i-1], cities[i]))
	}
	return list
}

// spare returns a node with room, its contents undefined.
func (s *Search) spare() *node {
	if k := len(s.pool); k > 0 {
		nd := s.pool[k-1]
		s.pool = s.pool[:k-1]
		return nd
	}
	return &node{state: make([]uint8, len(s.p.graph.edges)), price: make([]int64, s.p.in.N)}
}

func (s *Search) release(nd *node) { s.pool = append(s.pool, nd) }

// child copies a node.
func (s *Search) child(of *node) *node {
	nd := s.spare()
	copy(nd.state, of.state)
	copy(nd.price, of.price)
	nd.sum, nd.fresh, nd.seen = of.sum, false, false
	nd.required = append(nd.required[:0], of.required...)
	nd.barred = append(nd.barred[:0], of.barred...)
	nd.prefix = append(nd.prefix[:0], of.prefix...)
	return nd
}
