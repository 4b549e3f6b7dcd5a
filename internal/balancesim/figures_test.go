package balancesim

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/balance"
	"github.com/gopegasus/pegasus/internal/testcount"
)

// runOf runs a scenario to its end.
func runOf(t interface {
	Helper()
	Fatal(...any)
}, s *Scenario,
) *Result {
	t.Helper()
	if list := s.Faults(); len(list) > 0 {
		t.Fatal(&list[0])
	}
	r, err := Run(Generate(s), Settings{Scenario: s})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestFigures pins what docs/balance.md says of the PEGASUS strategy on independent
// irregular tasks and nodes of unequal speeds that change during the run.
func TestFigures(t *testing.T) {
	seeds := testcount.Of(t, "FIGURES", 2)
	for _, c := range []struct {
		nodes, seeds int
		efficiency   float64
	}{{16, 8 * seeds, 0.95}, {128, seeds, 0.90}} {
		for seed := range uint64(c.seeds) {
			s := Default()
			s.Seed, s.Nodes.Count, s.Tasks.Count = seed+1, c.nodes, 100*c.nodes
			r := runOf(t, &s)
			if r.Efficiency < c.efficiency || r.Efficiency > 1 || r.Returned > 0 || r.Unfinished > 0 || r.WrongStops > 0 {
				t.Errorf("%d nodes, seed %d: %+v", c.nodes, s.Seed, r)
			}
		}
	}
}

// TestWithoutBalancing is the control of TestFigures: the same work is far from the
// bound where nothing moves.
func TestWithoutBalancing(t *testing.T) {
	for seed := range uint64(10) {
		s := Default()
		s.Seed, s.Balance.Strategy = seed+1, balance.None
		if r := runOf(t, &s); r.Efficiency > 0.75 || r.Messages > 0 {
			t.Errorf("seed %d: %+v", s.Seed, r)
		}
	}
}

// TestSteady wants moves to stop once speeds are constant and tasks stay as they
// are, with the longest queue near the best.
func TestSteady(t *testing.T) {
	for _, strategy := range []string{balance.Pegasus, balance.Greedy, balance.Largest} {
		for seed := range uint64(4) {
			s := Default()
			s.Seed, s.Tasks.Steady, s.Balance.Strategy = seed+1, time.Minute, strategy
			s.Changes.Until, s.Tasks.Count = 20*time.Second, 400
			r := runOf(t, &s)
			if r.Settled > 40 || // Largest evens out one pair a plan, and needs a while.
				r.Returned > 0 || r.Units == 0 || r.Efficiency < 0.5 {
				t.Errorf("%s, seed %d: %+v", strategy, s.Seed, r)
			}
		}
	}
}

// TestViews compares consistent views with the latest reports on the
// same instances: only the latter make moves that are wrong by what is true.
func TestViews(t *testing.T) {
	var wrong, late [2]int
	for seed := range uint64(5) {
		for i, view := range []string{Consistent, Latest} {
			s := Default()
			s.Seed, s.Plans.View = seed+1, view
			r := runOf(t, &s)
			wrong[i] += r.WrongMoves
			late[i] += r.Late
		}
	}
	if wrong[0] > 5 || wrong[1] < 20 || late[0] > 5 || late[1] < 10 {
		t.Errorf("wrong moves %v, late %v", wrong, late)
	}
}

// TestNothingIsLost runs random scenarios: all tasks are done, the time is not
// below the bound, and a second run is the same.
func TestNothingIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Default()
		s.Seed = rapid.Uint64().Draw(t, "seed")
		s.Nodes.Count = rapid.IntRange(1, 9).Draw(t, "nodes")
		s.Tasks.Count = rapid.IntRange(0, 60).Draw(t, "tasks")
		s.Tasks.Shape = rapid.SampledFrom(Shapes).Draw(t, "shape")
		s.Tasks.Placed = rapid.SampledFrom(Placements).Draw(t, "placed")
		s.Tasks.Order = rapid.SampledFrom(Orders).Draw(t, "order")
		s.Tasks.Error = rapid.SampledFrom([]float64{0, 1}).Draw(t, "error")
		s.Tasks.Groups = rapid.IntRange(0, 4).Draw(t, "groups")
		s.Tasks.Traffic = rapid.SampledFrom([]float64{0, 1e5}).Draw(t, "traffic")
		s.Tasks.Arrive = rapid.SampledFrom([]time.Duration{0, 3 * time.Second}).Draw(t, "arrive")
		s.Changes.Every = rapid.SampledFrom([]time.Duration{0, time.Second}).Draw(t, "changes")
		s.Links.Topology = rapid.SampledFrom(Topologies).Draw(t, "topology")
		s.Links.Startup = rapid.SampledFrom([]time.Duration{0, time.Millisecond, time.Second}).Draw(t, "startup")
		s.Plans.View = rapid.SampledFrom([]string{Consistent, Latest}).Draw(t, "view")
		s.Balance.Strategy = rapid.SampledFrom(balance.Names).Draw(t, "strategy")
		s.Balance.Waiting = rapid.SampledFrom([]string{balance.ByWeight, balance.ByCount}).Draw(t, "waiting")
		r := runOf(t, &s)
		if r.Unfinished > 0 || r.Time < r.Bound-1e-6 || math.IsNaN(r.Efficiency) || r.Idle < -1e-6 {
			t.Fatalf("%+v", r)
		}
		if diff := cmp.Diff(r, runOf(t, &s), cmp.AllowUnexported(Result{}, span{})); diff != "" {
			t.Fatalf("a second run differs: %s", diff)
		}
	})
}

// TestBound compares the bound with instances whose optimum is known or found by
// trying every assignment.
func TestBound(t *testing.T) {
	constant := func(speeds []float64, works ...float64) *Instance {
		in := &Instance{}
		for i, v := range speeds {
			in.Nodes = append(in.Nodes, "")
			in.Speeds = append(in.Speeds, Speed{0, i, v, 1})
		}
		for _, w := range works {
			in.Tasks = append(in.Tasks, Task{Work: w})
		}
		return in
	}
	slowing := constant([]float64{2}, 10)
	slowing.Speeds = append(slowing.Speeds, Speed{3, 0, 2, 0.5})
	arriving := constant([]float64{1, 1}, 1, 1)
	arriving.Tasks[1].At = 5
	stopping := constant([]float64{1}, 5)
	stopping.Speeds = append(stopping.Speeds, Speed{3, 0, 1, 0})
	for name, c := range map[string]struct {
		in   *Instance
		want float64
	}{
		"nothing":                     {constant([]float64{1}), 0},
		"all work / all speeds":       {constant([]float64{1, 3}, 2, 2, 2, 2), 2},
		"largest / fastest":           {constant([]float64{1, 3}, 9, 1), 3},
		"two largest / two fastest":   {constant([]float64{2, 2, 1, 1}, 8, 8, 1), 4},
		"skewed sleep on four":        {constant([]float64{1, 1, 1, 1}, 1, 2, 1, 10, 3, 1, 4, 10, 1, 3, 2, 10), 12},
		"CORD example 6.3, N = 100":   {constant([]float64{1, 2, 3, 4}, slices.Repeat([]float64{1}, 400)...), 40},
		"a speed that changes":        {slowing, 7},
		"work that arrives":           {arriving, 5.5},
		"work that is never finished": {stopping, math.Inf(1)},
	} {
		if got := c.in.Bound(); got != c.want && !(math.Abs(got-c.want) < 1e-9) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		speeds := rapid.SliceOfN(rapid.Float64Range(0.5, 4), 1, 3).Draw(t, "speeds")
		works := rapid.SliceOfN(rapid.Float64Range(0.1, 9), 1, 6).Draw(t, "works")
		best := math.Inf(1)
		load := make([]float64, len(speeds))
		var assign func(int)
		assign = func(i int) {
			if i == len(works) {
				longest := 0.0
				for n, l := range load {
					longest = max(longest, l/speeds[n])
				}
				best = min(best, longest)
				return
			}
			for n := range load {
				load[n] += works[i]
				assign(i + 1)
				load[n] -= works[i]
			}
		}
		assign(0)
		if got := constant(speeds, works...).Bound(); got > best*(1+1e-9) {
			t.Fatalf("bound %v is above the optimum %v", got, best)
		}
	})
}

// TestOneNode has one time only: work / speed, with a change of speed.
func TestOneNode(t *testing.T) {
	in := &Instance{
		Nodes: []string{"n"}, Speeds: []Speed{{0, 0, 2, 1}, {3, 0, 2, 0.5}},
		Tasks: []Task{{"a", 0, 0, 4, 4, 0}, {"b", 0, 0, 5, 5, 0}},
	}
	s := Default()
	r, err := Run(in, Settings{Scenario: &s})
	if err != nil {
		t.Fatal(err)
	}
	want := Result{Strategy: "pegasus", Nodes: 1, Tasks: 2, Time: 6, Bound: 6, Efficiency: 1, Tail: 3.5, Settled: -1}
	if diff := cmp.Diff(want, *r, cmpopts.EquateApprox(0, 1e-6), cmpopts.IgnoreUnexported(Result{}),
		cmpopts.IgnoreFields(Result{}, "Messages", "MessageBytes", "Plans")); diff != "" {
		t.Error(diff)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	s := Default()
	s.Balance.Alpha = 0
	if _, err := Run(Generate(&s), Settings{Scenario: &s}); err == nil || err.Error() != "balance: alpha: 0 must be above 1; 1.5 to 2.5 is usual" {
		t.Error(err)
	}
}

// TestHops compares distances with a search over links worked out apart.
func TestHops(t *testing.T) {
	for topology, next := range map[string]func(n, a, b int) bool{
		"full":      func(_, a, b int) bool { return a != b },
		"ring":      func(n, a, b int) bool { return (a+1)%n == b || (b+1)%n == a },
		"hypercube": func(_, a, b int) bool { x := a ^ b; return x != 0 && x&(x-1) == 0 },
		"mesh": func(n, a, b int) bool {
			c := int(math.Ceil(math.Sqrt(float64(n))))
			return a/c == b/c && (a-b == 1 || b-a == 1) || a-b == c || b-a == c
		},
	} {
		for n := 1; n < 20; n++ {
			var links [][2]int
			for a := range n {
				for b := range a {
					if next(n, a, b) {
						links = append(links, [2]int{a, b})
					}
				}
			}
			got, want := hops(topology, make([]float64, n)), distances(n, links)
			for a := range n {
				for b := range n {
					if got(a, b) != want(a, b) {
						t.Fatalf("%s of %d: %d to %d is %d, want %d", topology, n, a, b, got(a, b), want(a, b))
					}
				}
			}
		}
	}
}

// TestBitonic is example 6.2 of the CORD thesis, where P1 is linked with P4 and P2
// with P3; the faster cluster is the more balanced one, (P2, P3), so the root links
// P4 with P2.
func TestBitonic(t *testing.T) {
	if diff := cmp.Diff([][2]int{{0, 3}, {1, 2}, {3, 1}}, bitonic([]float64{1, 2, 3, 4})); diff != "" {
		t.Error(diff)
	}
	for n := 1; n < 20; n++ {
		powers := make([]float64, n)
		for i := range powers {
			powers[i] = float64(i*7%5 + 1)
		}
		if links := bitonic(powers); len(links) != n-1 {
			t.Errorf("%d nodes have %d links", n, len(links))
		}
		for b, hop := 0, hops("tree", powers); b < n; b++ {
			if hop(0, b) < 0 {
				t.Errorf("no way to %d of %d", b, n)
			}
		}
	}
}
