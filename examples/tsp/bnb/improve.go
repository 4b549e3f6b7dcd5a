package bnb

import (
	"fmt"
	"math/rand/v2"

	"github.com/gopegasus/pegasus/examples/tsp/tsplib"
)

// Start says where an Improver begins.
type Start uint8

const (
	// Good starts from a nearest-neighbour tour.
	Good Start = iota
	// Poor starts from a random order of the cities, several times longer than
	// the optimum, for those who want to watch improvements.
	Poor
)

const (
	improverNear = 10 // neighbours tried a city
	kickReach    = 50 // cities in each of the two paths a kick exchanges
	sliceMoves   = 8  // moves of the first descent a Step makes at most
)

// ImproverOptions configure NewImprover; the zero value is useful.
type ImproverOptions struct {
	Seed  uint64 // of every random choice
	Start Start
	Kicks int // budget in kicks; 0 means 20 for each city
	Runs  int // starts that share the budget; 0 means 2
}

// Improver shortens a tour by local search: 2-opt and Or-opt on neighbour
// lists, then local double-bridge kicks, each taken back unless it helps.
// The same instance, options and offers give the same tours.
// It is not safe for concurrent use.
type Improver struct {
	in     *tsplib.Instance
	rng    *rand.Rand
	near   []int32
	k      int
	start  Start
	budget int // kicks left
	each   int // kicks from one start to the next
	run    int // of these, left

	ring    *ring
	length  int
	queue   []int32 // cities to look at, a stack
	queued  []bool
	settled bool // the descent from the start has ended

	best       []int32
	bestLength int
}

// NewImprover returns an Improver with its first tour made, not yet improved.
func NewImprover(in *tsplib.Instance, o ImproverOptions) *Improver {
	if o.Kicks == 0 {
		o.Kicks = 20 * in.N
	}
	if o.Runs == 0 {
		o.Runs = 2
	}
	each := (o.Kicks + o.Runs - 1) / o.Runs
	im := &Improver{
		in: in, rng: rand.New(rand.NewPCG(o.Seed, 0x7470)), near: nearest(in, improverNear), k: min(improverNear, in.N-1),
		start: o.Start, budget: o.Kicks, each: each, run: each, queued: make([]bool, in.N),
	}
	im.begin(im.first())
	im.keep()
	return im
}

// Best returns a copy of the best tour and its length.
func (im *Improver) Best() ([]int, int) { return widen(im.best), im.bestLength }

// Length returns the length of the best tour; it never grows.
func (im *Improver) Length() int { return im.bestLength }

// Offer goes on from the given tour if it is better than the best so far.
// A tour that does not visit every city once is refused with an error.
func (im *Improver) Offer(tour []int) error {
	if err := visitsAll(im.in, tour); err != nil {
		return fmt.Errorf("bnb: tour offered: %w", err)
	}
	if im.in.TourLength(tour) < im.bestLength {
		im.begin(narrow(tour))
		im.keep()
	}
	return nil
}

// Step does a few moves of the first descent, or one kick: microseconds of
// work. It says whether the best tour became shorter, and whether the budget
// is spent, after which it does nothing.
func (im *Improver) Step() (improved, done bool) {
	switch {
	case im.in.N < 4 || im.settled && im.budget <= 0:
		return false, true
	case !im.settled:
		im.settled = im.descend(sliceMoves)
		im.ring.log = im.ring.log[:0]
	case im.run <= 0:
		im.run = im.each
		im.begin(im.first())
	default:
		im.attempt()
	}
	if im.length < im.bestLength {
		im.keep()
		return true, false
	}
	return false, false
}

// finish steps until the budget is spent or it is stopped.
func (im *Improver) finish(stop func() bool) {
	for done := false; !done && !stop(); {
		_, done = im.Step()
	}
}

// attempt kicks, repairs, and keeps the tour if it is no longer than before.
func (im *Improver) attempt() {
	im.budget--
	im.run--
	before := im.length
	im.kick()
	im.descend(-1)
	if im.length > before {
		im.ring.undo()
		im.length = before
	}
	im.ring.log = im.ring.log[:0]
}

func (im *Improver) keep() {
	im.best = append(im.best[:0], im.ring.order...)
	im.bestLength = im.length
}

// begin makes the given tour the current one with everything to look at.
func (im *Improver) begin(order []int32) {
	im.ring = newRing(order)
	im.length = im.in.TourLength(widen(order))
	im.settled = false
	for _, c := range order {
		im.push(c)
	}
}

// first makes a tour to start from.
func (im *Improver) first() []int32 {
	order := make([]int32, im.in.N)
	for i := range order {
		order[i] = int32(i)
	}
	if im.start == Poor {
		im.rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		return order
	}
	at := im.rng.IntN(len(order))
	order[0], order[at] = order[at], order[0]
	for i := 1; i < len(order); i++ {
		row, best := im.in.Row(int(order[i-1])), i
		for j := i + 1; j < len(order); j++ {
			if row[order[j]] < row[order[best]] {
				best = j
			}
		}
		order[i], order[best] = order[best], order[i]
	}
	return order
}

// kick exchanges two neighbouring paths: a double bridge close by.
func (im *Improver) kick() {
	n := len(im.ring.order)
	reach := min(kickReach, (n-1)/2)
	at, a, b := im.rng.IntN(n), 1+im.rng.IntN(reach), 1+im.rng.IntN(reach)
	place := func(k int) int32 { return int32((at + k) % n) }
	city := func(k int) int32 { return im.ring.order[place(k)] }
	ends := [6]int32{city(0), city(1), city(a), city(a + 1), city(a + b), city(a + b + 1)}
	d := im.in.Dist
	im.length += d(int(ends[0]), int(ends[3])) + d(int(ends[4]), int(ends[1])) + d(int(ends[2]), int(ends[5]))
	im.length -= d(int(ends[0]), int(ends[1])) + d(int(ends[2]), int(ends[3])) + d(int(ends[4]), int(ends[5]))
	for _, part := range [3][2]int32{{place(1), place(a)}, {place(a + 1), place(a + b)}, {place(1), place(a + b)}} {
		im.ring.log = append(im.ring.log, part)
		im.ring.turn(part[0], part[1])
	}
	for _, c := range ends {
		im.push(c)
	}
}

func widen(order []int32) []int {
	tour := make([]int, len(order))
	for i, c := range order {
		tour[i] = int(c)
	}
	return tour
}

func narrow(tour []int) []int32 {
	order := make([]int32, len(tour))
	for i, c := range tour {
		order[i] = int32(c)
	}
	return order
}
