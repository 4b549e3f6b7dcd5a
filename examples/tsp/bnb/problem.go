package bnb

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/gopegasus/pegasus/examples/tsp/tsplib"
)

// sparseNear is how many neighbours a city has in the first graph of the root.
const sparseNear = 6

// Options configure Prepare; the zero value is useful.
type Options struct {
	// Seed is for the first tour, when Tour is nil.
	Seed uint64
	// Tour is a tour to start from, the shorter the better; nil means that
	// Prepare finds one with an Improver of its own.
	Tour []int
	// Stop, if not nil, is polled every few microseconds to milliseconds. Once
	// it returns true Prepare returns soon, with a weaker but valid Problem.
	Stop func() bool
}

// Problem is an instance made ready to be searched: a tour, a lower bound, the
// edges that a shorter tour can have, and the prices of the cities that gave
// the bound. It never changes and may be shared between goroutines.
type Problem struct {
	in      *tsplib.Instance
	divisor int // of every distance, so of every tour length
	tour    []int
	length  int
	shift   uint
	graph   *graph
	price   []int64
	sum     int64 // root bound, shifted
}

// Prepare makes an instance ready. It refuses a Tour that does not visit every
// city once. The result depends on the instance, Seed and Tour alone unless
// Stop fires.
func Prepare(in *tsplib.Instance, o Options) (*Problem, error) {
	p := &Problem{in: in, divisor: divisor(in), tour: slices.Clone(o.Tour), shift: shiftFor(in), price: make([]int64, in.N)}
	if o.Stop == nil {
		o.Stop = func() bool { return false }
	}
	if o.Tour == nil {
		p.tour = improved(in, o)
	}
	if err := visitsAll(in, p.tour); err != nil {
		return nil, fmt.Errorf("bnb: cannot prepare %s: %w", in.Name, err)
	}
	p.length = in.TourLength(p.tour)
	if in.N <= 3 { // one tour only
		p.sum = int64(p.length) << p.shift
		p.graph = &graph{n: in.N}
		p.graph.link()
		return p, nil
	}
	r := &root{Problem: p, stop: o.Stop}
	r.raise()
	r.keep()
	return p, nil
}

// improved runs an Improver until it is done.
func improved(in *tsplib.Instance, o Options) []int {
	im := NewImprover(in, ImproverOptions{Seed: o.Seed})
	im.finish(o.Stop)
	tour, _ := im.Best()
	return tour
}

// from is the problem with a shorter tour, and so fewer candidate edges.
func (p *Problem) from(tour []int) *Problem {
	q := *p
	q.tour, q.length = tour, p.in.TourLength(tour)
	(&root{Problem: &q}).keep()
	return &q
}

// Instance returns the instance the problem was made of.
func (p *Problem) Instance() *tsplib.Instance { return p.in }

// Tour returns a copy of the tour the problem was prepared with.
func (p *Problem) Tour() []int { return slices.Clone(p.tour) }

// Length returns the length of Tour.
func (p *Problem) Length() int { return p.length }

// LowerBound returns a length that no tour is shorter than. If it equals
// Length, Tour is optimal.
func (p *Problem) LowerBound() int { return p.lower(p.sum, p.length) }

// Edges returns the number of candidate edges. No other edge can be part of a
// tour shorter than Length.
func (p *Problem) Edges() int { return len(p.graph.edges) }

// Next returns the greatest length below the given one that a tour can have,
// as far as the common divisor of the distances tells; -1 if there is none.
func (p *Problem) Next(length int) int {
	if length <= 0 {
		return -1
	}
	return (length - 1) / p.divisor * p.divisor
}

// lower turns a shifted bound into a length, given that a tour of length best
// is known: what cannot be improved on is best itself.
func (p *Problem) lower(sum int64, best int) int {
	if sum > p.limit(best) {
		return best
	}
	up := int((sum + 1<<p.shift - 1) >> p.shift)
	up = (max(0, up) + p.divisor - 1) / p.divisor * p.divisor
	return min(best, up)
}

// limit is the shifted length of the longest tour worth finding.
func (p *Problem) limit(best int) int64 { return int64(p.Next(best)) << p.shift }

// divisor returns the greatest common divisor of all distances, 1 if all are 0.
func divisor(in *tsplib.Instance) int {
	g := 0
	for i := range in.N {
		for _, d := range in.Row(i)[:i] {
			for a := int(d); a != 0; {
				g, a = a, g%a
			}
			if g == 1 {
				return 1
			}
		}
	}
	return max(1, g)
}

// shiftFor leaves as many bits for fractions as keeps all sums in 64 bits.
func shiftFor(in *tsplib.Instance) uint {
	var most int32
	for i := range in.N {
		most = max(most, slices.Max(in.Row(i)))
	}
	return uint(max(0, min(20, costBits-bits.Len32(uint32(most)))))
}
