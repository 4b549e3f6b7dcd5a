package bnb

import (
	"math"
	"testing"
)

// maxLoad is the most that one subtask counts; the least is 1.
var maxLoad = math.Exp(loadRate)

func TestLoadFollowsTheBound(t *testing.T) {
	p, err := Prepare(load(t, "gr48"), Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := mustSearch(t, p, Root(Edges), incumbentOf(p))
	if got := s.Load(); got != maxLoad {
		t.Errorf("load of everything is %g, want %g", got, maxLoad)
	}
	s.Split(8, nil)
	if got, open := s.Load(), float64(s.Open()); got < open || got > open*maxLoad {
		t.Errorf("load of %g nodes is %g", open, got)
	}
	if p.Load(4990, p.Length()) <= p.Load(5040, p.Length()) {
		t.Error("a lower bound gives no higher load")
	}
	if got := p.Load(5040, 5040); got != 1 {
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
		before := s.Load()
		var parts float64
		for _, part := range s.Remaining() {
			parts += p.Load(part.LowerBound, p.Length())
		}
		if math.Abs(parts-before) > 0.1*before {
			t.Errorf("%v: the search counts %g, its parts %g", kind, before, parts)
		}
	}
}
