package bnb

import "math"

// fixer decides edges by the cost of the 1-tree without or with them.
type fixer struct {
	depth []int32
	swap  []int64 // cheapest edge that could replace a city's edge to its parent
}

func newFixer(n int) *fixer {
	return &fixer{depth: make([]int32, n), swap: make([]int64, n)}
}

// fix takes the 1-tree that t holds, of bound total under the given prices,
// and decides every edge that tours of at most limit must have or cannot have.
// It returns false if there is no such tour.
func (f *fixer) fix(t *oneTree, s *settler, price []int64, total, limit int64) bool {
	slack := limit - total
	f.prepare(t)
	if !f.fixLeaf(t, s, price, slack) {
		return false
	}
	for _, c := range t.order {
		for k := t.start[c]; k < t.start[c+1]; k++ {
			a := t.arcs[k]
			v := a.to
			if v < c || c == t.leaf || v == t.leaf || isTreeEdge(t, c, v) {
				continue
			}
			w := a.cost + price[c] + price[v]
			if top := f.walk(t, c, v, w); s.state[a.edge] == free && (top == math.MinInt64 || w-top > slack) {
				if !s.mustNot(a.edge) {
					return false
				}
			}
		}
	}
	for _, c := range t.order[1:] {
		w := t.key[c]
		if w < -forced/2 || c == t.leaf || t.parent[c] == t.leaf {
			continue
		}
		if f.swap[c] == math.MaxInt64 || f.swap[c]-w > slack {
			if !s.mustHave(t.arcs[t.via[c]].edge) {
				return false
			}
		}
	}
	return s.drain()
}

func (f *fixer) prepare(t *oneTree) {
	f.depth[t.order[0]] = 0
	for _, c := range t.order[1:] {
		f.depth[c] = f.depth[t.parent[c]] + 1
	}
	for c := range f.swap {
		f.swap[c] = math.MaxInt64
	}
}

func isTreeEdge(t *oneTree, c, v int32) bool {
	return c != t.order[0] && t.parent[c] == v || v != t.order[0] && t.parent[v] == c
}

// walk goes along the tree from c to v, notes on every edge that is not
// required that one of cost w could replace it, and returns the dearest of
// them, or the least number if there is none.
func (f *fixer) walk(t *oneTree, c, v int32, w int64) int64 {
	top := int64(math.MinInt64)
	for c != v {
		if f.depth[c] < f.depth[v] {
			c, v = v, c
		}
		if x := t.key[c]; x > -forced/2 {
			top = max(top, x)
			f.swap[c] = min(f.swap[c], w)
		}
		c = t.parent[c]
	}
	return top
}

// fixLeaf decides the edges of the leaf, which has two of its own choice.
func (f *fixer) fixLeaf(t *oneTree, s *settler, price []int64, slack int64) bool {
	c := t.leaf
	one, two := t.hook(c), t.arcs[t.extra].to
	worst := int64(math.MinInt64) // of its two edges, if not required
	third := int64(math.MaxInt64)
	var own [2]int32
	var cost [2]int64
	arcs := t.arcs[t.start[c]:t.start[c+1]]
	for _, a := range arcs {
		w := a.cost + price[c] + price[a.to]
		switch a.to {
		case one:
			own[0], cost[0] = a.edge, w
		case two:
			own[1], cost[1] = a.edge, w
		default:
			third = min(third, w)
			continue
		}
		if w > -forced/2 {
			worst = max(worst, w)
		}
	}
	for _, a := range arcs {
		w := a.cost + price[c] + price[a.to]
		if a.to != one && a.to != two && s.state[a.edge] == free && (worst == math.MinInt64 || w-worst > slack) && !s.mustNot(a.edge) {
			return false
		}
	}
	for i, e := range own {
		if s.state[e] == free && (third == math.MaxInt64 || third-cost[i] > slack) && !s.mustHave(e) {
			return false
		}
	}
	return true
}
