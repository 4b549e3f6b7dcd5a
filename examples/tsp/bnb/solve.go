package bnb

import (
	"math"
	"sync/atomic"

	"github.com/gopegasus/pegasus/examples/tsp/tsplib"
)

// SolveOptions configure Solve; the zero value is useful.
type SolveOptions struct {
	Seed uint64 // of the first tour
	Kind Kind   // of the subtasks, Edges if 0
	// Stop, if not nil, is polled every few microseconds to milliseconds; once
	// it returns true Solve returns what it has.
	Stop func() bool
}

// Result is what Solve found.
type Result struct {
	Tour       []int
	Length     int   // of Tour
	LowerBound int   // no tour is shorter; equals Length when Proven
	Nodes      int64 // searched
	Proven     bool  // Tour is a shortest tour
}

// Solve finds a shortest tour in one thread: Prepare, then one Search of
// everything.
func Solve(in *tsplib.Instance, o SolveOptions) (Result, error) {
	p, err := Prepare(in, Options{Seed: o.Seed, Stop: o.Stop})
	if err != nil {
		return Result{}, err
	}
	if o.Kind == 0 {
		o.Kind = Edges
	}
	var incumbent atomic.Int64
	incumbent.Store(math.MaxInt64)
	s, err := NewSearch(p, Root(o.Kind), &incumbent)
	if err != nil {
		return Result{}, err
	}
	s.SetPoll(o.Stop)
	res := Result{Tour: p.Tour(), Length: p.Length()}
	done := false
	for !done && (o.Stop == nil || !o.Stop()) {
		switch s.Step() {
		case Improved:
			res.Tour, res.Length = s.Tour()
		case Done:
			done = true
		case Running:
		}
	}
	res.LowerBound, res.Nodes = s.Bound(), s.Nodes()
	res.Proven = res.LowerBound == res.Length
	return res, nil
}
