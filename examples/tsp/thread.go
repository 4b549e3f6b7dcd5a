package main

import (
	"context"
	"errors"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/examples/tsp/bnb"
	"github.com/gopegasus/pegasus/examples/tsp/lease"
)

// threadState is what a worker thread tells: the state of tsync's members in
// the configuration.
type threadState struct {
	Idle  bool    // it has no subtask
	Load  float64 // estimate of the work in its subtask
	Best  int     // the best tour it knows
	Spare int     // open nodes it could give away
}

// reportEvery is how often a thread tells how its search goes on, beside what
// others wait for.
const reportEvery = 50 * time.Millisecond

// thread is one worker thread: a goroutine in its region, which searches one
// subtask after the other and idles in between (PEGASUS paper, figure 4.1).
type thread struct {
	w        *worker
	agent    *agent.Thread
	region   *agent.Region
	state    threadState
	reported time.Time
	stop     error // why the search has to end, as Check said it
}

// run is the thread from start to end.
func (t *thread) run(ctx context.Context, work agent.Work) error {
	err := t.agent.Region(ctx, regionSearch, work,
		agent.OnActivate("NewSubtask", func(context.Context, agent.Signal) error { return nil }), // It wakes the idle.
		agent.OnActivate("NewBest", t.newBest),
		agent.OnCancel("StopIteration", t.ended),
		agent.OnCancel("Done", t.ended))
	return errors.Join(err, t.agent.Close())
}

// newBest lets the thread know of a better tour, which it finds in the memory
// that all threads share.
func (t *thread) newBest(_ context.Context, s agent.Signal) error {
	t.w.heard(int(s.Int("length")))
	t.state.Best = int(t.w.incumbent.Load())
	return t.set()
}

func (t *thread) ended(context.Context, agent.Signal) error {
	t.state = threadState{Idle: true, Best: t.state.Best}
	return t.set()
}

func (t *thread) set() error {
	t.reported = time.Now()
	return t.agent.Set(t.state)
}

// first is the work of the process's first thread: it makes a tour of its own
// and prepares the search, then goes on as the others.
func (t *thread) first(ctx context.Context, r *agent.Region) error {
	t.region = r
	if err := t.set(); err != nil {
		return err
	}
	if err := t.improve(); err != nil {
		return err
	}
	if err := t.w.prepare(ctx, t.stopped); err != nil {
		return err
	}
	return t.others(ctx, r)
}

// improve shortens the process's own tour as far as it gets.
func (t *thread) improve() error {
	for done := false; !done; {
		if t.stopped() {
			return t.stop
		}
		var better bool
		if better, done = t.w.improver.Step(); better && t.w.improver.Length() < t.state.Best {
			if err := t.found(t.w.improver.Best()); err != nil {
				return err
			}
		}
	}
	return nil
}

// others is the work of every thread: a subtask from the pool if there is one,
// else wait for a signal.
func (t *thread) others(ctx context.Context, r *agent.Region) error {
	t.region = r
	for {
		task, ok := t.w.pool.take()
		if ok {
			if err := t.search(task); err != nil {
				return err
			}
			continue
		}
		if err := t.idle(); err != nil {
			return err
		}
		if err := r.Wait(ctx); err != nil {
			return err
		}
	}
}

func (t *thread) idle() error {
	if t.w.pool.exhausted() {
		t.w.nothingToGive()
	}
	if idle := (threadState{Idle: true, Best: t.state.Best}); t.state != idle {
		t.state = idle
		return t.set()
	}
	return nil
}

// stopped runs what signals have arrived; true ends an improvement or a search.
func (t *thread) stopped() bool {
	t.stop = t.region.Check()
	return t.stop != nil
}

// found takes a tour of the thread's own.
func (t *thread) found(tour []int, length int) error {
	t.w.found(tour, length)
	t.state.Best = min(t.state.Best, length)
	return t.set()
}

// search looks through one subtask after the other of a lease.
func (t *thread) search(task task) error {
	start := time.Now()
	defer func() { t.w.busy.Add(int64(time.Since(start))) }()
	rest := task.Items
	for len(rest) > 0 {
		sub, err := bnb.DecodeSubtask(rest[0].Body, t.w.in.N)
		if err != nil {
			return err
		}
		s, err := bnb.NewSearch(t.w.problem, sub, &t.w.incumbent)
		if err != nil {
			return err
		}
		s.SetPoll(t.stopped)
		rest = rest[1:]
		mine, err := t.explore(s, task, &rest)
		if err != nil || !mine {
			return err
		}
	}
	t.w.complete(task)
	return nil
}

// explore searches node after node; rest are the lease's subtasks after this
// one, some of which it may give away. It returns early with false when the
// lease is no longer the worker's.
func (t *thread) explore(s *bnb.Search, task task, rest *[]lease.Item) (mine bool, err error) {
	if err := t.progress(s); err != nil {
		return false, err
	}
	for {
		nodes := s.Nodes()
		status := s.Step()
		t.w.nodes.Add(s.Nodes() - nodes)
		if t.stopped() {
			return false, t.stop
		}
		switch status {
		case bnb.Improved:
			if err := t.found(s.Tour()); err != nil {
				return false, err
			}
		case bnb.Done:
			return true, nil
		case bnb.Running:
		}
		t.w.giveFrom(s, task, rest)
		if time.Since(t.reported) > reportEvery {
			if !t.w.pool.note(task, held{leaseBound(s, *rest), s.Load()}) {
				return false, nil
			}
			if err := t.progress(s); err != nil {
				return false, err
			}
		}
	}
}

// progress tells the state of the search.
func (t *thread) progress(s *bnb.Search) error {
	t.state = threadState{Load: s.Load(), Best: t.state.Best, Spare: max(0, s.Open()-1)}
	return t.set()
}

// leaseBound is a length that no tour in the rest of a lease is shorter than.
func leaseBound(s *bnb.Search, rest []lease.Item) int {
	bound := s.Bound()
	for _, it := range rest {
		bound = min(bound, it.Bound)
	}
	return bound
}
