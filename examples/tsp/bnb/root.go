package bnb

import (
	"cmp"
	"slices"
)

const rootRounds = 12 // of climbing and pricing

// root raises the bound of a problem: it climbs on a sparse graph, prices the
// result against all edges, adds those that were missing, and goes on until
// none are.
type root struct {
	*Problem
	stop func() bool
}

func (r *root) raise() {
	g := r.sparse()
	r.sum = unsetBound
	from := make([]int64, r.in.N)
	fresh := true // nothing is found by pricing since the last far climb
	for range rootRounds {
		before := r.sum
		found := r.climb(g, from, fresh)
		t := newDenseTree(r.in, r.shift, from)
		if t.sum > r.sum {
			r.sum = t.sum
			copy(r.price, from)
		}
		limit := r.limit(r.length)
		if r.sum > limit || r.stop() {
			return
		}
		fresh = t.sum >= found || !r.extend(g, t)
		if fresh && r.sum-before <= (limit-r.sum)/20 {
			return
		}
	}
}

// sparse is the graph of near neighbours and of the known tour.
func (r *root) sparse() *graph {
	var list []Edge
	n, k := r.in.N, min(sparseNear, r.in.N-1)
	for i, v := range nearest(r.in, k) {
		list = append(list, edge(int32(i/k), v))
	}
	for i, c := range r.tour {
		list = append(list, edge(int32(c), int32(r.tour[(i+1)%n])))
	}
	g := &graph{n: n}
	r.add(g, list)
	return g
}

// add puts edges into a graph that has no other use yet, each once.
func (r *root) add(g *graph, list []Edge) {
	g.edges = append(g.edges, list...)
	slices.SortFunc(g.edges, func(a, b Edge) int { return cmp.Or(cmp.Compare(a.U, b.U), cmp.Compare(a.V, b.V)) })
	g.edges = slices.Compact(g.edges)
	g.cost = g.cost[:0]
	for _, e := range g.edges {
		g.cost = append(g.cost, int64(r.in.Dist(int(e.U), int(e.V)))<<r.shift)
	}
	g.link()
}

// extend adds the edges of the dense tree that the graph lacks and says
// whether there were any.
func (r *root) extend(g *graph, t *denseTree) bool {
	var list []Edge
	t.edges(func(e Edge) {
		if g.find(e.U, e.V) < 0 {
			list = append(list, e)
		}
	})
	r.add(g, list)
	return len(list) > 0
}

// climb raises the bound on a graph, leaves its prices in from and returns it.
func (r *root) climb(g *graph, from []int64, first bool) int64 {
	a := newAscent(g)
	a.tree.load(g, make([]uint8, len(g.edges)))
	best, lambda := unsetBound, 2.0
	steps := 40 + min(r.in.N, 250)
	if !first {
		lambda = 0.3
	}
	limit0 := r.limit(r.length)
	limit := func() (int64, bool) { return limit0, r.stop() }
	for lambda > 0.01 {
		before := best
		how := a.climb(from, steps, lambda, limit)
		if a.bound > best {
			best = a.bound
			copy(from, a.best)
		}
		if how != spent {
			break
		}
		if best-before <= (limit0-best)/50 {
			lambda /= 2
		}
	}
	return best
}

// keep makes the graph of the problem: the edges that the bound leaves to a
// shorter tour.
func (r *root) keep() {
	g := &graph{n: r.in.N}
	r.graph = g
	limit := r.limit(r.length)
	defer g.link()
	if r.sum > limit {
		return
	}
	t := newDenseTree(r.in, r.shift, r.price)
	t.within(limit, func(e Edge, bound int64) {
		g.edges = append(g.edges, e)
		g.cost = append(g.cost, int64(r.in.Dist(int(e.U), int(e.V)))<<r.shift)
		g.bound = append(g.bound, bound)
	})
}
