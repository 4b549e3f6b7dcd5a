package bnb

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/examples/tsp/tsplib"
)

// everyTour calls yield with every tour from city 0, both ways round.
func everyTour(n int, yield func(tour []int)) {
	tour := make([]int, n)
	for i := range tour {
		tour[i] = i
	}
	var place func(at int)
	place = func(at int) {
		if at == n {
			yield(tour)
			return
		}
		for i := at; i < n; i++ {
			tour[at], tour[i] = tour[i], tour[at]
			place(at + 1)
			tour[at], tour[i] = tour[i], tour[at]
		}
	}
	place(1)
}

func edgesOf(tour []int) map[Edge]bool {
	set := map[Edge]bool{}
	for i, c := range tour {
		set[edge(int32(c), int32(tour[(i+1)%len(tour)]))] = true
	}
	return set
}

// complete is the graph of all edges of an instance.
func complete(in *tsplib.Instance, shift uint) *graph {
	g := &graph{n: in.N}
	for v := range int32(in.N) {
		for u := range v {
			g.edges = append(g.edges, Edge{u, v})
			g.cost = append(g.cost, int64(in.Dist(int(u), int(v)))<<shift)
		}
	}
	g.link()
	return g
}

// Under any prices, with any edges decided, no tour within the limit that fits
// the decisions is shorter than the bound or loses to a fixing.
func TestFixingKeepsEveryTourWithinTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInstance(t, 4, 7)
		const shift = 4
		g := complete(in, shift)
		state := rapid.SliceOfN(rapid.SampledFrom([]uint8{free, free, free, free, required, forbidden}), len(g.edges), len(g.edges)).Draw(t, "state")
		price := drawPrices(t, in.N)
		order := rapid.Permutation(inOrder(in.N)).Draw(t, "limit tour")
		limit := int64(in.TourLength(order)) << shift
		var fitting [][]int
		everyTour(in.N, func(tour []int) {
			if int64(in.TourLength(tour))<<shift <= limit && fits(g, state, tour) {
				fitting = append(fitting, append([]int(nil), tour...))
			}
		})
		set, tree := newSettler(g), newOneTree(g)
		alive := set.load(state)
		tree.load(g, state)
		sum, ok := tree.build(price)
		alive = alive && ok && newFixer(in.N).fix(tree, set, price, sum, limit)
		for _, tour := range fitting {
			if !alive || !fits(g, state, tour) || sum > int64(in.TourLength(tour))<<shift {
				t.Fatalf("lost tour %v of %d within %d: bound %d, alive %v", tour, in.TourLength(tour)<<shift, limit, sum, alive)
			}
		}
	})
}

func inOrder(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

func drawPrices(t *rapid.T, n int) []int64 {
	return rapid.SliceOfN(rapid.Int64Range(-20_000, 20_000), n, n).Draw(t, "prices")
}

// fits tells whether a tour has every required and no forbidden edge.
func fits(g *graph, state []uint8, tour []int) bool {
	set := edgesOf(tour)
	for i, e := range g.edges {
		if state[i] == required && !set[e] || state[i] == forbidden && set[e] {
			return false
		}
	}
	return true
}

// Every edge of every tour within the limit is a candidate, with a bound that
// is no longer than the tour; and the dense 1-tree is as long as the sparse one.
func TestCandidatesKeepEveryTourWithinTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInstance(t, 4, 7)
		const shift = 4
		price := drawPrices(t, in.N)
		g, dense := complete(in, shift), newDenseTree(in, shift, price)
		tree := newOneTree(g)
		tree.load(g, make([]uint8, len(g.edges)))
		if sum, ok := tree.build(price); !ok || sum != dense.sum {
			t.Fatalf("bound %d of the sparse tree, %d of the dense one", sum, dense.sum)
		}
		limit := int64(in.TourLength(rapid.Permutation(inOrder(in.N)).Draw(t, "limit tour"))) << shift
		bounds := map[Edge]int64{}
		dense.within(limit, func(e Edge, bound int64) { bounds[e] = bound })
		everyTour(in.N, func(tour []int) {
			length := int64(in.TourLength(tour)) << shift
			for e := range edgesOf(tour) {
				if bound, kept := bounds[e]; length <= limit && (!kept || bound > length) {
					t.Fatalf("edge %v of tour %v: kept %v, bound %d, length %d", e, tour, kept, bound, length)
				}
			}
		})
	})
}

// Prefix subtasks search each tour one way round only.
func TestPrefixStatesForbidWhatOthersCover(t *testing.T) {
	p, err := Prepare(load(t, "gr48"), Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := mustSearch(t, p, Root(Prefix), incumbentOf(p))
	s.Step()
	barred := 0
	for _, nd := range s.open {
		for _, e := range nd.barred {
			barred++
			if nd.state[p.graph.find(e.U, e.V)] != forbidden {
				t.Errorf("prefix %v may still use %v", nd.prefix, e)
			}
		}
	}
	if k := len(s.open); k < 2 || barred != k*(k-1)/2 {
		t.Errorf("%d nodes bar %d edges", k, barred)
	}
}
