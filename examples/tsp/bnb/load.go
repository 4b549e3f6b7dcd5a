package bnb

import (
	"fmt"
	"math"
)

// Estimate says how the work in a subtask is told before it is searched. An
// estimate has no unit; only those of one instance compare, and they add up.
type Estimate uint8

const (
	// Gap is exp(7 g), where g is the distance of the subtask's lower bound to
	// the best tour known, as a fraction of what it is for all tours, from 0 to
	// 1. The work in subtasks spans several decades, and the bound is what
	// tells it best.
	Gap Estimate = 1 + iota
	// Leaves is the paper's remaining work (PEGASUS paper, section 4.3): (N-t)!,
	// the number of full tours that begin with t given cities of N, here as a
	// fraction of the (N-1)! tours in all, since the number itself overflows
	// beyond 170 cities. It is the same for all subtasks of a depth, however much
	// of them the bound closes. For subtasks of kind Edges, t is one more than
	// the number of required edges.
	Leaves
)

// String returns "gap" or "leaves".
func (e Estimate) String() string {
	switch e {
	case Gap:
		return "gap"
	case Leaves:
		return "leaves"
	default:
		return fmt.Sprintf("Estimate(%d)", uint8(e))
	}
}

// ParseEstimate is the inverse of String.
func ParseEstimate(s string) (Estimate, error) {
	for _, e := range []Estimate{Gap, Leaves} {
		if s == e.String() {
			return e, nil
		}
	}
	return 0, fmt.Errorf("bnb: unknown estimate of work %q: use gap or leaves", s)
}

// loadRate is how steeply work grows with the gap. Fitted to the nodes below
// the nodes of a breadth-first split of random instances of 100 to 140 cities,
// it came out between 5.5 and 7.4.
const loadRate = 7

// Load estimates the work in a subtask, given the length of the best tour
// known. It panics if the estimate is none of those above.
func (p *Problem) Load(t Subtask, best int, by Estimate) float64 {
	return p.load(int64(t.LowerBound)<<p.shift, p.limit(best), fixed(t.Required, t.Prefix), by)
}

// Load estimates the work in the open nodes: the sum of theirs.
func (s *Search) Load(by Estimate) float64 {
	limit := s.limit()
	var sum float64
	for _, nd := range s.open {
		sum += s.p.load(s.sumOf(nd), limit, fixed(nd.required, nd.prefix), by)
	}
	return sum
}

// fixed is the number of cities that stand one after the other.
func fixed(required []Edge, prefix []int32) int { return max(len(prefix), len(required)+1) }

func (p *Problem) load(sum, limit int64, t int, by Estimate) float64 {
	switch by {
	case Gap:
		gap := float64(limit-sum) / float64(max(1, limit-p.sum))
		return math.Exp(loadRate * max(0, min(1, gap)))
	case Leaves:
		return math.Exp(logLeaves(p.in.N, t) - logLeaves(p.in.N, 1))
	default:
		panic("bnb: no such estimate: " + by.String())
	}
}

// logLeaves is the natural logarithm of (n-t)!, 0 when t is n or more.
func logLeaves(n, t int) float64 {
	log, _ := math.Lgamma(float64(max(0, n-t)) + 1)
	return log
}
