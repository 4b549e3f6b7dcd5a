package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/examples/tsp/bnb"
)

// marks are the times that proofs are counted by.
var marks = []time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute}

// table solves every instance and prints a line each and the counts.
func table(w io.Writer, list []task, limit time.Duration, runs int, seed uint64) error {
	p := printer{w: w}
	p.say("%s, %d CPUs, %s/%s, %s; one thread, CPU seconds, best of %d, cap %v\n\n",
		machine(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), runs, limit)
	p.say("%-14s %5s %8s %8s %8s %8s %9s\n", "instance", "n", "optimum", "length", "bound", "nodes", "CPU s")
	counts := make([]int, len(marks))
	for _, t := range list {
		r, took, err := best(t, limit, runs, seed)
		if err != nil {
			return err
		}
		optimum, shown := "?", fmt.Sprintf("%.3f", took.Seconds())
		if t.optimum >= 0 {
			optimum = fmt.Sprint(t.optimum)
		}
		if !r.Proven {
			shown = fmt.Sprintf(">%.0f", limit.Seconds())
		}
		p.say("%-14s %5d %8s %8d %8d %8d %9s\n", t.in.Name, t.in.N, optimum, r.Length, r.LowerBound, r.Nodes, shown)
		if t.optimum >= 0 && (r.LowerBound > t.optimum || r.Length < t.optimum) {
			return fmt.Errorf("%s: a tour of %d and the bound %d contradict the published optimum %d", t.in.Name, r.Length, r.LowerBound, t.optimum)
		}
		for i, mark := range marks {
			if r.Proven && took < mark {
				counts[i]++
			}
		}
	}
	p.say("\nproven within")
	for i, mark := range marks {
		p.say("  %v: %d", mark, counts[i])
	}
	p.say("  of %d\n", len(list))
	return p.err
}

// best solves an instance several times and returns the quickest proof.
func best(t task, limit time.Duration, runs int, seed uint64) (bnb.Result, time.Duration, error) {
	var quickest bnb.Result
	least := limit
	for range runs {
		runtime.GC() // of the run before
		start := used()
		r, err := bnb.Solve(t.in, bnb.SolveOptions{Seed: seed, Stop: every(64, func() bool { return used()-start > least })})
		if err != nil {
			return r, 0, err
		}
		if took := used() - start; !quickest.Proven {
			quickest = r
			least = min(least, took)
		} else if r.Proven {
			least = min(least, took)
		}
	}
	return quickest, least, nil
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

// machine names the processor where that is known.
func machine() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for line := range strings.Lines(string(b)) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				return strings.TrimSpace(value)
			}
		}
	}
	return "unknown processor"
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
