package local

import "slices"

// MayMove reports whether an object with neighbours may move to a member that has the objects
// has. It may if one of these is a neighbour, or if the member has no objects (ALDY, section
// 3.4.2). An object without neighbours may move to any member. The rule does not say where an
// object begins.
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
