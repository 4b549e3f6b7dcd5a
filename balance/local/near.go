package local

import (
	"slices"
	"time"
)

// stay is how long an object that came from a member does not go back there. Else two members that run out of work in turn
// would pass an object to and fro, each time with its state.
const stay = 10 * time.Second

// MayReturn reports whether an object may move back to the member that it came from, after it has stayed for a time where
// it is now. To other members it may move at any time.
func MayReturn(stayed time.Duration) bool { return stayed >= stay }

// MayMove reports whether an object with neighbours may move to a member that has some objects: to one that has
// a neighbour of it, or that has none (ALDY, section 3.4.2). An object without neighbours may move to any member. Where
// an object begins, the rule does not say.
func MayMove(near, has []string) bool {
	return len(near) == 0 || len(has) == 0 || slices.ContainsFunc(near, func(id string) bool { return slices.Contains(has, id) })
}

// Pull is how much the neighbours of an object that are among some objects attract it: the sum of their weights, in the
// order of near; beyond the end of weights each has 1 (ALDY, weighted directives).
func Pull(near []string, weights []float64, has []string) (sum float64) {
	for i, id := range near {
		if !slices.Contains(has, id) {
			continue
		}
		if i < len(weights) {
			sum += weights[i]
		} else {
			sum++
		}
	}
	return sum
}
