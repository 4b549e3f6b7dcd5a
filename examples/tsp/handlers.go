package main

import (
	"context"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/examples/tsp/bnb"
)

// What a worker process does with the signals of the global synchronizer, and
// what its threads do for it. A handler that is called twice for one need does
// something once: predicates fire on each global state on which they hold.

// orderWait is how long an order of a signal counts as under way. An order that has led to nothing by then is given again,
// if it is still needed.
const orderWait = 50 * time.Millisecond

// newSubtask asks the member that the signal names for as many subtasks as there is room for.
func (w *worker) newSubtask(_ context.Context, s agent.Signal) error {
	space := w.space.Load()
	if space == nil {
		return nil
	}
	n := w.bags.ask(2 * w.info.Threads)
	if n == 0 {
		return nil
	}
	time.AfterFunc(orderWait, w.bags.answered)
	if err := space.Fetch(s.Text("from"), n); err != nil {
		w.log.Info("no subtasks", "error", err)
	}
	return nil
}

// migrate offers subtasks to the member that the signal names. If that is this process itself, a thread puts a part of what it
// searches back into the space.
func (w *worker) migrate(_ context.Context, s agent.Signal) error {
	space, n := w.space.Load(), max(1, int(s.Int("count")))
	if space == nil || !w.bags.give() {
		return nil
	}
	time.AfterFunc(orderWait, w.bags.gave)
	if to := s.Text("to"); to != w.name {
		if err := space.Give(to, n); err != nil {
			w.log.Info("no subtasks given", "error", err)
		}
		return nil
	}
	w.demand.Store(true)
	return nil
}

// newBest takes note of a tour that another process has found.
func (w *worker) newBest(_ context.Context, s agent.Signal) error {
	length := int(s.Int("length"))
	w.heard(length)
	w.bags.known(length)
	return nil
}

// heard lowers the incumbent.
func (w *worker) heard(length int) {
	for {
		now := w.incumbent.Load()
		if int64(length) >= now || w.incumbent.CompareAndSwap(now, int64(length)) {
			return
		}
	}
}

// deliver has the coordinator take a tour that is not of a bag, before anybody hears of it.
func (w *worker) deliver(ctx context.Context, tour []int, length int) error {
	if _, err := w.client.ask(ctx, request{Op: opImprove, Tour: tour, Length: length}); err != nil {
		return err
	}
	w.heard(length)
	w.bags.known(length)
	return nil
}

// prepare makes the instance ready for the search, with the best tour that
// anybody has.
func (w *worker) prepare(ctx context.Context, stop func() bool) error {
	tour, length := w.improver.Best()
	a, err := w.client.ask(ctx, request{Op: opTour})
	if err != nil {
		return err
	}
	if a.Length <= length && len(a.Tour) > 0 { // The same for all, where they can choose.
		tour = a.Tour
	}
	w.problem, err = bnb.Prepare(w.in, bnb.Options{Seed: w.info.Seed, Tour: tour, Stop: stop})
	if err != nil {
		return err
	}
	w.improver = nil
	return nil
}
