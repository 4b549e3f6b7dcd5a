package main

import (
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/gopegasus/pegasus/examples/tsp/bnb"
)

// marks are the times that proofs are counted by.
var marks = []time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute}

// proofs solves every instance, prints a line each, and counts.
func proofs(w io.Writer, list []task, o options) error {
	say(w, "one thread, processor seconds\n\n%-14s %5s %8s %8s %8s %8s %9s\n", "instance", "n", "optimum", "length", "bound", "nodes", "seconds")
	counts := make([]int, len(marks))
	for _, t := range list {
		r, took, err := best(t, o)
		if err != nil {
			return err
		}
		shown := fmt.Sprintf("%.3f", took.Seconds())
		if !r.Proven {
			shown = fmt.Sprintf(">%g", o.limit.Seconds())
		}
		say(w, "%-14s %5d %8s %8d %8d %8d %9s\n", t.name, t.in.N, t.published(), r.Length, r.LowerBound, r.Nodes, shown)
		if err := t.check(r); err != nil {
			return err
		}
		for i, mark := range marks {
			if r.Proven && took < mark {
				counts[i]++
			}
		}
	}
	say(w, "\nproven within")
	for i, mark := range marks {
		say(w, " %gs: %d,", mark.Seconds(), counts[i])
	}
	say(w, " of %d\n", len(list))
	return nil
}

// best solves an instance several times and returns the quickest proof, or the
// last result if there is none.
func best(t task, o options) (least bnb.Result, took time.Duration, err error) {
	for range o.runs {
		runtime.GC() // what the run before has left
		start, before := time.Now(), used()
		r, err := bnb.Solve(t.in, bnb.SolveOptions{Seed: o.seed, Stop: func() bool { return time.Since(start) > o.limit }})
		if err != nil {
			return r, 0, err
		}
		if now := used() - before; !least.Proven || r.Proven && now < took {
			least, took = r, now
		}
	}
	return least, took, nil
}

// check refuses a result that contradicts the published optimum or is no tour.
func (t task) check(r bnb.Result) error {
	if err := bnb.Verify(t.in, r.Tour, r.Length); err != nil {
		return fmt.Errorf("%s: %w", t.name, err)
	}
	if t.optimum >= 0 && (r.LowerBound > t.optimum || r.Length < t.optimum) {
		return fmt.Errorf("%s: a tour of %d and a bound of %d contradict the published optimum %d: the index or the solver is wrong",
			t.name, r.Length, r.LowerBound, t.optimum)
	}
	return nil
}
