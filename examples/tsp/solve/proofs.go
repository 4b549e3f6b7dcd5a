package main

import (
	"encoding/json"
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

// proofs solves every instance, prints a line each, and counts.
func proofs(w io.Writer, list []task, o options) error {
	p := printer{w: w}
	if o.json {
		p.w = io.Discard
	}
	rows := []proofRow{}
	p.say("%s; one thread, processor seconds, best of %d, cap %v\n\n", machine(), o.runs, o.limit)
	p.say("%-14s %5s %8s %8s %8s %8s %9s\n", "instance", "n", "optimum", "length", "bound", "nodes", "seconds")
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
		p.say("%-14s %5d %s %8d %8d %8d %9s\n", t.name, t.in.N, published(t.optimum), r.Length, r.LowerBound, r.Nodes, shown)
		if err := t.check(r); err != nil {
			return err
		}
		rows = append(rows, proofRow{t.name, t.in.N, t.optimum, r.Length, r.LowerBound, r.Proven, r.Nodes, took.Seconds()})
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
	if o.json {
		return json.NewEncoder(w).Encode(map[string]any{"machine": machine(), "show": o.show, "runs": o.runs, "rows": rows})
	}
	return p.err
}

// proofRow is the proof of an instance by the bare solver, or how far it came.
type proofRow struct {
	Instance   string  `json:"instance"`
	N          int     `json:"n"`
	Optimum    int     `json:"optimum"` // as published, -1 if not known
	Length     int     `json:"length"`
	LowerBound int     `json:"lower_bound"`
	Proven     bool    `json:"proven"`
	Nodes      int64   `json:"nodes"`
	Seconds    float64 `json:"processor_seconds"`
}

// published shows an optimum in eight columns.
func published(optimum int) string {
	if optimum < 0 {
		return fmt.Sprintf("%8s", "?")
	}
	return fmt.Sprintf("%8d", optimum)
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
