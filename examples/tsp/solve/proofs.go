package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/examples/tsp/bnb"
)

// marks are the times that proofs are counted by.
var marks = []time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute}

// proofs solves every instance, prints a line each, and counts.
func proofs(w io.Writer, list []task, o options) error {
	p := printer{w: w}
	p.say("%s; one thread, processor seconds, best of %d, cap %v\n\n", machine(), o.runs, o.limit)
	p.say("%-14s %5s %8s %8s %8s %8s %9s\n", "instance", "n", "optimum", "length", "bound", "nodes", "seconds")
	counts := make([]int, len(marks))
	for _, t := range list {
		r, took, err := best(t, o)
		if err != nil {
			return err
		}
		optimum, shown := "?", fmt.Sprintf("%.3f", took.Seconds())
		if t.optimum >= 0 {
			optimum = strconv.Itoa(t.optimum)
		}
		if !r.Proven {
			shown = fmt.Sprintf(">%g", o.limit.Seconds())
		}
		p.say("%-14s %5d %8s %8d %8d %8d %9s\n", t.name, t.in.N, optimum, r.Length, r.LowerBound, r.Nodes, shown)
		if err := t.check(r); err != nil {
			return err
		}
		for i, mark := range marks {
			if r.Proven && took < mark {
				counts[i]++
			}
		}
	}
	p.say("\nproven within")
	for i, mark := range marks {
		p.say(" %gs: %d,", mark.Seconds(), counts[i])
	}
	p.say(" of %d\n", len(list))
	return p.err
}

// best solves an instance several times and returns the quickest proof, or the
// last result if there is none.
func best(t task, o options) (least bnb.Result, took time.Duration, err error) {
	for range o.runs {
		runtime.GC() // what the run before has left
		start := used()
		late := func() bool { return used()-start > o.limit }
		r, err := bnb.Solve(t.in, bnb.SolveOptions{Seed: o.seed, Stop: every(64, late)})
		if err != nil {
			return r, 0, err
		}
		if now := used() - start; !least.Proven || r.Proven && now < took {
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

// every asks f once in n times, as f costs more than a poll should.
func every(n int, f func() bool) func() bool {
	left, stopped := 0, false
	return func() bool {
		if left--; left < 0 {
			left, stopped = n, f()
		}
		return stopped
	}
}

// machine names the processor, where that is known, and the program's build.
func machine() string {
	name := "unknown processor"
	b, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for line := range strings.Lines(string(b)) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				name = strings.TrimSpace(value)
			}
		}
	}
	return fmt.Sprintf("%s, %d processors, %s/%s, %s", name, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
}

// printer writes until the first error, which it keeps.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) say(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}
