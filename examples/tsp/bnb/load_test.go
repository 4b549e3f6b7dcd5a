package bnb

import (
	"math"
	"testing"

	"github.com/gopegasus/pegasus/examples/tsp/tsplib"
)

// PEGASUS paper 4.3 counts (N-t)! full tours below a partial one. The step
// that makes a partial tour must not be taken off, or the count would not end
// at nothing: opening a node replaces (N-t)! by N-t times (N-t-1)!.
func TestLeavesAreThoseOfTheChildren(t *testing.T) {
	for _, n := range []int{2, 6, 21, 100, 400} {
		p := &Problem{in: &tsplib.Instance{N: n}}
		for placed := 1; placed < min(n, 30); placed++ {
			node := p.Load(Subtask{Kind: Prefix, Prefix: make([]int32, placed)}, 0, Leaves)
			child := p.Load(Subtask{Kind: Edges, Required: make([]Edge, placed)}, 0, Leaves)
			if kids := float64(n-placed) * child; math.Abs(kids-node) > 1e-9*node {
				t.Errorf("n %d, t %d: node counts %g, its children %g", n, placed, node, kids)
			}
		}
		if all := p.Load(Root(Prefix), 0, Leaves); all != 1 {
			t.Errorf("n %d: everything counts %g, want 1", n, all)
		}
	}
	p := &Problem{in: &tsplib.Instance{N: 6}}
	if got := p.Load(Subtask{Kind: Prefix, Prefix: make([]int32, 3)}, 0, Leaves); math.Abs(got-6.0/120) > 1e-12 {
		t.Errorf("3 cities left of 6 count %g, want 3!/5!", got)
	}
}

// maxLoad is the most that one subtask counts by Gap; the least is 1.
var maxLoad = math.Exp(loadRate)

func TestLoadFollowsTheBound(t *testing.T) {
	p, err := Prepare(load(t, "gr48"), Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := mustSearch(t, p, Root(Edges), incumbentOf(p))
	if got := s.Load(Gap); got != maxLoad {
		t.Errorf("load of everything is %g, want %g", got, maxLoad)
	}
	s.Split(8, nil)
	if got, open := s.Load(Gap), float64(s.Open()); got < open || got > open*maxLoad {
		t.Errorf("load of %g nodes is %g", open, got)
	}
	low, high := Subtask{Kind: Edges, LowerBound: 4990}, Subtask{Kind: Edges, LowerBound: 5040}
	if p.Load(low, p.Length(), Gap) <= p.Load(high, p.Length(), Gap) {
		t.Error("a lower bound gives no higher load")
	}
	if got := p.Load(high, 5040, Gap); got != 1 {
		t.Errorf("load is %g when nothing better can be found, want 1", got)
	}
}

// What is given away weighs as much as it did in the search, but for the bound,
// which subtasks hold as a whole number.
func TestLoadMovesWithTheSubtasks(t *testing.T) {
	p, err := Prepare(load(t, "gr48"), Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []Kind{Edges, Prefix} {
		s := mustSearch(t, p, Root(kind), incumbentOf(p))
		s.Split(8, nil)
		for _, by := range []Estimate{Gap, Leaves} {
			before := s.Load(by)
			var parts float64
			for _, part := range s.Remaining() {
				parts += p.Load(part, p.Length(), by)
			}
			if math.Abs(parts-before) > 0.1*before {
				t.Errorf("%v: the search counts %g by %v, its parts %g", kind, before, by, parts)
			}
		}
	}
}

func TestEstimateText(t *testing.T) {
	for _, e := range []Estimate{Gap, Leaves} {
		if got, err := ParseEstimate(e.String()); err != nil || got != e {
			t.Errorf("%v became %v, %v", e, got, err)
		}
	}
	want := `bnb: unknown estimate of work "size": use gap or leaves`
	if _, err := ParseEstimate("size"); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
