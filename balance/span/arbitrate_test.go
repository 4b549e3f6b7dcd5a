package span_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/balance/span"
)

// changes is how many workers have another program.
func changes(workers []span.Worker, of []int) (n int) {
	for i, w := range workers {
		if w.Program != of[i] {
			n++
		}
	}
	return n
}

// apart is how far the programs are from their due: the sum over programs of (has - due)^2 / weight; and the largest
// part of its due by which one is off.
func apart(workers []span.Worker, weights []float64, of []int) (sum, most float64) {
	has, all, weight := make([]float64, len(weights)), 0.0, 0.0
	for i, p := range of {
		if all += workers[i].Speed; p >= 0 {
			has[p] += workers[i].Speed
		}
	}
	for _, w := range weights {
		weight += w
	}
	for p, w := range weights {
		due := all * w / weight
		sum, most = sum+(has[p]-due)*(has[p]-due)/w, max(most, math.Abs(has[p]-due)/due)
	}
	return sum, most
}

// TestArbitrate: members that two programs share, one of them twice as important as the other.
func TestArbitrate(t *testing.T) {
	fresh := func(speeds ...float64) (list []span.Worker) {
		for _, s := range speeds {
			list = append(list, span.Worker{Speed: s, Program: -1})
		}
		return list
	}
	for name, c := range map[string]struct {
		workers []span.Worker
		weights []float64
		want    []int
	}{
		"equal weights":                  {fresh(1, 2, 3, 4), []float64{1, 1}, []int{0, 1, 1, 0}},
		"one has twice the weight":       {fresh(1, 2, 3, 4, 5), []float64{2, 1}, []int{1, 0, 0, 1, 0}},
		"an idle worker has one program": {[]span.Worker{{Speed: 1}, {Speed: 1, Program: 1}, {Speed: 1, Program: -1}}, []float64{1, 1}, []int{0, 1, 0}},
		"it keeps that program":          {[]span.Worker{{Speed: 1}, {Speed: 1, Program: 1}, {Speed: 1, Program: 1}}, []float64{1, 1}, []int{0, 1, 1}},
		"small gains move nothing":       {[]span.Worker{{Speed: 41}, {Speed: 40, Program: 1}, {Speed: 2, Program: 0}}, []float64{1, 1}, []int{0, 1, 0}},
		"one is withdrawn":               {[]span.Worker{{Speed: 1}, {Speed: 0}, {Speed: 1, Program: 1}, {Speed: 1, Program: 1}, {Speed: 1, Program: 1}}, []float64{1, 1}, []int{0, -1, 0, 1, 1}},
		"a home stays":                   {[]span.Worker{{Speed: 9, Fixed: true}, {Speed: 1, Program: 0}, {Speed: 0, Program: 1, Fixed: true}}, []float64{1, 1}, []int{0, 1, 1}},
		"a program has ended":            {[]span.Worker{{Speed: 1, Program: 1}, {Speed: 1, Program: 7}, {Speed: 1}}, []float64{1, 0}, []int{0, 0, 0}},
		"no program":                     {fresh(1, 2), nil, []int{-1, -1}},
		"no program has a weight":        {[]span.Worker{{Speed: 1}}, []float64{0, 0}, []int{-1}},
		"no worker":                      {nil, []float64{1}, nil},
		"huge numbers":                   {fresh(math.MaxFloat64, math.MaxFloat64), []float64{math.MaxFloat64, math.MaxFloat64}, []int{0, 1}},
	} {
		if got, err := span.Arbitrate(c.workers, c.weights); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, c.want)
		}
	}
	for want, of := range map[string]func() error{
		"speed of worker 1: -1 is no speed: give 0 or more":     func() error { _, err := span.Arbitrate(fresh(1, -1), []float64{1}); return err },
		"speed of worker 0: +Inf is no speed: give 0 or more":   func() error { _, err := span.Arbitrate(fresh(math.Inf(1)), []float64{1}); return err },
		"weight of program 0: NaN is no weight: give 0 or more": func() error { _, err := span.Arbitrate(nil, []float64{math.NaN()}); return err },
		"program of worker 0: it is fixed to program 1, and there are 1: give one of them": func() error {
			_, err := span.Arbitrate([]span.Worker{{Program: 1, Fixed: true}}, []float64{1})
			return err
		},
		"program of worker 0: it is fixed to program -1, and there are 1: give one of them": func() error {
			_, err := span.Arbitrate([]span.Worker{{Program: -1, Fixed: true}}, []float64{1})
			return err
		},
	} {
		if err := of(); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestArbitrateIsEven: whatever the speeds and weights, no worker with a speed is idle, a home stays, the programs have their
// due within 5 % or no single change brings them nearer, and the same workers are assigned the same again.
func TestArbitrateIsEven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.SampledFrom([]float64{0.5, 1, 2, 3}), 1, 4).Draw(t, "weights")
		workers := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) span.Worker {
			w := span.Worker{Speed: rapid.SampledFrom([]float64{0, 1, 1, 2, 3.5, 10}).Draw(t, "speed"), Program: rapid.IntRange(-1, len(weights)-1).Draw(t, "program")}
			w.Fixed = w.Program >= 0 && rapid.IntRange(0, 4).Draw(t, "fixed") == 0
			return w
		}), 1, 12).Draw(t, "workers")
		of, err := span.Arbitrate(workers, weights)
		if err != nil {
			t.Fatal(err)
		}
		works := false
		for i, w := range workers {
			works = works || w.Speed > 0
			if w.Fixed && of[i] != w.Program || !w.Fixed && (of[i] >= 0) != (w.Speed > 0) {
				t.Fatalf("worker %d, %+v, has program %d", i, w, of[i])
			}
		}
		if !works {
			return
		}
		sum, most := apart(workers, weights, of)
		for i := range workers {
			for k := range workers {
				for p := range weights {
					other := slices.Clone(of)
					if other[i] = p; k != i {
						other[i], other[k] = of[k], of[i]
					}
					if workers[i].Fixed || workers[k].Fixed || of[i] < 0 || of[k] < 0 || most <= 0.05 {
						continue
					}
					if better, _ := apart(workers, weights, other); better < sum*(1-1e-6)-1e-6 {
						t.Fatalf("%+v have %v, and %v is nearer to the weights %v", workers, of, other, weights)
					}
				}
			}
		}
		for i := range workers {
			workers[i].Program = of[i]
		}
		if again, err := span.Arbitrate(workers, weights); err != nil || changes(workers, again) > 0 {
			t.Fatalf("%+v have %v afterwards, %v", workers, again, err)
		}
	})
}

// TestArbitrateChangesLeast: with equal speeds no assignment is nearer to the weights, and none that is as near changes
// fewer workers.
func TestArbitrateChangesLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.SampledFrom([]float64{1, 2, 3}), 1, 3).Draw(t, "weights")
		workers := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) span.Worker {
			return span.Worker{Speed: 1, Program: rapid.IntRange(-1, len(weights)-1).Draw(t, "program")}
		}), 1, 6).Draw(t, "workers")
		got, err := span.Arbitrate(workers, weights)
		if err != nil {
			t.Fatal(err)
		}
		sum, most := apart(workers, weights, got)
		other := make([]int, len(workers))
		for {
			if s, m := apart(workers, weights, other); s < sum-1e-6 && most > 0.05 || s < sum+1e-6 && m < most+1e-6 && changes(workers, other) < changes(workers, got) {
				t.Fatalf("%+v with the weights %v have %v, better is %v", workers, weights, got, other)
			}
			i := 0
			for ; i < len(other); i++ {
				if other[i]++; other[i] < len(weights) {
					break
				}
				other[i] = 0
			}
			if i == len(other) {
				return
			}
		}
	})
}
