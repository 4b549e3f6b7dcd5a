package bnb

import "math"

// loadRate is how steeply work grows with the gap. Fitted to the nodes below
// the nodes of a breadth-first split of random instances of 100 to 140 cities,
// it came out between 5.5 and 7.4.
const loadRate = 7

// Load estimates the work in a subtask of a lower bound, given the length of the best
// tour known: exp(7 g), where g is the distance of the bound to that tour, as a
// fraction of what it is for all tours, from 0 to 1. The work in subtasks spans several
// decades, and the bound is what tells it best. An estimate has no unit; only those of
// one instance compare, and they add up.
func (p *Problem) Load(bound, best int) float64 {
	return p.load(int64(bound)<<p.shift, p.limit(best))
}

// Load estimates the work in the open nodes: the sum of theirs.
func (s *Search) Load() float64 {
	limit := s.limit()
	var sum float64
	for _, nd := range s.open {
		sum += s.p.load(nd.sum, limit)
	}
	return sum
}

func (p *Problem) load(sum, limit int64) float64 {
	gap := float64(limit-sum) / float64(max(1, limit-p.sum))
	return math.Exp(loadRate * max(0, min(1, gap)))
}
