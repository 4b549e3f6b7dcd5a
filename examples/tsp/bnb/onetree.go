package bnb

import "slices"

// oneTree finds minimum 1-trees (Held and Karp 1970) over the edges of a graph
// that are not forbidden: a spanning tree and one more edge at one of its
// leaves, that leaf which makes the sum largest.
type oneTree struct {
	n     int
	start []int32 // of each city's live edges in arcs
	arcs  []arc

	order  []int32 // cities as the tree took them
	parent []int32
	via    []int32 // place of the edge to the parent in arcs
	key    []int64
	fringe []int32
	degree []int32
	leaf   int32 // the special city
	extra  int32 // place of its second edge
}

// arc is a live edge seen from one of its cities.
type arc struct {
	cost     int64 // shifted, less forced if required
	to, edge int32
}

func newOneTree(g *graph) *oneTree {
	n, h := g.n, len(g.half)
	return &oneTree{
		n: n, start: make([]int32, n+1), arcs: make([]arc, 0, h),
		order: make([]int32, 0, n), parent: make([]int32, n), via: make([]int32, n), key: make([]int64, n),
		fringe: make([]int32, 0, n), degree: make([]int32, n),
	}
}

// load takes the edges that state leaves.
func (t *oneTree) load(g *graph, state []uint8) {
	t.arcs = t.arcs[:0]
	for c := range g.n {
		for _, h := range g.around(int32(c)) {
			s := state[h.edge]
			if s == forbidden {
				continue
			}
			w := g.cost[h.edge]
			if s == required {
				w -= forced
			}
			t.arcs = append(t.arcs, arc{w, h.to, h.edge})
		}
		t.start[c+1] = int32(len(t.arcs))
	}
}

// build finds the 1-tree under the given prices of cities and returns its cost
// less twice the prices: a lower bound for every tour. It returns false if
// there is none, so no tour either.
func (t *oneTree) build(price []int64) (int64, bool) {
	if !t.span(price) {
		return 0, false
	}
	var sum int64
	for c, p := range price {
		t.degree[c] = 0
		sum -= 2 * p
	}
	for _, c := range t.order[1:] {
		p := t.parent[c]
		t.degree[c]++
		t.degree[p]++
		sum += plain(t.key[c])
	}
	second, ok := t.close(price)
	return sum + second, ok
}

// plain is the cost of an edge without what makes a required one come first.
func plain(w int64) int64 {
	if w < -forced/2 {
		w += forced
	}
	return w
}

// span grows the spanning tree by Prim's method from city 0. Afterwards key
// holds each city's cost to its parent.
func (t *oneTree) span(price []int64) bool {
	key, via, parent, fringe := t.key, t.via, t.parent, t.fringe[:0]
	for c := range key {
		key[c] = unseen
	}
	t.order = t.order[:0]
	u := int32(0)
	for {
		key[u] = settled
		t.order = append(t.order, u)
		if len(t.order) == t.n {
			break
		}
		pu, next := price[u], int32(-1)
		first := t.start[u]
		for i, a := range t.arcs[first:t.start[u+1]] {
			v := a.to
			w := a.cost + pu + price[v]
			if old := key[v]; w < old {
				if old == unseen {
					fringe = append(fringe, v)
				}
				key[v], parent[v], via[v] = w, u, first+int32(i)
				if w < -forced/2 {
					next = v // nothing can be cheaper
				}
			}
		}
		if next < 0 {
			if next, fringe = t.least(fringe); next < 0 {
				return false
			}
		}
		u = next
	}
	t.fringe = fringe[:0]
	for _, c := range t.order[1:] {
		key[c] = t.arcs[via[c]].cost + price[c] + price[parent[c]]
	}
	return true
}

// least takes the city of the least key off the fringe, or returns -1 if there
// is none. Cities that required edges have settled are still there and go too.
func (t *oneTree) least(fringe []int32) (int32, []int32) {
	best, next, at := int64(unseen), int32(-1), 0
	for i := 0; i < len(fringe); {
		v := fringe[i]
		w := t.key[v]
		if w == settled {
			fringe[i] = fringe[len(fringe)-1]
			fringe = fringe[:len(fringe)-1]
			continue
		}
		if w < best {
			best, next, at = w, v, i
		}
		i++
	}
	if next >= 0 {
		fringe[at] = fringe[len(fringe)-1]
		fringe = fringe[:len(fringe)-1]
	}
	return next, fringe
}

// close picks the leaf and its second edge and returns the edge's cost.
func (t *oneTree) close(price []int64) (int64, bool) {
	t.leaf = -1
	var worst int64
	for c := range int32(t.n) {
		if t.degree[c] != 1 {
			continue
		}
		place, w := t.cheapest(c, t.hook(c), -1, price)
		if place < 0 {
			return 0, false
		}
		if w = plain(w); t.leaf < 0 || w > worst {
			t.leaf, t.extra, worst = c, place, w
		}
	}
	t.degree[t.leaf]++
	t.degree[t.arcs[t.extra].to]++
	return worst, true
}

// hook returns the one city a leaf of the tree hangs on.
func (t *oneTree) hook(c int32) int32 {
	if c == t.order[0] {
		return t.order[1]
	}
	return t.parent[c]
}

// cheapest returns the cheapest edge at a city that leads to neither a nor b.
func (t *oneTree) cheapest(c, a, b int32, price []int64) (place int32, w int64) {
	place, w = -1, unseen
	first := t.start[c]
	for i, e := range t.arcs[first:t.start[c+1]] {
		if x := e.cost + price[e.to]; x < w && e.to != a && e.to != b {
			place, w = first+int32(i), x
		}
	}
	if place >= 0 {
		w += price[c]
	}
	return place, w
}

// isTour tells whether the 1-tree is one: every city has two edges.
func (t *oneTree) isTour() bool {
	for _, d := range t.degree {
		if d != 2 {
			return false
		}
	}
	return true
}

// tour walks a 1-tree that is a tour. Its tree is a path with the leaf at one
// end and the leaf's second edge closing it, so city 0, where the tree began,
// lies somewhere on it.
func (t *oneTree) tour() []int32 {
	var arms [2][]int32 // the two ways down from city 0
	arm := make([]int, t.n)
	used := 0
	for _, c := range t.order[1:] {
		if t.parent[c] == t.order[0] {
			arm[c] = used
			used++
		} else {
			arm[c] = arm[t.parent[c]]
		}
		arms[arm[c]] = append(arms[arm[c]], c)
	}
	path := make([]int32, 0, t.n)
	for _, c := range slices.Backward(arms[1]) {
		path = append(path, c)
	}
	path = append(path, t.order[0])
	return append(path, arms[0]...)
}
