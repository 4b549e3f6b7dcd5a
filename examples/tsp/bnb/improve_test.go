package bnb

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The best tour is always one, its length is what is claimed, it never grows,
// and improved is said exactly when it shrinks.
func TestImproverOnlyImproves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInstance(t, 1, 30)
		im := NewImprover(in, ImproverOptions{
			Seed:  rapid.Uint64().Draw(t, "seed"),
			Start: rapid.SampledFrom([]Start{Good, Poor}).Draw(t, "start"),
			Kicks: rapid.IntRange(0, 50).Draw(t, "kicks"),
		})
		for last, done := im.Length(), false; !done; last = im.Length() {
			var improved bool
			improved, done = im.Step()
			if im.Length() > last || improved != (im.Length() < last) {
				t.Fatalf("from %d to %d, improved %v", last, im.Length(), improved)
			}
			tour, length := im.Best()
			if err := Verify(in, tour, length); err != nil {
				t.Fatal(err)
			}
			if err := Verify(in, widen(im.ring.order), im.length); err != nil {
				t.Fatal("current tour:", err)
			}
		}
	})
}

func TestImproverIsRepeatable(t *testing.T) {
	in := load(t, "eil51")
	run := func(seed uint64) []int {
		im := NewImprover(in, ImproverOptions{Seed: seed, Start: Poor, Kicks: 20})
		for range 30 {
			im.Step()
		}
		tour, _ := im.Best()
		return tour
	}
	if !slices.Equal(run(1), run(1)) {
		t.Error("equal seeds gave different tours")
	}
	if slices.Equal(run(1), run(2)) {
		t.Error("different seeds gave equal tours")
	}
}

// A poor start has room for many improvements; a good one ends near the optimum.
func TestImproverStarts(t *testing.T) {
	in := load(t, "kroA100")
	for _, c := range []struct {
		start Start
		least int // improvements
	}{{Good, 5}, {Poor, 20}} {
		im := NewImprover(in, ImproverOptions{Seed: 1, Start: c.start})
		first, count := im.Length(), 0
		for improved, done := im.Step(); !done; improved, done = im.Step() {
			if improved {
				count++
			}
		}
		if count < c.least || im.Length() > 21282*102/100 {
			t.Errorf("start %d: %d improvements from %d to %d; optimum is 21282", c.start, count, first, im.Length())
		}
		if c.start == Poor && first < 3*21282 {
			t.Errorf("poor start is %d; optimum is 21282", first)
		}
	}
}

func TestImproverTakesOffers(t *testing.T) {
	in := load(t, "eil51")
	good := improved(in, Options{Seed: 1, Stop: func() bool { return false }})
	im := NewImprover(in, ImproverOptions{Seed: 2, Start: Poor})
	if err := im.Offer(good); err != nil || im.Length() != in.TourLength(good) {
		t.Errorf("length %d after an offer of %d, %v", im.Length(), in.TourLength(good), err)
	}
	worse := make([]int, in.N)
	for i := range worse {
		worse[i] = i
	}
	if err := im.Offer(worse); err != nil || im.Length() != in.TourLength(good) {
		t.Errorf("length %d after a worse offer, %v", im.Length(), err)
	}
	want := "bnb: tour offered: bnb: tour visits 2 cities: the instance has 51"
	if err := im.Offer([]int{1, 2}); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestImproverSharesItsBudget(t *testing.T) {
	in := load(t, "eil51")
	for runs := 1; runs <= 4; runs++ {
		im := NewImprover(in, ImproverOptions{Seed: 1, Kicks: 10, Runs: runs})
		starts := 1
		for done := false; !done; _, done = im.Step() {
			if !im.settled && len(im.queue) == in.N && im.budget < 10 {
				starts++
			}
		}
		if starts != runs || im.budget != 0 {
			t.Errorf("%d starts and %d kicks left, want %d and none", starts, im.budget, runs)
		}
	}
}
