package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/examples/tsp/bnb"
	"github.com/gopegasus/pegasus/examples/tsp/lease"
)

// What a worker process does with the signals of the global synchronizer, and
// what its threads do for it. A handler that is called twice for one need does
// something once: predicates fire on each global state on which they hold.

// newSubtask fetches the subtasks that the signal names, as far as wanted.
func (w *worker) newSubtask(_ context.Context, s agent.Signal) error {
	n := w.pool.ask(2*w.info.Threads, int(s.Int("count")))
	if n == 0 {
		return nil
	}
	w.post(request{Op: opGrant, First: lease.ID(s.Int("first")), Count: n}, func(a reply) { w.pool.receive(a.Leases) })
	return nil
}

// migrate gives subtasks back: such as no thread has begun, else children of
// what the threads search.
func (w *worker) migrate(_ context.Context, s agent.Signal) error {
	n := max(1, int(s.Int("count")))
	ids, ok := w.pool.give(n)
	switch {
	case !ok:
	case len(ids) > 0:
		w.post(request{Op: opRelease, IDs: ids}, func(reply) { w.pool.gave() })
	default:
		w.demand.Store(int64(n))
		if w.pool.exhausted() {
			w.nothingToGive()
		}
	}
	return nil
}

// nothingToGive takes a demand back that nobody can meet any more.
func (w *worker) nothingToGive() {
	if w.demand.Swap(0) > 0 {
		w.pool.gave()
	}
}

// newBest takes note of a tour that another process has found.
func (w *worker) newBest(_ context.Context, s agent.Signal) error {
	length := int(s.Int("length"))
	w.heard(length)
	w.pool.known(length)
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

// found takes a tour of a thread: it is on its way to the coordinator before any
// thread prunes by it. A tour that is no better than the best known is left out.
func (w *worker) found(tour []int, length int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if int64(length) >= w.incumbent.Load() {
		return
	}
	w.unsent, w.unsentLen = tour, length
	if !w.improving {
		w.postLocked(request{Op: opImprove}, nil)
	}
	w.heard(length)
}

// post sends a request to the coordinator, with the tour that it lacks, if there
// is one: so it has every tour before it hears of a subtask that was pruned by it.
func (w *worker) post(r request, done func(reply)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.postLocked(r, done)
}

func (w *worker) postLocked(r request, done func(reply)) {
	if w.unsent == nil {
		w.courier.post(r, done)
		return
	}
	r.Tour, r.Length, w.unsent, w.improving = w.unsent, w.unsentLen, nil, true
	w.courier.post(r, func(a reply) {
		w.delivered(r, a)
		if done != nil {
			done(a)
		}
	})
}

// delivered notes that the coordinator has a tour, and sends the next one, if
// there is one by now.
func (w *worker) delivered(r request, a reply) {
	if a.Status == statusVoid {
		w.again(r)
		return
	}
	w.pool.known(r.Length)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.improving = false
	if w.unsent != nil {
		w.postLocked(request{Op: opImprove}, nil)
	}
}

// again keeps a tour that did not get through for the next request.
func (w *worker) again(r request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unsent == nil || r.Length < w.unsentLen {
		w.unsent, w.unsentLen = r.Tour, r.Length
	}
}

// complete tells that a subtask is searched, if it is still the worker's.
func (w *worker) complete(t task) {
	if w.pool.finish(t) {
		w.post(request{Op: opComplete, ID: t.ID}, nil)
	}
}

// giveFrom meets a demand for subtasks out of a search: subtasks of the lease
// that wait behind it, else the oldest open nodes, which hold most of the work.
func (w *worker) giveFrom(s *bnb.Search, t task, rest *[]lease.Item) {
	demand := w.demand.Load()
	if demand == 0 || s.Open()+len(*rest) < 2 || !w.demand.CompareAndSwap(demand, 0) {
		return
	}
	n := (s.Open() + len(*rest)) / 2 // half of the nodes: fewer would soon be asked for again
	k := min(n, len(*rest))
	given, more := fitting(append((*rest)[:k:k], encode(s.Donate(n-k))...))
	*rest = slices.Concat(more, (*rest)[k:])
	// What is kept matters only if this worker dies: prices would make it large.
	kept := s.Remaining()
	for i := range kept {
		kept[i].Prices = nil
	}
	w.returned(t, given, append(encode(kept), *rest...))
}

// fitting cuts subtasks where they would become too large for a message that
// has to tell what is kept as well.
func fitting(items []lease.Item) (fit, more []lease.Item) {
	n, size := 0, 0
	for n < len(items) && size+len(items[n].Body) <= maxBodies/2 {
		size += len(items[n].Body)
		n++
	}
	return items[:n:n], items[n:len(items):len(items)]
}

// returned tells the coordinator what was given and what is kept. Where the
// latter does not fit into a message, the body stays as it was.
func (w *worker) returned(t task, given, kept []lease.Item) {
	if bodySize(given)+bodySize(kept) > maxBodies {
		kept = nil
	}
	w.post(request{Op: opReturn, ID: t.ID, Given: given, Kept: kept}, func(reply) { w.pool.gave() })
}

func encode(subtasks []bnb.Subtask) []lease.Item {
	items := make([]lease.Item, 0, len(subtasks))
	for _, s := range subtasks {
		body, err := json.Marshal(s)
		if err == nil && len(body) > maxPriced {
			s.Prices = nil
			body, err = json.Marshal(s)
		}
		if err != nil {
			panic("tsp: a subtask does not encode: " + err.Error())
		}
		items = append(items, lease.Item{Bound: s.LowerBound, Body: body})
	}
	return items
}

// prepare makes the instance ready for the search, with the best tour that
// anybody has.
func (w *worker) prepare(ctx context.Context, stop func() bool) error {
	tour, length := w.improver.Best()
	a, err := w.courier.ask(ctx, request{Op: opTour})
	switch {
	case errors.Is(err, errVoid): // Its own tour will do.
	case err != nil:
		return err
	case a.Length <= length && len(a.Tour) > 0: // The same for all, where they can choose.
		tour = a.Tour
	}
	w.problem, err = bnb.Prepare(w.in, bnb.Options{Seed: w.info.Seed, Tour: tour, Stop: stop})
	if err != nil {
		return err
	}
	w.improver = nil
	w.pool.ready(w.problem.Load)
	return nil
}
