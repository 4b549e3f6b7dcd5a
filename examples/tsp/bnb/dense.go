package bnb

import (
	"math"

	"github.com/gopegasus/pegasus/examples/tsp/tsplib"
)

// denseTree is a minimum 1-tree over all edges of an instance, found in a
// time that grows with the square of the cities.
type denseTree struct {
	in     *tsplib.Instance
	shift  uint
	price  []int64
	order  []int32
	parent []int32
	key    []int64 // cost to the parent
	leaf   int32
	mate   int32 // at the other end of the leaf's second edge
	second int64 // its cost
	sum    int64 // bound, shifted
}

func newDenseTree(in *tsplib.Instance, shift uint, price []int64) *denseTree {
	t := &denseTree{in: in, shift: shift, price: price, parent: make([]int32, in.N), key: make([]int64, in.N)}
	t.span()
	t.close()
	return t
}

// span grows the spanning tree from city 0 by Prim's method on a matrix.
func (t *denseTree) span() {
	rest := make([]int32, 0, t.in.N)
	for c := 1; c < t.in.N; c++ {
		t.key[c] = math.MaxInt64
		rest = append(rest, int32(c))
	}
	u := int32(0)
	t.order = append(t.order, 0)
	for len(rest) > 0 {
		row, pu := t.in.Row(int(u)), t.price[u]
		at, best := 0, int64(math.MaxInt64)
		for i, v := range rest {
			if w := int64(row[v])<<t.shift + pu + t.price[v]; w < t.key[v] {
				t.key[v], t.parent[v] = w, u
			}
			if t.key[v] < best {
				at, best = i, t.key[v]
			}
		}
		u = rest[at]
		rest[at] = rest[len(rest)-1]
		rest = rest[:len(rest)-1]
		t.order = append(t.order, u)
		t.sum += t.key[u]
	}
	for _, p := range t.price {
		t.sum -= 2 * p
	}
}

// close adds the second edge of the leaf for which that costs most.
func (t *denseTree) close() {
	degree := make([]int32, t.in.N)
	for _, c := range t.order[1:] {
		degree[c]++
		degree[t.parent[c]]++
	}
	t.leaf, t.second = -1, math.MinInt64
	for c := range int32(t.in.N) {
		if degree[c] != 1 {
			continue
		}
		if mate, w := t.nearest(c); t.leaf < 0 || w > t.second {
			t.leaf, t.mate, t.second = c, mate, w
		}
	}
	t.sum += t.second
}

// nearest returns the cheapest edge of a leaf beside its edge of the tree.
func (t *denseTree) nearest(c int32) (mate int32, w int64) {
	mate, w = -1, math.MaxInt64
	hook := t.hook(c)
	row := t.in.Row(int(c))
	for v, d := range row {
		if x := int64(d)<<t.shift + t.price[v]; x < w && int32(v) != c && int32(v) != hook {
			mate, w = int32(v), x
		}
	}
	return mate, w + t.price[c]
}

func (t *denseTree) hook(c int32) int32 {
	if c == 0 {
		return t.order[1]
	}
	return t.parent[c]
}

// edges calls yield for every edge of the 1-tree.
func (t *denseTree) edges(yield func(Edge)) {
	for _, c := range t.order[1:] {
		yield(edge(c, t.parent[c]))
	}
	yield(edge(t.leaf, t.mate))
}

// within calls yield for every edge that a tour of at most limit (shifted) may
// have, with the bound of the tours that have it, in order of the cities.
func (t *denseTree) within(limit int64, yield func(e Edge, bound int64)) {
	kids := t.children()
	top := make([]int64, t.in.N) // dearest edge between the current city and each
	stack := make([]int32, 0, t.in.N)
	for c := range int32(t.in.N) {
		t.tops(c, kids, top, stack)
		row, pc := t.in.Row(int(c)), t.price[c]
		for v := c + 1; int(v) < t.in.N; v++ {
			more := int64(row[v])<<t.shift + pc + t.price[v]
			switch {
			case c != t.leaf && v != t.leaf:
				more -= top[v]
			case t.hook(t.leaf) == c+v-t.leaf:
				more = 0
			default:
				more -= t.second
			}
			if t.sum+more <= limit {
				yield(Edge{c, v}, t.sum+max(0, more))
			}
		}
	}
}

// children lists the tree by city: the cities below each.
func (t *denseTree) children() [][]int32 {
	kids := make([][]int32, t.in.N)
	for _, c := range t.order[1:] {
		kids[t.parent[c]] = append(kids[t.parent[c]], c)
	}
	return kids
}

// tops finds the dearest edge on the path from c to every other city.
func (t *denseTree) tops(c int32, kids [][]int32, top []int64, stack []int32) {
	above, x := c, int64(math.MinInt64)
	top[c] = x
	below := int32(-1) // where the walk up came from
	for {
		top[above] = x
		for _, k := range kids[above] {
			if k != below {
				top[k] = max(x, t.key[k])
				stack = append(stack, k)
			}
		}
		for len(stack) > 0 {
			u := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			for _, k := range kids[u] {
				top[k] = max(top[u], t.key[k])
				stack = append(stack, k)
			}
		}
		if above == 0 {
			return
		}
		x = max(x, t.key[above])
		below, above = above, t.parent[above]
	}
}
