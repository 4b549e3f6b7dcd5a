package bnb

// ascent raises the 1-tree bound by subgradient steps on the prices of cities
// (Held and Karp 1971): cities with too many edges get dearer, those with too
// few cheaper, which changes the length of no tour relative to the bound.
type ascent struct {
	tree  *oneTree
	price []int64 // current
	prev  []int32 // last step's degrees less two
	best  []int64 // prices of the best bound
	bound int64   // best bound, shifted
}

func newAscent(g *graph) *ascent {
	return &ascent{tree: newOneTree(g), price: make([]int64, g.n), prev: make([]int32, g.n), best: make([]int64, g.n)}
}

// How a climb ended.
type outcome uint8

const (
	spent   outcome = iota // all steps done
	closed                 // the bound exceeds the limit, or no tour is left
	toured                 // the 1-tree is a tour within the limit
	stopped                // the caller asked for it
)

// climb makes up to the given number of steps from the prices given, first
// aiming lambda times as far as needed to reach the limit, less and less far
// later on. limit is asked before every step and may fall; stop, which may be
// nil, likewise. best and bound hold the best prices and their bound.
func (a *ascent) climb(from []int64, steps int, lambda float64, limit func() (int64, bool)) outcome {
	copy(a.price, from)
	clear(a.prev)
	a.bound = unsetBound
	decay := 1 - 2/float64(steps+2)
	for range steps {
		most, stop := limit()
		if stop {
			return stopped
		}
		sum, ok := a.tree.build(a.price)
		if !ok {
			return closed
		}
		if sum > a.bound {
			a.bound = sum
			copy(a.best, a.price)
		}
		switch {
		case sum > most:
			return closed
		case a.tree.isTour():
			return toured
		}
		a.step(lambda * float64(most-sum+1))
		lambda *= decay
	}
	return spent
}

const unsetBound = -int64(1) << 62

// step moves the prices along the degrees, mixed with the step before, so far
// that the bound would rise by gain if it were linear.
func (a *ascent) step(gain float64) {
	var norm int64
	for _, d := range a.tree.degree {
		norm += int64(d-2) * int64(d-2)
	}
	length := min(maxStep, 1+int64(gain/float64(norm)))
	for c, d := range a.tree.degree {
		g := d - 2
		move := length * int64(7*g+3*a.prev[c]) / 10
		a.prev[c] = g
		a.price[c] = max(-maxPrice, min(maxPrice, a.price[c]+move))
	}
}
