package bnb_test

import (
	"math"
	"testing"

	"github.com/gopegasus/pegasus/examples/tsp/bnb"
)

// TestEstimate (P38): the paper's estimate counts to 0 where all tours are made or cut off, as the case pegasus-s of the
// golden numbers has it: S is 120 for five cities, partial tours would make that 325 steps, and 20! is the last that fits.
func TestEstimate(t *testing.T) {
	const cities = 5
	for _, cutAt := range []int{0, 1, 2, 3} { // A partial tour with so many cities left is cut off; at 0 none is.
		e, steps, full := bnb.NewEstimate(cities), 0, int64(0)
		if e.Left() != 120 {
			t.Fatalf("S is %d", e.Left())
		}
		var develop func(left int)
		develop = func(left int) {
			for range left {
				steps++
				switch rest := left - 1; rest {
				case 0:
					full++
					e.Full()
				case cutAt: // Not 0.
					e.CutOff(rest)
				default:
					develop(rest)
				}
			}
		}
		develop(cities)
		if e.Left() != 0 {
			t.Errorf("%d is left, cut off at %d", e.Left(), cutAt)
		}
		if cutAt == 0 && (steps != 325 || full != 120) {
			t.Errorf("%d steps, %d full tours; want 325 and 120", steps, full)
		}
	}
	twenty, more := bnb.NewEstimate(20), bnb.NewEstimate(21)
	if twenty.Left() != 2432902008176640000 || more.Left() != math.MaxInt64 {
		t.Errorf("20 cities: %d, 21 cities: %d", twenty.Left(), more.Left())
	}
	if more.CutOff(20); more.Left() != math.MaxInt64 {
		t.Errorf("%d after a cut, though the number is not known", more.Left())
	}
	if twenty.CutOff(19); twenty.Left() != 2432902008176640000-121645100408832000 {
		t.Errorf("%d after a cut", twenty.Left())
	}
}
