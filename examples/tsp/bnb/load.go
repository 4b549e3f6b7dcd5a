package bnb

import "math"

// loadRate is how steeply work grows with the gap: see Load. Fitted to the
// nodes below the nodes of a breadth-first split of random instances of 100 to
// 140 towns, it came out between 5.5 and 7.4.
const loadRate = 7

// MaxLoad is the most that one open node counts in Load.
var MaxLoad = math.Exp(loadRate)

// Load estimates the work in the open nodes: the sum of exp(7 gap), where gap
// is the distance of a node's bound to the best tour known, as a fraction of
// what it is at the root. A node counts from 1 to MaxLoad. The work under a
// node spans several decades and its bound is what tells it best; the paper's
// estimate, LogLeaves, is the same for all nodes of a depth.
func (s *Search) Load() float64 {
	best := s.limit()
	span := max(1, best-s.p.sum)
	var load float64
	for _, nd := range s.open {
		gap := float64(best-s.sumOf(nd)) / float64(span)
		load += math.Exp(loadRate * max(0, min(1, gap)))
	}
	return load
}

// LogLeaves returns the natural logarithm of (n-t)!, the number of full tours
// that begin with t given towns of n (PEGASUS paper 4.3): as a number it would
// overflow beyond 20 towns left. It is 0 when t is n or more.
func LogLeaves(n, t int) float64 {
	log, _ := math.Lgamma(float64(max(0, n-t)) + 1)
	return log
}

// AddLog returns the logarithm of the sum of two numbers given by their
// logarithms; that of 0 is negative infinity.
func AddLog(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(b, -1) {
		return a
	}
	return a + math.Log1p(math.Exp(b-a))
}

// LogLeaves returns the logarithm of the paper's remaining work, the sum of
// (N-t)! over the open nodes; negative infinity when there are none. Only full
// tours count: a step that makes a partial tour takes nothing off, as the
// leaves below it are still to be searched. For subtasks of kind Edges, t is
// one more than the number of required edges.
func (s *Search) LogLeaves() float64 {
	sum := math.Inf(-1)
	for _, nd := range s.open {
		t := len(nd.prefix)
		if s.kind == Edges {
			t = len(nd.required) + 1
		}
		sum = AddLog(sum, LogLeaves(s.p.in.N, t))
	}
	return sum
}
