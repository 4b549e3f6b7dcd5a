package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/examples/tsp/bnb"
	"github.com/gopegasus/pegasus/examples/tsp/tsplib"
	"github.com/gopegasus/pegasus/work"
)

// Names that the configuration uses as well.
const (
	group        = "tsp"
	regionSearch = "search"
)

// pingEvery is how often a worker tells its progress.
const (
	pingEvery = 500 * time.Millisecond
	byeEvery  = 20 * time.Millisecond // and whether it may go, in the end
)

// worker is one worker process.
type worker struct {
	name   string
	url    string
	log    *slog.Logger
	client *client

	info     runInfo
	in       *tsplib.Instance
	improver *bnb.Improver // until the search begins, of the first thread
	problem  *bnb.Problem  // set before prepared is closed
	prepared chan struct{}
	bags     *bags
	member   *agent.Member

	incumbent atomic.Int64 // the least length known here, which all threads read
	demand    atomic.Bool  // a thread is asked to put a part of its bag back into the space
	done      atomic.Bool  // the predicate Done has ended the search
	nodes     atomic.Int64
	busy      atomic.Int64 // time that threads have searched, added up
	space     atomic.Pointer[work.Space]
}

// runWorker takes part in a run from its hello to its end.
func runWorker(ctx context.Context, url, run, name string, patient bool, log *slog.Logger) error {
	nc, err := dialData(ctx, url, "tsp worker "+name)
	if err != nil {
		return err
	}
	defer nc.Close()
	err = newWorker(nc, url, run, name, patient, log).live(ctx)
	if errors.Is(err, errOver) {
		return nil
	}
	return err
}

func newWorker(nc *nats.Conn, url, run, name string, patient bool, log *slog.Logger) *worker {
	w := &worker{name: name, url: url, log: log, prepared: make(chan struct{})}
	w.client = &client{conn: dataConn{nc, dataSubject(run)}, name: name, patient: patient}
	w.bags = newBags(w.tell)
	return w
}

// live is the worker between its connection and its end.
func (w *worker) live(ctx context.Context) error {
	if err := w.hello(ctx); err != nil {
		return err
	}
	if err := w.join(ctx); err != nil {
		return err
	}
	err := w.work(ctx)
	if err == nil {
		w.bye(ctx)
	}
	return errors.Join(err, w.member.Close())
}

// hello learns what the run is about.
func (w *worker) hello(ctx context.Context) error {
	a, err := w.client.ask(ctx, w.about(opHello))
	if err != nil {
		return err
	}
	w.info = a.Run
	w.in, err = w.fetchInstance(ctx)
	if err != nil {
		return err
	}
	if w.in.N != w.info.N {
		return fmt.Errorf("instance %s has %d cities here and %d at the coordinator: use the same build of this program", w.info.Instance, w.in.N, w.info.N)
	}
	return nil
}

// about is a request with what the coordinator has to know of this worker.
func (w *worker) about(o op) request {
	return request{Op: o, PID: os.Getpid(), Outside: !w.client.patient}
}

// join makes the first tour and enters the group.
func (w *worker) join(ctx context.Context) error {
	w.improver = bnb.NewImprover(w.in, bnb.ImproverOptions{Seed: w.info.Seed, Start: bnb.Poor, Kicks: kicks})
	tour, length := w.improver.Best()
	w.incumbent.Store(int64(length))
	if err := w.deliver(ctx, tour, length); err != nil {
		return err
	}
	m, err := agent.Join(ctx, w.url, agent.Config{Group: group, Name: w.name, Tenant: w.info.ID, Logger: w.log, SeparateClock: w.info.Separate})
	w.member = m
	return err
}

// work runs the process's region and its threads until they are cancelled.
func (w *worker) work(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	defer all.Wait()
	failed := func(err error) {
		if err != nil {
			cancel(err)
		}
	}
	opened, left := make(chan struct{}), make(chan struct{})
	all.Go(func() {
		defer close(left)
		failed(w.region(ctx, opened))
	})
	<-opened
	w.bags.open()
	for i := range w.info.Threads {
		if err := w.startThread(ctx, i, &all, failed); err != nil {
			cancel(err)
			return err
		}
	}
	all.Go(func() { w.ping(ctx, left) })
	serving, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan struct{})
	all.Go(func() {
		defer close(served)
		failed(w.serve(serving))
	})
	<-left
	w.bags.stop()
	if w.done.Load() { // The space hears of the same end on its own.
		select {
		case <-served:
		case <-time.After(leaveWait / 2):
		}
	}
	stop()
	threadsEnd := time.AfterFunc(time.Second, func() { cancel(errors.New("the threads did not end")) })
	defer threadsEnd.Stop()
	all.Wait()
	return context.Cause(ctx)
}

// serve opens the space once the instance is prepared, and has it run bags until the search is over or ctx ends. A process that was dropped from
// the group, such as one that was stopped for a while, opens it again once it is back.
func (w *worker) serve(ctx context.Context) error {
	select {
	case <-w.prepared:
	case <-ctx.Done():
		return nil
	}
	for {
		err := w.serveOnce(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // It was told to end.
		}
		if !errors.Is(err, work.ErrDropped) {
			return err // Or nil: the phase is over.
		}
		w.log.Info("dropped; beginning again", "worker", w.name)
	}
}

func (w *worker) serveOnce(ctx context.Context) error {
	strategy, err := newStrategy(w.info.Strategy)
	if err != nil {
		return err
	}
	s, err := work.Open(ctx, w.member, work.Slots(w.info.Threads), work.Strategy(strategy), work.Bag(bagName, w.branch, shorter))
	if err != nil {
		return err
	}
	w.space.Store(s)
	w.bags.join(func() int { return s.Stats().Queued }, w.info.Strategy == bySignals)
	err = s.Wait(ctx)
	w.space.Store(nil)
	w.bags.join(nil, false)
	return errors.Join(err, s.Close())
}

// tell sets the state of the process.
func (w *worker) tell(s processState) {
	if err := w.member.Set(s); err != nil && !errors.Is(err, agent.ErrClosed) {
		w.log.Error("state not set", "error", err)
	}
}

func (w *worker) startThread(ctx context.Context, i int, all *sync.WaitGroup, failed func(error)) error {
	th, err := w.member.Thread("t" + strconv.Itoa(i+1))
	if err != nil {
		return err
	}
	t := &thread{w: w, agent: th, state: threadState{Idle: i > 0, Best: int(w.incumbent.Load())}}
	work := t.others
	if i == 0 {
		work = t.first
	}
	if err := t.set(); err != nil {
		return err
	}
	all.Go(func() { failed(t.run(ctx, work)) })
	return nil
}

// region takes the signals of the global synchronizer.
func (w *worker) region(ctx context.Context, opened chan<- struct{}) error {
	var once sync.Once
	open := func() { once.Do(func() { close(opened) }) }
	defer open()
	ended := func(_ context.Context, s agent.Signal) error {
		w.done.Store(s.Name == "Done")
		return nil
	}
	return w.member.Region(ctx, regionSearch, func(ctx context.Context, r *agent.Region) error {
		open()
		for {
			if err := r.Wait(ctx); err != nil {
				return err
			}
		}
	},
		agent.OnActivate("NewSubtask", w.newSubtask), agent.OnActivate("Migrate", w.migrate), agent.OnActivate("NewBest", w.newBest),
		agent.OnCancel("StopIteration", ended), agent.OnCancel("Done", ended))
}

// ping tells the coordinator of the progress, until the region is left.
func (w *worker) ping(ctx context.Context, left <-chan struct{}) {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := w.report(ctx); err != nil {
				w.log.Info("progress not told", "error", err)
			}
		case <-left:
			return
		case <-ctx.Done():
			return
		}
	}
}

// report tells the coordinator of the progress.
func (w *worker) report(ctx context.Context) error {
	r := w.about(opPing)
	r.Progress = progress{
		Load: w.bags.load(), Nodes: w.nodes.Load(), Late: w.member.Stats().Threads.Late(), Busy: time.Duration(w.busy.Load()).Seconds(),
	}
	_, err := w.client.ask(ctx, r)
	return err
}

// bye stays in the group until the coordinator says that the run is over: one
// that leaves begins a new epoch, which would fence off signals that are still on
// their way to others.
func (w *worker) bye(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaveWait)
	defer cancel()
	for w.report(ctx) == nil {
		pause(ctx, byeEvery)
	}
}
