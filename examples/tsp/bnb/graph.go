package bnb

import "math"

// Edge joins two cities, U < V, numbered from 0.
type Edge struct{ U, V int32 }

// edge orders its cities.
func edge(a, b int32) Edge { return Edge{min(a, b), max(a, b)} }

// Costs, multipliers and bounds are whole numbers, distances shifted left by a
// few bits, so that every bound is exact and every machine computes the same.
const (
	costBits = 40             // a shifted distance has at most about this many
	forced   = int64(1) << 60 // subtracted from the cost of required edges
	settled  = math.MinInt64  // key of a city inside the tree
	unseen   = math.MaxInt64  // key of a city no edge leads to yet
	maxStep  = int64(1) << costBits
	maxPrice = int64(1) << (costBits + 4) // of a multiplier, either sign
)

// The states of an edge in a node of the search.
const (
	free uint8 = iota
	required
	forbidden
)

// graph holds the candidate edges of a problem.
type graph struct {
	n     int
	edges []Edge
	cost  []int64 // shifted distance
	bound []int64 // no tour with this edge is shorter (shifted), from the root
	start []int32 // of each city's halves
	half  []half
}

// half is an edge seen from one of its cities.
type half struct{ to, edge int32 }

// link fills start and half from the edges.
func (g *graph) link() {
	g.start = make([]int32, g.n+1)
	for _, e := range g.edges {
		g.start[e.U+1]++
		g.start[e.V+1]++
	}
	for i := range g.n {
		g.start[i+1] += g.start[i]
	}
	g.half = make([]half, 2*len(g.edges))
	fill := append([]int32(nil), g.start[:g.n]...)
	for i, e := range g.edges {
		g.half[fill[e.U]] = half{e.V, int32(i)}
		fill[e.U]++
		g.half[fill[e.V]] = half{e.U, int32(i)}
		fill[e.V]++
	}
}

// around returns the halves at a city.
func (g *graph) around(c int32) []half { return g.half[g.start[c]:g.start[c+1]] }

// find returns the number of the edge between two cities, or -1.
func (g *graph) find(a, b int32) int32 {
	if g.start[a+1]-g.start[a] > g.start[b+1]-g.start[b] {
		a, b = b, a
	}
	for _, h := range g.around(a) {
		if h.to == b {
			return h.edge
		}
	}
	return -1
}
