package main

import (
	"context"
	"errors"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/examples/tsp/bnb"
	"github.com/gopegasus/pegasus/work"
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
	if err := t.improve(ctx); err != nil {
		return err
	}
	if err := t.w.prepare(ctx, t.stopped); err != nil {
		return err
	}
	close(t.w.prepared)
	return t.others(ctx, r)
}

// improve shortens the process's own tour as far as it gets.
func (t *thread) improve(ctx context.Context) error {
	for done := false; !done; {
		if t.stopped() {
			return t.stop
		}
		var better bool
		if better, done = t.w.improver.Step(); better && t.w.improver.Length() < t.state.Best {
			tour, length := t.w.improver.Best()
			if err := t.w.deliver(ctx, tour, length); err != nil {
				return err
			}
			if err := t.recorded(length); err != nil {
				return err
			}
		}
	}
	return nil
}

// others is the work of every thread: a bag if one has come,
// else wait for a signal.
func (t *thread) others(ctx context.Context, r *agent.Region) error {
	t.region = r
	for {
		if j := t.w.bags.take(); j != nil {
			err := t.search(j)
			if t.stop != nil {
				err = errStopped
			}
			if t.w.bags.finish(j, err); t.stop != nil {
				return t.stop
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

// recorded tells of a tour of the thread's own that outlives this process.
func (t *thread) recorded(length int) error {
	t.state.Best = min(t.state.Best, length)
	return t.set()
}

// search looks through one subtask after the other of a bag. The error says why the bag is not searched: it is for the space.
func (t *thread) search(j *job) error {
	start := time.Now()
	defer func() { t.w.busy.Add(int64(time.Since(start))) }()
	for b := j.bag; len(b.list) > 0; {
		s, err := bnb.NewSearch(t.w.problem, b.list[0], &t.w.incumbent)
		if err != nil {
			return err
		}
		s.SetPoll(t.stopped)
		b.list, b.search = b.list[1:], s
		if err := t.explore(j, s); err != nil {
			return err
		}
		b.search = nil
	}
	return nil
}

// explore searches node after node. The bag may lose a part of them at each Yield.
func (t *thread) explore(j *job, s *bnb.Search) error {
	if err := t.progress(s); err != nil {
		return err
	}
	for {
		nodes := s.Nodes()
		status := s.Step()
		t.w.nodes.Add(s.Nodes() - nodes)
		if t.stopped() {
			return t.stop
		}
		if status == bnb.Improved {
			if err := t.found(j, s); err != nil {
				return err
			}
		}
		if status == bnb.Done {
			return nil
		}
		if err := work.Yield(j.ctx); err != nil {
			return err
		}
		if t.w.demand.Load() && j.bag.Len() > 1 && t.w.demand.CompareAndSwap(true, false) {
			if err := t.putBack(j); err != nil {
				return err
			}
		}
		if time.Since(t.reported) > reportEvery {
			t.w.bags.note(j, s.Load())
			if err := t.progress(s); err != nil {
				return err
			}
		}
	}
}

// found records a tour before anybody outside of this process hears of it. Threads of this process prune by it at once: the bag
// that it was found in is not done before the tour is recorded, and is searched again if this process dies.
func (t *thread) found(j *job, s *bnb.Search) error {
	tour, length := s.Tour()
	if int64(length) >= t.w.incumbent.Load() {
		return nil
	}
	*j.best = shorter(*j.best, Best{length, tour})
	t.w.heard(length)
	if err := work.Save(j.ctx); err != nil {
		return err
	}
	t.w.bags.known(length)
	return t.recorded(length)
}

// putBack puts half of a bag back into the space, for another thread of this process.
func (t *thread) putBack(j *job) error {
	part := j.bag.Split(j.bag.Len() / 2)
	if len(part.list) == 0 {
		return nil
	}
	if err := work.SpaceOf(j.ctx).Put(j.ctx, bagName, &part); err != nil {
		return err
	}
	return work.Save(j.ctx)
}

// progress tells the state of the search.
func (t *thread) progress(s *bnb.Search) error {
	t.state = threadState{Load: s.Load(), Best: t.state.Best, Spare: max(0, s.Open()-1)}
	return t.set()
}
