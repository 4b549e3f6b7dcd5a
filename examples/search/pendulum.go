package main

import (
	"math"
	"math/rand/v2"
)

// parameters are those of a damped pendulum: angle” = -Pull sin(angle) - Drag angle',
// from rest at the angle Start.
type parameters struct{ Pull, Drag, Start float64 }

// The box that is searched.
var (
	lowest  = parameters{0.5, 0, -3}
	highest = parameters{60, 1, 3}
)

// The times at which the angle was measured: every tenth of a second.
const (
	samples = 120
	between = 0.1
	steps   = 4 // of the integration from one to the next
)

// swing returns the angles of a pendulum at these times, by the classical method of
// Runge and Kutta.
func swing(p parameters) []float64 {
	push := func(angle, speed float64) float64 { return -p.Pull*math.Sin(angle) - p.Drag*speed }
	const h = between / steps
	angles := make([]float64, 0, samples)
	x, v := p.Start, 0.0
	for range samples {
		angles = append(angles, x)
		for range steps {
			x1, v1 := v, push(x, v)
			x2, v2 := v+h/2*v1, push(x+h/2*x1, v+h/2*v1)
			x3, v3 := v+h/2*v2, push(x+h/2*x2, v+h/2*v2)
			x4, v4 := v+h*v3, push(x+h*x3, v+h*v3)
			x, v = x+h/6*(x1+2*x2+2*x3+x4), v+h/6*(v1+2*v2+2*v3+v4)
		}
	}
	return angles
}

// measured is what the search is to explain: the swing of one pendulum, with errors
// of measurement of up to 0.005.
var measured = measure(parameters{9.81, 0.02, 2.5})

func measure(p parameters) []float64 {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // It is to be repeatable.
	angles := swing(p)
	for i := range angles {
		angles[i] += 0.01 * (random.Float64() - 0.5)
	}
	return angles
}

// distance is how far a pendulum is from what was measured: the root of the mean
// square.
func distance(p parameters) float64 {
	sum := 0.0
	for i, angle := range swing(p) {
		sum += (angle - measured[i]) * (angle - measured[i])
	}
	return math.Sqrt(sum / samples)
}

// climb goes from a random place to one of the many local minima, by random steps that
// grow with success and shrink with failure. It gives up early when stop says so.
func climb(random *rand.Rand, stop func() bool) (best parameters, errorOf float64) {
	within := func(at, width, low, high float64) float64 {
		return min(max(at+width*(high-low)*random.NormFloat64(), low), high)
	}
	uniform := func(low, high float64) float64 { return low + (high-low)*random.Float64() }
	best = parameters{uniform(lowest.Pull, highest.Pull), uniform(lowest.Drag, highest.Drag), uniform(lowest.Start, highest.Start)}
	errorOf = distance(best)
	for width := 0.01; width > 1e-5 && !stop(); {
		next := parameters{
			within(best.Pull, width, lowest.Pull, highest.Pull),
			within(best.Drag, width, lowest.Drag, highest.Drag),
			within(best.Start, width, lowest.Start, highest.Start),
		}
		if e := distance(next); e < errorOf {
			best, errorOf = next, e
			width *= 2
		} else {
			width *= 0.9
		}
	}
	return best, errorOf
}
