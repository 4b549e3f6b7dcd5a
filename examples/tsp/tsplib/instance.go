package tsplib

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
)

const (
	// MaxN is the largest number of cities an instance may have.
	MaxN = 2000
	// MaxWeight is the largest distance between two cities.
	MaxWeight = math.MaxInt32
	// randomSide is the side of the square in which Random draws its cities.
	randomSide = 1_000_000
)

// Instance is a symmetric travelling salesman problem: N cities and the
// distance between any two. It is immutable and safe for concurrent use.
type Instance struct {
	Name string // as the caller or the file called it
	N    int    // number of cities, 1 to MaxN
	dist []int32
}

// Dist returns the distance between cities i and j, both from 0 to N-1.
func (in *Instance) Dist(i, j int) int { return int(in.dist[i*in.N+j]) }

// Row returns the distances from city i to every city. The slice is the
// instance's own: read it, never write it.
func (in *Instance) Row(i int) []int32 { return in.dist[i*in.N : (i+1)*in.N : (i+1)*in.N] }

// TourLength returns the length of the closed tour through the given cities in
// the given order. It does not check that the tour is one.
func (in *Instance) TourLength(tour []int) int {
	sum := 0
	for i, c := range tour {
		sum += in.Dist(c, tour[(i+1)%len(tour)])
	}
	return sum
}

// Random draws n cities uniformly from a square of side 1,000,000, with
// distances as in EUC_2D. Equal arguments give equal instances on every
// platform. It refuses n outside 1 to MaxN.
func Random(n int, seed uint64) (*Instance, error) {
	if n < 1 || n > MaxN {
		return nil, fmt.Errorf("tsplib: random instance of %d cities: give 1 to %d", n, MaxN)
	}
	src := rand.NewPCG(seed, 0x9e3779b97f4a7c15)
	pts := make([]point, n)
	draw := func() float64 {
		hi, _ := bits.Mul64(src.Uint64(), randomSide)
		return float64(hi)
	}
	for i := range pts {
		pts[i] = point{x: draw(), y: draw()}
	}
	in := newInstance(fmt.Sprintf("random:%d:%d", n, seed), n)
	if err := in.fill(pts, euclid); err != nil {
		return nil, fmt.Errorf("tsplib: %s: %w", in.Name, err)
	}
	return in, nil
}

func newInstance(name string, n int) *Instance {
	return &Instance{Name: name, N: n, dist: make([]int32, n*n)}
}

// fill sets every distance from the cities' coordinates.
func (in *Instance) fill(pts []point, d metric) error {
	for i := range pts {
		for j := range i {
			w := d(pts[i], pts[j])
			if !(w >= 0 && w <= MaxWeight) {
				return fmt.Errorf("distance between cities %d and %d exceeds %d: scale the coordinates down", j+1, i+1, MaxWeight)
			}
			in.dist[i*in.N+j], in.dist[j*in.N+i] = int32(w), int32(w)
		}
	}
	return nil
}
