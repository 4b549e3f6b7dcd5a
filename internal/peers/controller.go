package peers

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/gopegasus/pegasus/clocksync/source"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

// pollEvery is the time between the polls of a poller.
const pollEvery = 100 * time.Millisecond

// controller is one way to find that all workers are idle.
type controller struct {
	name   string
	report string // how its workers report
	// start starts it before the workers join. It adds to the run what has to be called at the end.
	start func(ctx context.Context, r *run) error
	// serve starts a server for a run; nil: a NATS server.
	serve func(ctx context.Context) (*Server, error)
}

// Controller is a controller over another server than NATS. It keeps the latest state of each worker.
type Controller struct {
	// Name stands in results, and names the controller to the workers.
	Name string
	// Serve starts a server for a run.
	Serve func(ctx context.Context) (*Server, error)
	// Watch starts to bring the reports of all workers into a view, on one goroutine. It is called before a worker joins.
	// The function that it returns ends that goroutine and waits for it.
	Watch func(ctx context.Context, s *Server, v *View) (end func() error, err error)
	// Join connects a worker, in the worker's process.
	Join func(ctx context.Context, c *Connection) error
}

// inside is the controller as it is run.
func (c *Controller) inside() controller {
	return controller{c.Name, c.Name, func(ctx context.Context, r *run) error {
		v := &View{states: make([]int, r.workers), record: &r.record}
		end, err := c.Watch(ctx, r.server, v)
		if err == nil {
			r.ends = append(r.ends, end)
		}
		return err
	}, c.Serve}
}

// controllers are compared, in this order.
func controllers() []controller {
	return []controller{
		{"pegasus", reportPegasus, startPegasus, nil},
		{"nats", reportPublish, startSubscriber, nil},
		{"nats-kv", reportKV, startKVWatcher, nil},
		{"poll-nats", reportAsked, startPoller, nil},
		{"poll-kv", reportKV, startKVPoller, nil},
	}
}

// record is what a controller records, on any goroutine.
type record struct {
	mu      sync.Mutex
	firings []Firing
	failed  error
}

func (r *record) addFiring(number uint64, states []int) {
	at := source.Monotonic()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.firings = append(r.firings, Firing{number, at, states})
}

// fail keeps the first error.
func (r *record) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.failed = err
	}
}

const pegasusConfig = `
synchronizers:
  peers:
    members: {group: peers, count: %d}
    state: {idle: bool, n: int}
    predicates:
      idle:
        when: all(members, .idle)
        signal: {kind: activate, region: work}
`

// startPegasus runs a synchronizer.
func startPegasus(ctx context.Context, r *run) error {
	cfg, err := synchronizer.ParseConfig("peers", fmt.Appendf(nil, pegasusConfig, r.workers))
	if err != nil {
		return err
	}
	complete, once := make(chan struct{}), sync.Once{}
	s, err := synchronizer.Start(ctx, r.server.URL, cfg, synchronizer.Options{Tenant: group, NATS: []nats.Option{nats.Token(r.server.Token)}, Observe: func(e monitor.Event) {
		switch e := e.(type) {
		case monitor.Epoch:
			if len(e.Members) == r.workers {
				once.Do(func() { close(complete) })
			}
		case monitor.Verdict:
			if e.Fired {
				r.record.addFiring(numberOf(e.Decision), statesOf(&e, r.workers))
			}
		}
	}})
	if err != nil {
		return err
	}
	r.ends = append(r.ends, s.Close)
	r.ready = func(ctx context.Context) error {
		select {
		case <-complete:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// statesOf returns the numbers of the states of a witness, by worker, and -1 for a worker that it does not have.
func statesOf(v *monitor.Verdict, workers int) []int {
	states := make([]int, workers)
	for i := range states {
		states[i] = -1
	}
	for _, p := range v.Witness {
		worker, err := strconv.Atoi(p.Name)
		if err != nil || worker < 0 || worker >= workers {
			continue
		}
		for i, value := range p.Row {
			if p.Fields[i].Name == "n" {
				states[worker] = int(value.Int())
			}
		}
	}
	return states
}

// View is the latest state of each worker, for one goroutine. It fires when all have become idle.
type View struct {
	// Tell sends the number of a firing to all workers. It is set before the first state is known.
	Tell func(number []byte) error

	states []int
	idle   bool // all of them
	fired  uint64
	record *record
}

func newView(r *run, nc *nats.Conn) *View {
	return &View{
		Tell:   func(number []byte) error { return nc.Publish(subjectTold, number) },
		states: make([]int, r.workers), record: &r.record,
	}
}

// Update replaces the state of a worker by the text that it reported, and fires if all have become idle. A text that is
// no state is an error of the run.
func (v *View) Update(worker, state string) {
	v.replaceState(worker, state)
	v.fireOnce()
}

// Fail ends the run with an error, at its end. Any goroutine may call it.
func (v *View) Fail(err error) { v.record.fail(err) }

// replaceState takes a message of a worker. A message that is no state is an error of the run.
func (v *View) replaceState(worker, state string) {
	w, err1 := strconv.Atoi(worker)
	n, err2 := strconv.Atoi(state)
	if err := errors.Join(err1, err2); err != nil || w < 0 || w >= len(v.states) {
		v.record.fail(fmt.Errorf("state %q of worker %q: it cannot be read", state, worker))
		return
	}
	v.states[w] = n
}

// fireOnce fires if all are idle and were not all idle at the last call.
func (v *View) fireOnce() {
	was := v.idle
	v.idle = true
	for _, n := range v.states {
		v.idle = v.idle && n%2 == 1
	}
	if v.idle && !was {
		v.fire()
	}
}

func (v *View) fire() {
	v.fired++
	v.record.addFiring(v.fired, append([]int(nil), v.states...))
	if err := v.Tell(strconv.AppendUint(nil, v.fired, 10)); err != nil {
		v.record.fail(fmt.Errorf("message to the workers: %w", err))
	}
}

// connect connects a controller, which is disconnected at the end.
func (r *run) connect() (*nats.Conn, error) {
	nc, err := nats.Connect(r.server.URL, nats.Token(r.server.Token))
	if err != nil {
		return nil, fmt.Errorf("connection to %s: %w", r.server.URL, err)
	}
	r.ends = append(r.ends, func() error {
		nc.Close()
		return nil
	})
	return nc, nil
}

// startSubscriber keeps the latest state that each worker has published.
func startSubscriber(_ context.Context, r *run) error {
	nc, err := r.connect()
	if err != nil {
		return err
	}
	v := newView(r, nc)
	if _, err := nc.Subscribe(subjectState+"*", func(m *nats.Msg) {
		v.Update(strings.TrimPrefix(m.Subject, subjectState), string(m.Data))
	}); err != nil {
		return fmt.Errorf("subscription to %s*: %w", subjectState, err)
	}
	return nc.FlushTimeout(patience)
}

// createBucket connects a controller to a new bucket in the memory of the server.
func (r *run) createBucket(ctx context.Context) (*nats.Conn, jetstream.KeyValue, error) {
	nc, err := r.connect()
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, nil, fmt.Errorf("JetStream: %w", err)
	}
	kv, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: bucket, Storage: jetstream.MemoryStorage})
	if err != nil {
		return nil, nil, fmt.Errorf("bucket %q: %w", bucket, err)
	}
	return nc, kv, nil
}

// startKVWatcher watches the bucket, and keeps the latest state of each worker.
func startKVWatcher(ctx context.Context, r *run) error {
	nc, kv, err := r.createBucket(ctx)
	if err != nil {
		return err
	}
	watcher, err := kv.WatchAll(ctx)
	if err != nil {
		return fmt.Errorf("watch of bucket %q: %w", bucket, err)
	}
	v := newView(r, nc)
	r.background(ctx, func(ctx context.Context) {
		for {
			select {
			case e, open := <-watcher.Updates():
				if !open {
					return
				}
				if e != nil { // Nil follows the values that were there before.
					v.Update(e.Key(), string(e.Value()))
				}
			case <-ctx.Done():
				return
			}
		}
	})
	r.ends = append(r.ends, watcher.Stop)
	return nil
}

// background runs a function until the end of the run, which cancels its context and waits for it.
func (r *run) background(ctx context.Context, work func(context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { work(ctx) })
	r.ends = append(r.ends, func() error {
		cancel()
		running.Wait()
		return nil
	})
}

// poll reads the states of all workers at a fixed rate, each time before it decides.
func (r *run) poll(ctx context.Context, v *View, read func(context.Context) error) {
	r.background(ctx, func(ctx context.Context) {
		due := time.NewTicker(pollEvery)
		defer due.Stop()
		for {
			select {
			case <-due.C:
			case <-ctx.Done():
				return
			}
			if !r.joined.Load() {
				continue
			}
			switch err := read(ctx); {
			case ctx.Err() != nil:
				return
			case err != nil:
				r.record.fail(fmt.Errorf("poll: %w", err))
				return
			}
			v.fireOnce()
		}
	})
}

// startPoller asks all workers with one request, which each of them answers.
func startPoller(ctx context.Context, r *run) error {
	nc, err := r.connect()
	if err != nil {
		return err
	}
	v := newView(r, nc)
	r.poll(ctx, v, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		inbox := nc.NewInbox()
		answers, err := nc.SubscribeSync(inbox)
		if err != nil {
			return err
		}
		defer func() { _ = answers.Unsubscribe() }() // It fails only if the connection is closed.
		if err := nc.PublishRequest(subjectAsk, inbox, nil); err != nil {
			return err
		}
		for range r.workers {
			m, err := answers.NextMsgWithContext(ctx)
			if err != nil {
				return err
			}
			worker, state, _ := strings.Cut(string(m.Data), " ")
			v.replaceState(worker, state)
		}
		return nil
	})
	return nil
}

// startKVPoller gets all values of the bucket, one after the other.
func startKVPoller(ctx context.Context, r *run) error {
	nc, kv, err := r.createBucket(ctx)
	if err != nil {
		return err
	}
	v := newView(r, nc)
	r.poll(ctx, v, func(ctx context.Context) error {
		for worker := range r.workers {
			key := strconv.Itoa(worker)
			e, err := kv.Get(ctx, key)
			if errors.Is(err, jetstream.ErrKeyNotFound) { // Its first put is still on its way.
				continue
			}
			if err != nil {
				return err
			}
			v.replaceState(key, string(e.Value()))
		}
		return nil
	})
	return nil
}
