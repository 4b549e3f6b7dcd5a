package bnb

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/examples/tsp/tsplib"
)

// optimum finds the length of a shortest tour by dynamic programming over
// subsets of cities (Held and Karp 1962), for up to about 12 cities.
func optimum(in *tsplib.Instance) int {
	n := in.N
	if n == 1 {
		return 0
	}
	best := make([][]int, 1<<(n-1)) // best[set][last]: from city n-1 through set, ending at last
	for set := 1; set < len(best); set++ {
		best[set] = make([]int, n-1)
		for last := range n - 1 {
			best[set][last] = math.MaxInt
			if set&(1<<last) == 0 {
				continue
			}
			rest := set &^ (1 << last)
			if rest == 0 {
				best[set][last] = in.Dist(n-1, last)
				continue
			}
			for prev := range n - 1 {
				if rest&(1<<prev) != 0 {
					best[set][last] = min(best[set][last], best[rest][prev]+in.Dist(prev, last))
				}
			}
		}
	}
	least := math.MaxInt
	for last, d := range best[len(best)-1] {
		least = min(least, d+in.Dist(last, n-1))
	}
	return least
}

// drawInstance draws matrices of all sorts: random, metric, with few different
// distances, with zeros, with a common divisor, huge.
func drawInstance(t *rapid.T, least, most int) *tsplib.Instance {
	n := rapid.IntRange(least, most).Draw(t, "n")
	top := rapid.SampledFrom([]int{0, 1, 2, 10, 1000, tsplib.MaxWeight}).Draw(t, "top")
	factor := rapid.SampledFrom([]int{1, 1, 7}).Draw(t, "factor")
	var text strings.Builder
	fmt.Fprintf(&text, "NAME: drawn\nTYPE: TSP\nDIMENSION: %d\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: LOWER_ROW\nEDGE_WEIGHT_SECTION\n", n)
	for i := range n {
		for range i {
			fmt.Fprintln(&text, rapid.IntRange(0, top/factor).Draw(t, "d")*factor)
		}
	}
	in, err := tsplib.Parse(strings.NewReader(text.String()), "drawn")
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func drawKind(t *rapid.T) Kind { return rapid.SampledFrom([]Kind{Edges, Prefix}).Draw(t, "kind") }

func TestSolveFindsTheOptimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInstance(t, 1, 10)
		r, err := Solve(in, SolveOptions{Seed: rapid.Uint64().Draw(t, "seed"), Kind: drawKind(t)})
		if err != nil {
			t.Fatal(err)
		}
		if err := Verify(in, r.Tour, r.Length); err != nil {
			t.Fatal(err)
		}
		if want := optimum(in); r.Length != want || !r.Proven || r.LowerBound != want {
			t.Fatalf("length %d, bound %d, proven %v; optimum is %d", r.Length, r.LowerBound, r.Proven, want)
		}
	})
}

// The first tour of Prepare is mostly optimal, so that the search never has to
// find one; a bad first tour makes it.
func TestSearchFindsTheOptimumFromAnyTour(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInstance(t, 4, 10)
		p := drawProblem(t, in)
		best, incumbent := p.Tour(), incumbentOf(p)
		s := mustSearch(t, p, Root(drawKind(t)), incumbent)
		drain(t, s, incumbent, &best)
		if got, want := in.TourLength(best), optimum(in); got != want || s.Bound() != want {
			t.Fatalf("length %d, bound %d; optimum is %d", got, s.Bound(), want)
		}
	})
}

// drawProblem prepares an instance with any tour at all.
func drawProblem(t *rapid.T, in *tsplib.Instance) *Problem {
	tour := make([]int, in.N)
	for i := range tour {
		tour[i] = i
	}
	p, err := Prepare(in, Options{Tour: rapid.Permutation(tour).Draw(t, "tour")})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func incumbentOf(p *Problem) *atomic.Int64 {
	var incumbent atomic.Int64
	incumbent.Store(int64(p.Length()))
	return &incumbent
}

type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func mustSearch(t fataler, p *Problem, part Subtask, incumbent *atomic.Int64) *Search {
	t.Helper()
	s, err := NewSearch(p, part, incumbent)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// drain steps a search to its end and checks what it says on the way.
func drain(t fataler, s *Search, incumbent *atomic.Int64, best *[]int) {
	t.Helper()
	bound := 0
	for {
		st := s.Step()
		if now := s.Bound(); now < bound && int64(now) < incumbent.Load() {
			t.Fatalf("bound fell from %d to %d", bound, now)
		} else {
			bound = now
		}
		switch st {
		case Done:
			if s.Open() != 0 || s.Load() != 0 {
				t.Fatalf("done with %d nodes open, load %g", s.Open(), s.Load())
			}
			return
		case Improved:
			accept(t, s, incumbent, best)
		case Running:
		}
	}
}

// accept publishes the tour of a search that improved.
func accept(t fataler, s *Search, incumbent *atomic.Int64, best *[]int) {
	t.Helper()
	tour, length := s.Tour()
	if err := Verify(s.p.in, tour, length); err != nil {
		t.Fatal(err)
	}
	if int64(length) >= incumbent.Load() {
		t.Fatalf("tour of %d is no improvement on %d", length, incumbent.Load())
	}
	incumbent.Store(int64(length))
	*best = tour
}

func TestEmbeddedProvenOptimal(t *testing.T) {
	for _, info := range tsplib.Embedded() {
		t.Run(info.Name, func(t *testing.T) {
			in := load(t, info.Name)
			r, err := Solve(in, SolveOptions{Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			if err := Verify(in, r.Tour, r.Length); err != nil {
				t.Fatal(err)
			}
			if r.Length != info.Optimum || !r.Proven {
				t.Errorf("length %d, proven %v; optimum is %d", r.Length, r.Proven, info.Optimum)
			}
		})
	}
}

func load(tb testing.TB, spec string) *tsplib.Instance {
	tb.Helper()
	in, err := tsplib.Load(spec)
	if err != nil {
		tb.Fatal(err)
	}
	return in
}

func TestSolveStops(t *testing.T) {
	in := load(t, "random:60:1")
	for _, after := range []int{0, 1, 10, 100, 1000} {
		left := after
		r, err := Solve(in, SolveOptions{Stop: func() bool { left--; return left < 0 }})
		if err != nil {
			t.Fatal(err)
		}
		if err := Verify(in, r.Tour, r.Length); err != nil {
			t.Errorf("stopped after %d polls: %v", after, err)
		}
		if r.LowerBound > r.Length || r.Proven && after == 0 {
			t.Errorf("stopped after %d polls: bound %d, length %d, proven %v", after, r.LowerBound, r.Length, r.Proven)
		}
	}
}

func TestPrepareIsRepeatable(t *testing.T) {
	in := load(t, "eil51")
	var first *Problem
	for range 3 {
		p, err := Prepare(in, Options{Seed: 3})
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = p
		}
		if !slices.Equal(p.Tour(), first.Tour()) || p.LowerBound() != first.LowerBound() || !slices.Equal(p.graph.edges, first.graph.edges) || !slices.Equal(p.price, first.price) {
			t.Fatal("equal arguments gave different problems")
		}
	}
}

func TestPrepareRefusesWhatIsNoTour(t *testing.T) {
	in := load(t, "random:4:1")
	for _, c := range []struct {
		tour []int
		want string
	}{
		{[]int{0, 1, 2}, "bnb: cannot prepare random:4:1: bnb: tour visits 3 cities: the instance has 4"},
		{[]int{0, 1, 2, 2}, "bnb: cannot prepare random:4:1: bnb: tour visits city 2 twice"},
		{[]int{0, 1, 2, 4}, "bnb: cannot prepare random:4:1: bnb: tour: city 4 at place 3: cities are 0 to 3"},
		{[]int{0, 1, 2, -1}, "bnb: cannot prepare random:4:1: bnb: tour: city -1 at place 3: cities are 0 to 3"},
	} {
		if _, err := Prepare(in, Options{Tour: c.tour}); err == nil || err.Error() != c.want {
			t.Errorf("tour %v: %v, want %s", c.tour, err, c.want)
		}
	}
}

func TestVerifyLength(t *testing.T) {
	in := load(t, "random:4:1")
	tour := []int{0, 1, 2, 3}
	length := in.TourLength(tour)
	if err := Verify(in, tour, length); err != nil {
		t.Error(err)
	}
	want := fmt.Sprintf("bnb: tour has length %d, not %d as claimed", length, length+1)
	if err := Verify(in, tour, length+1); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A large instance must be prepared and searched without trouble, if not to
// the end; the polls bound the time.
func TestLargeInstance(t *testing.T) {
	in := load(t, "random:1500:1")
	polls := 0
	r, err := Solve(in, SolveOptions{Stop: func() bool { polls++; return polls > 3000 }})
	if err != nil {
		t.Fatal(err)
	}
	if err := Verify(in, r.Tour, r.Length); err != nil || r.Proven {
		t.Errorf("proven %v, %v", r.Proven, err)
	}
}

func BenchmarkSolve(b *testing.B) {
	for _, info := range tsplib.Embedded() {
		b.Run("instance="+info.Name, func(b *testing.B) {
			in := load(b, info.Name)
			var nodes int64
			for b.Loop() {
				r, err := Solve(in, SolveOptions{Seed: 1})
				if err != nil || r.Length != info.Optimum || !r.Proven {
					b.Fatalf("length %d, proven %v, %v; optimum is %d", r.Length, r.Proven, err, info.Optimum)
				}
				nodes += r.Nodes
			}
			b.ReportMetric(float64(nodes)/float64(b.N), "nodes/op")
		})
	}
}

// Every type of distances, with cities that coincide, stand in a row or on a
// grid, is solved as dynamic programming does.
func TestWeightTypes(t *testing.T) {
	for _, kind := range []string{"EUC_2D", "CEIL_2D", "ATT", "GEO"} {
		t.Run(kind, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				n := rapid.IntRange(1, 9).Draw(t, "n")
				width, height := rapid.SampledFrom([]int{0, 1, 3, 80}).Draw(t, "width"), rapid.SampledFrom([]int{0, 2, 80}).Draw(t, "height")
				var text strings.Builder
				fmt.Fprintf(&text, "NAME: drawn\nTYPE: TSP\nDIMENSION: %d\nEDGE_WEIGHT_TYPE: %s\nNODE_COORD_SECTION\n", n, kind)
				for i := range n {
					fmt.Fprintf(&text, "%d %d %d\n", i+1, rapid.IntRange(0, width).Draw(t, "x"), rapid.IntRange(0, height).Draw(t, "y"))
				}
				in, err := tsplib.Parse(strings.NewReader(text.String()), "drawn.tsp")
				if err != nil {
					t.Fatal(err)
				}
				r, err := Solve(in, SolveOptions{Seed: 1, Kind: drawKind(t)})
				if err != nil {
					t.Fatal(err)
				}
				if err := Verify(in, r.Tour, r.Length); err != nil {
					t.Fatal(err)
				}
				if want := optimum(in); r.Length != want || !r.Proven {
					t.Fatalf("length %d, proven %v; optimum is %d", r.Length, r.Proven, want)
				}
			})
		})
	}
}

// Beyond what dynamic programming reaches, both kinds of subtasks from a poor
// tour must agree with Solve.
func TestKindsAgree(t *testing.T) {
	for seed := range uint64(20) {
		in := load(t, fmt.Sprintf("random:%d:%d", 15+seed, seed))
		want, err := Solve(in, SolveOptions{Seed: seed})
		if err != nil || !want.Proven {
			t.Fatal(want, err)
		}
		for _, kind := range []Kind{Edges, Prefix} {
			tour, _ := NewImprover(in, ImproverOptions{Seed: seed, Start: Poor}).Best()
			p, err := Prepare(in, Options{Tour: tour})
			if err != nil {
				t.Fatal(err)
			}
			best, incumbent := p.Tour(), incumbentOf(p)
			drain(t, mustSearch(t, p, Root(kind), incumbent), incumbent, &best)
			if got := in.TourLength(best); got != want.Length {
				t.Errorf("%s by %v: %d, want %d", in.Name, kind, got, want.Length)
			}
		}
	}
}

// A search that does not end soon begins again when a longer look finds a
// shorter tour, and counts all its nodes.
func TestSolveLooksLongerWhereItHasTo(t *testing.T) {
	in := load(t, "random:70:2")
	bad := NewImprover(in, ImproverOptions{Seed: 1, Start: Poor})
	var r solver
	o := SolveOptions{Kind: Edges, Stop: func() bool { return false }}
	tour, _ := bad.Best()
	p, err := Prepare(in, Options{Tour: tour})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.begin(p, o); err != nil {
		t.Fatal(err)
	}
	if r.search(3, o.Stop) || r.Nodes != 3 {
		t.Fatalf("%d nodes after a search of 3", r.Nodes)
	}
	bad.finish(o.Stop)
	tour, length := bad.Best()
	q := p.from(tour)
	if q.Edges() >= p.Edges() || q.LowerBound() < p.LowerBound() {
		t.Errorf("a shorter tour leaves %d edges of %d, bound %d after %d", q.Edges(), p.Edges(), q.LowerBound(), p.LowerBound())
	}
	if err := r.begin(q, o); err != nil {
		t.Fatal(err)
	}
	if r.Length != length || r.Nodes != 3 {
		t.Errorf("begun again with length %d after %d nodes, want %d after 3", r.Length, r.Nodes, length)
	}
	if !r.search(math.MaxInt64, o.Stop) || r.Nodes != 3+r.s.Nodes() {
		t.Errorf("%d nodes, of which %d in the second search", r.Nodes, r.s.Nodes())
	}
	want, err := Solve(in, SolveOptions{Seed: 1})
	if err != nil || want.Length != r.Length {
		t.Errorf("length %d, want %d, %v", r.Length, want.Length, err)
	}
}
