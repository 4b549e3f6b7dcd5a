package bench

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/clocksync/source"
)

// state is the local state of every member of a benchmark.
type state struct {
	Load float64
	N    int64
}

// The members of a rate set windows of states, and are answered by a signal for
// each. More are not on their way than an agent keeps until they are told, and than
// a detector lets wait for the other members, so that none is given up.
const (
	window  = 160
	windows = 6
)

// region is where the first member of each group takes its signals.
const region = "bench"

// answered is what the signals of the benchmark do: they tell which round they
// answer.
func (g *group) answered() agent.RegionOption {
	return agent.OnActivate("answer", func(_ context.Context, s agent.Signal) error {
		g.acked, g.handled = s.Int("n"), source.Monotonic()
		return nil
	})
}

// rate sets states of all members in turn, and counts what has been judged.
func (g *group) rate(ctx context.Context, q request) (f figures, err error) {
	members := int64(len(g.members))
	err = g.members[0].Region(ctx, region, func(ctx context.Context, r *agent.Region) error {
		before, first := g.dropped(), g.n
		began := source.Monotonic()
		for until := began.Add(q.Time); source.Monotonic() < until; {
			if err := g.waitFor(ctx, r, members*(g.n-(windows-1)*window)); err != nil {
				return err
			}
			for range window {
				g.n++
				for _, m := range g.members {
					if err := m.Set(state{N: g.n}); err != nil {
						return err
					}
				}
			}
		}
		if err := g.waitFor(ctx, r, members*g.n); err != nil {
			return err
		}
		f.Count, f.Shed = uint64(members*(g.n-first)), g.dropped()-before //nolint:gosec // It rises.
		f.Rate = float64(f.Count-f.Shed) / source.Monotonic().Sub(began).Seconds()
		return nil
	}, g.answered())
	return f, err
}

// waitFor waits until a round has been answered.
func (g *group) waitFor(ctx context.Context, r *agent.Region, n int64) error {
	for g.acked < n {
		if err := r.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// dropped counts unreported states.
func (g *group) dropped() (n uint64) {
	for _, m := range g.members {
		s := m.Stats()
		n += s.Dropped + s.PublishErrors
	}
	return n
}

// signal measures the time from a state of the first member to its signal. The
// others have told one state, which still holds, and say nothing.
func (g *group) signal(ctx context.Context, q request) (f figures, err error) {
	if g.n == 0 {
		if err := g.tell(); err != nil {
			return f, err
		}
	}
	first := g.members[0]
	err = first.Region(ctx, region, func(ctx context.Context, r *agent.Region) error {
		f, err = roundTrips(q, func() (clocksync.Instant, error) {
			g.n++
			if err := first.Set(state{N: g.n}); err != nil {
				return 0, err
			}
			err := g.waitFor(ctx, r, g.n)
			return g.handled, err
		})
		return err
	}, g.answered())
	return f, err
}

// tell has every member set a first state.
func (g *group) tell() error {
	for _, m := range g.members {
		if err := m.Set(state{}); err != nil {
			return err
		}
	}
	return nil
}

// threadState is the local state of a thread.
type threadState struct{ N int64 }

// checks is how many checks or loads are timed at once.
const checks = 1 << 20

// threads measures the time from a thread's state to the handler in another thread that
// computes and checks its region, and the cost of a check.
func (g *group) threads(ctx context.Context, q request) (f figures, err error) {
	m := g.members[0]
	setter, err := m.Thread("setter", agent.ThreadState(threadState{}))
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, setter.Close()) }()
	poller, err := m.Thread("poller", agent.ThreadState(threadState{}))
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, poller.Close()) }()
	if err := errors.Join(setter.Set(threadState{}), poller.Set(threadState{})); err != nil {
		return f, err
	}
	f, err = threadSignals(ctx, q, setter, poller)
	if err == nil {
		f.Check, f.Load, err = checkCost(ctx, poller)
	}
	return f, err
}

var errDone = errors.New("the leg is over")

// threadSignals has both threads compute: the setter until the polling thread has answered its
// state and polls again.
func threadSignals(ctx context.Context, q request, setter, poller *agent.Thread) (figures, error) {
	var began, handled atomic.Int64
	var answered int64
	var took []float64
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var setting sync.WaitGroup
	set := func() error {
		for n, until := int64(1), source.Monotonic().Add(q.Time); source.Monotonic() < until; n++ {
			began.Store(int64(source.Monotonic()))
			if err := setter.Set(threadState{n}); err != nil {
				return err
			}
			for handled.Load() < n {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
			}
		}
		return errDone
	}
	err := poller.Region(ctx, region, func(_ context.Context, r *agent.Region) error {
		setting.Go(func() { stop(set()) })
		for told := answered; ; {
			if err := r.Check(); err != nil {
				return err
			}
			if told != answered {
				told = answered
				handled.Store(told)
			}
		}
	}, agent.OnActivate("answer", func(_ context.Context, s agent.Signal) error {
		took = append(took, float64(int64(source.Monotonic())-began.Load())/1e3)
		answered = s.Int("n")
		return nil
	}))
	stop(err)
	setting.Wait()
	if !errors.Is(err, errDone) {
		return figures{}, err
	}
	if len(took) == 0 {
		return figures{}, errLost
	}
	return percentiles(took), nil
}

// checkCost times checks with nothing to do and atomic loads, in turns, in
// nanoseconds each.
func checkCost(ctx context.Context, t *agent.Thread) (check, load float64, err error) {
	var checked, loaded []float64
	var flag atomic.Bool
	err = t.Region(ctx, region, func(_ context.Context, r *agent.Region) error {
		for range 9 {
			began := source.Monotonic()
			for range checks {
				if err := r.Check(); err != nil {
					return err
				}
			}
			middle := source.Monotonic()
			for range checks {
				if flag.Load() {
					return errDone
				}
			}
			checked = append(checked, float64(middle.Sub(began))/checks)
			loaded = append(loaded, float64(source.Monotonic().Sub(middle))/checks)
		}
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	return median(checked), median(loaded), nil
}
