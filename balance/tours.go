package balance

import "math"

// Tours is the paper's estimate of the work left in a subtask of a tour search
// (section 4.3): S = (N-t)!, the complete tours below a path of t of N cities.
// The paper takes 1 from S for each step to a partial tour as well, which takes
// 325 from S = 120 where 5 cities are left; S counts complete tours, so only
// these are taken. Above 18 cities S is rounded, above 170 it is the greatest
// float64. All subtasks of one depth have the same S: it says nothing about
// which of them is more work.
//
// The zero Tours has nothing left. It is not safe for concurrent use.
type Tours struct{ left float64 }

// ToursBelow returns the complete tours below a path that leaves some cities to
// be visited; below 0 counts as none.
func ToursBelow(cities int) Tours {
	if cities < 0 {
		return Tours{}
	}
	return Tours{factorial(cities)}
}

// Left is S, the weight to report: 0 or more, finite.
func (t *Tours) Left() float64 { return t.left }

// Found takes off one complete tour that was looked at.
func (t *Tours) Found() { t.take(1) }

// Pruned takes off the tours below a partial tour that was given up with some
// cities left.
func (t *Tours) Pruned(cities int) {
	if cities >= 0 {
		t.take(factorial(cities))
	}
}

func (t *Tours) take(tours float64) { t.left = max(0, t.left-tours) }

func factorial(n int) float64 {
	f := 1.0
	for i := 2; i <= n; i++ {
		if f *= float64(i); math.IsInf(f, 1) {
			return math.MaxFloat64
		}
	}
	return f
}
