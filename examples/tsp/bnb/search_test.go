package bnb

import (
	"encoding/json"
	"math"
	"slices"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// Cutting a search up at random, encoding the parts and searching each must
// find what searching the whole finds, and prove it.
func TestPartsAreTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInstance(t, 5, 9)
		p := drawProblem(t, in)
		best, incumbent := p.Tour(), incumbentOf(p)
		todo := []Subtask{Root(drawKind(t))}
		for len(todo) > 0 {
			part := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			s := mustSearch(t, p, part, incumbent)
			todo = append(todo, recode(t, cut(t, s, incumbent, &best), in.N)...)
		}
		if got, want := in.TourLength(best), optimum(in); got != want {
			t.Fatalf("parts gave %d; optimum is %d", got, want)
		}
	})
}

// cut takes a search some steps on, gives parts of it away, and either
// searches the rest or gives that away as well. It returns what was given.
func cut(t *rapid.T, s *Search, incumbent *atomic.Int64, best *[]int) []Subtask {
	var given []Subtask
	for range rapid.IntRange(0, 3).Draw(t, "steps") {
		if s.Step() == Improved {
			accept(t, s, incumbent, best)
		}
	}
	if s.Split(rapid.IntRange(0, 6).Draw(t, "width"), nil) == Improved {
		accept(t, s, incumbent, best)
	}
	before := s.Open()
	given = s.Donate(rapid.IntRange(0, 4).Draw(t, "donate"))
	if s.Open() != before-len(given) || before > 0 && s.Open() == 0 {
		t.Fatalf("%d nodes open, %d given, %d left", before, len(given), s.Open())
	}
	if s.Nodes() > 0 && rapid.Bool().Draw(t, "return") {
		return append(given, s.Remaining()...)
	}
	drain(t, s, incumbent, best)
	return given
}

func recode(t fataler, parts []Subtask, n int) []Subtask {
	t.Helper()
	for i, part := range parts {
		b, err := json.Marshal(part)
		if err != nil {
			t.Fatal(err)
		}
		if parts[i], err = DecodeSubtask(b, n); err != nil {
			t.Fatal(err)
		}
	}
	return parts
}

// gr48 split and searched with two problems that were prepared
// from different tours, as different processes would.
func TestPartsMoveBetweenProblems(t *testing.T) {
	in := load(t, "gr48")
	for _, kind := range []Kind{Edges, Prefix} {
		t.Run(kind.String(), func(t *testing.T) {
			var problems []*Problem
			for _, o := range []ImproverOptions{{Seed: 1}, {Seed: 2, Start: Poor, Kicks: 1}} {
				im := NewImprover(in, o)
				for range 20 {
					im.Step()
				}
				tour, _ := im.Best()
				p, err := Prepare(in, Options{Tour: tour})
				if err != nil {
					t.Fatal(err)
				}
				problems = append(problems, p)
			}
			best, incumbent := problems[0].Tour(), incumbentOf(problems[0])
			s := mustSearch(t, problems[0], Root(kind), incumbent)
			for s.Split(16, nil) == Improved {
				accept(t, s, incumbent, &best)
			}
			for i, part := range recode(t, s.Remaining(), in.N) {
				drain(t, mustSearch(t, problems[i%2], part, incumbent), incumbent, &best)
			}
			if got := in.TourLength(best); got != 5046 {
				t.Errorf("length %d; optimum is 5046", got)
			}
		})
	}
}

func TestIncumbentTakesEffectAtOnce(t *testing.T) {
	in := load(t, "gr48")
	p, err := Prepare(in, Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	var incumbent atomic.Int64
	incumbent.Store(math.MaxInt64)
	s := mustSearch(t, p, Root(Edges), &incumbent)
	if st := s.Step(); st != Running || s.Open() < 2 {
		t.Fatalf("status %d, %d nodes open", st, s.Open())
	}
	incumbent.Store(1)
	if s.Bound() != 1 {
		t.Errorf("bound %d above the incumbent 1", s.Bound())
	}
	for s.Step() != Done {
	}
	if s.Nodes() != 1 {
		t.Errorf("%d nodes searched after nothing was left to find", s.Nodes()-1)
	}
}

func TestPollLeavesTheNodeOpen(t *testing.T) {
	in := load(t, "gr48")
	p, err := Prepare(in, Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	best, incumbent := p.Tour(), incumbentOf(p)
	s := mustSearch(t, p, Root(Edges), incumbent)
	polls := 0
	s.SetPoll(func() bool { polls++; return polls%50 == 0 })
	for range 100 {
		s.Step()
	}
	if s.Open() == 0 {
		t.Fatal("search ended; the test needs one that does not")
	}
	s.SetPoll(nil)
	drain(t, s, incumbent, &best)
	if got := in.TourLength(best); got != 5046 {
		t.Errorf("length %d; optimum is 5046", got)
	}
}

// A search has what it needs once it has been as deep as it goes.
func TestStepDoesNotAllocate(t *testing.T) {
	in := load(t, "random:120:20")
	p, err := Prepare(in, Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := mustSearch(t, p, Root(Edges), incumbentOf(p))
	for range 50 {
		s.Step()
	}
	nodes := s.Nodes()
	if got := testing.AllocsPerRun(50, func() { s.Step() }); got > 0 {
		t.Errorf("%g allocations a node", got)
	}
	if s.Nodes() < nodes+20 {
		t.Fatal("the search ended; the test needs a longer one")
	}
}

func TestSubtasksAreSmall(t *testing.T) {
	in := load(t, "random:120:20")
	p, err := Prepare(in, Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := mustSearch(t, p, Root(Edges), incumbentOf(p))
	if st := s.Split(40, nil); st != Running || s.Open() < 40 {
		t.Fatalf("status %d, %d nodes open, want 40", st, s.Open())
	}
	for _, part := range s.Remaining() {
		if b, err := json.Marshal(part); err != nil || len(b) > 300+15*in.N {
			t.Errorf("subtask of %d bytes, %v", len(b), err)
		}
	}
}

// Wherever a search is cut, the nodes are close to the same: subtasks carry the
// prices to go on with. Without them they are not.
func TestCutsChangeFewNodes(t *testing.T) {
	in := load(t, "random:100:1")
	best, err := Solve(in, SolveOptions{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	p, err := Prepare(in, Options{Tour: best.Tour})
	if err != nil {
		t.Fatal(err)
	}
	nodes := func(parts int, priced bool) int64 {
		first := mustSearch(t, p, Root(Edges), incumbentOf(p))
		first.Split(parts, nil)
		all := first.Nodes()
		for _, part := range first.Remaining() {
			if !priced {
				part.Prices = nil
			}
			s := mustSearch(t, p, part, incumbentOf(p))
			for s.Step() != Done {
			}
			all += s.Nodes()
		}
		return all
	}
	whole := nodes(1, true)
	off := func(n int64) float64 { return math.Abs(float64(n)/float64(whole) - 1) }
	var worst float64
	for _, parts := range []int{4, 8, 16} {
		priced, bare := nodes(parts, true), nodes(parts, false)
		t.Logf("%d nodes whole, in %d parts %d, without prices %d", whole, parts, priced, bare)
		if off(priced) > 0.05 {
			t.Errorf("%d nodes whole, in %d parts %d", whole, parts, priced)
		}
		worst = max(worst, off(bare))
	}
	if whole < 100 || worst < 0.05 {
		t.Errorf("%d nodes, at most %.0f %% off without prices: the instance shows nothing", whole, 100*worst)
	}
}

func TestSearchRefusesForeignSubtask(t *testing.T) {
	p, err := Prepare(load(t, "burma14"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = NewSearch(p, Subtask{Kind: Edges, Required: []Edge{{3, 14}}}, incumbentOf(p))
	if want := "bnb: cannot search burma14: bnb: subtask: no edge 3-14: the instance has 14 cities"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// Subtasks that contradict themselves hold no tour.
func TestImpossibleSubtasksAreDone(t *testing.T) {
	in := load(t, "gr48")
	p, err := Prepare(in, Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []Subtask{
		{Kind: Edges, Required: []Edge{{0, 1}, {1, 2}, {0, 2}}},
		{Kind: Edges, Required: []Edge{{0, 1}, {0, 2}, {0, 3}}},
		{Kind: Edges, Required: []Edge{{0, 1}}, Forbidden: []Edge{{0, 1}}},
		{Kind: Prefix, Prefix: []int32{0, 1}, Forbidden: []Edge{{0, 1}}},
	} {
		s := mustSearch(t, p, part, incumbentOf(p))
		if st := s.Step(); st != Done || s.Nodes() > 1 {
			t.Errorf("%+v: status %d after %d nodes", part, st, s.Nodes())
		}
	}
}

func TestDonateGivesTheOldest(t *testing.T) {
	p, err := Prepare(load(t, "gr48"), Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := mustSearch(t, p, Root(Edges), incumbentOf(p))
	s.Split(4, nil)
	all := s.Remaining()
	given := s.Donate(2)
	if !slices.EqualFunc(append(given, s.Remaining()...), all, equalSubtask) || len(given) != 2 {
		t.Errorf("gave %v of %v", given, all)
	}
}
