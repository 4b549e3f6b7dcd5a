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

// A search that is not done after doubtNodes nodes is worth a longer look for a
// first tour, of doubtKicks kicks a city from doubtRuns starts.
const (
	doubtNodes = 500
	doubtKicks = 250
	doubtRuns  = 10
)

// Solve finds a shortest tour in one thread: Prepare, then one Search of
// everything. Where that does not end soon, Solve looks longer for a tour, and
// if it finds a shorter one, it begins again from that.
func Solve(in *tsplib.Instance, o SolveOptions) (Result, error) {
	if o.Kind == 0 {
		o.Kind = Edges
	}
	if o.Stop == nil {
		o.Stop = func() bool { return false }
	}
	var r solver
	p, err := Prepare(in, Options{Seed: o.Seed, Stop: o.Stop})
	if err != nil {
		return Result{}, err
	}
	if err := r.begin(p, o); err != nil {
		return Result{}, err
	}
	if !r.search(doubtNodes, o.Stop) && !o.Stop() {
		im := NewImprover(in, ImproverOptions{Seed: o.Seed, Kicks: doubtKicks * in.N, Runs: doubtRuns})
		if err := im.Offer(r.Tour); err != nil {
			return Result{}, err
		}
		im.finish(o.Stop)
		if tour, length := im.Best(); length < r.Length {
			if err := r.begin(p.from(tour), o); err != nil {
				return Result{}, err
			}
		}
		r.search(math.MaxInt64, o.Stop)
	}
	r.LowerBound = r.s.Bound()
	r.Proven = r.LowerBound == r.Length
	return r.Result, nil
}

// solver is a search and what came of it.
type solver struct {
	Result
	s         *Search
	incumbent atomic.Int64
}

// begin makes a search of everything in p the current one.
func (r *solver) begin(p *Problem, o SolveOptions) (err error) {
	r.Tour, r.Length = p.Tour(), p.Length()
	r.incumbent.Store(int64(r.Length))
	if r.s, err = NewSearch(p, Root(o.Kind), &r.incumbent); err != nil {
		return err
	}
	r.s.SetPoll(o.Stop)
	return nil
}

// search steps until the search is done, which it reports, or has seen that
// many nodes, or is stopped.
func (r *solver) search(most int64, stop func() bool) (done bool) {
	before := r.Nodes - r.s.Nodes()
	defer func() { r.Nodes = before + r.s.Nodes() }()
	for r.s.Nodes() < most && !stop() {
		switch r.s.Step() {
		case Improved:
			r.Tour, r.Length = r.s.Tour()
		case Done:
			return true
		case Running:
		}
	}
	return false
}
