package peers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/clocksync/source"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/bench"
)

// The mean times of a worker's states, which are distributed exponentially.
const (
	meanBusy = 20 * time.Millisecond
	meanIdle = 100 * time.Millisecond
)

// How a worker reports its states.
const (
	reportPegasus = "pegasus" // to a synchronizer
	reportPublish = "publish" // a message for each change
	reportAsked   = "asked"   // an answer to each question
	reportKV      = "kv"      // a put into a bucket for each change
)

// Names on the server.
const (
	group        = "peers" // of the members, and the tenant
	region       = "work"
	bucket       = "peers"
	subjectState = "peers.state." // and the number of the worker
	subjectAsk   = "peers.ask"
	subjectTold  = "peers.told"
	subjectKV    = "$KV." + bucket + "." // and the number of the worker
)

// request is what a worker is asked to do.
type request struct {
	Op     string        // one of the operations
	Report string        `json:",omitzero"` // how, from opJoin to opLeave
	URL    string        `json:",omitzero"` // of the server, or of a proxy before it
	Token  string        `json:",omitzero"` // for the server
	Worker int           `json:",omitzero"` // its number, from 0
	Seed   uint64        `json:",omitzero"` // of its times
	Time   time.Duration `json:",omitzero"` // for how long it alternates
}

// The operations.
const (
	opJoin  = "join"           // connect and report the first state
	opRun   = "alternate"      // and end busy
	opTrace = "trace"          // return the record
	opLeave = "leave"          // disconnect
	opSpent = "processor time" // of the process so far
)

// answer is what a worker answers.
type answer struct {
	Error   string        `json:",omitzero"`
	Changes []Change      `json:",omitzero"`
	Told    []Telling     `json:",omitzero"`
	CPU     time.Duration `json:",omitzero"` // 0 where the system does not say it
}

// Worker is the process of one worker: it answers requests until its input ends.
func Worker(ctx context.Context, in io.Reader, out io.Writer) error {
	return WorkerWith(ctx, in, out, nil)
}

// WorkerWith is [Worker] for a comparison that has more controllers.
func WorkerWith(ctx context.Context, in io.Reader, out io.Writer, more []Controller) error {
	w := worker{more: more}
	err := bench.Serve(ctx, in, out, func(ctx context.Context, q request) (a answer) {
		a, err := w.do(ctx, &q)
		if err != nil {
			return answer{Error: fmt.Sprintf("worker %d: %s: %v", q.Worker, q.Op, err)}
		}
		return a
	})
	return errors.Join(err, w.leave())
}

// worker reports one state, and records.
type worker struct {
	more   []Controller
	report func(n int64) error // the state
	leaves []func() error      // in reverse order
	n      atomic.Int64        // the number of the state
	change []Change

	mu     sync.Mutex
	told   []Telling
	failed error // asynchronously
}

func (w *worker) do(ctx context.Context, q *request) (answer, error) {
	switch q.Op {
	case opJoin:
		return answer{}, w.join(ctx, q)
	case opRun:
		return answer{}, w.alternate(ctx, q)
	case opTrace:
		w.mu.Lock()
		defer w.mu.Unlock()
		return answer{Changes: w.change, Told: w.told}, w.failed
	case opLeave:
		return answer{}, w.leave()
	case opSpent:
		return answer{CPU: bench.Used()}, nil
	}
	return answer{}, errors.New("the operation is not known")
}

// leave undoes join. It does nothing for a worker that has not joined.
func (w *worker) leave() error {
	var errs []error
	for _, leave := range slices.Backward(w.leaves) {
		errs = append(errs, leave())
	}
	w.leaves = nil
	return errors.Join(errs...)
}

// join connects the worker, and reports state 0.
func (w *worker) join(ctx context.Context, q *request) (err error) {
	w.change, w.told, w.failed = nil, nil, nil
	w.n.Store(0)
	w.report = func(int64) error { return nil }
	more := slices.IndexFunc(w.more, func(c Controller) bool { return c.Name == q.Report })
	switch {
	case q.Report == reportPegasus:
		err = w.joinGroup(ctx, q)
	case more >= 0:
		err = w.more[more].Join(ctx, &Connection{URL: q.URL, Token: q.Token, Worker: strconv.Itoa(q.Worker), w: w})
	default:
		err = w.connect(q)
	}
	if err == nil {
		err = w.changeTo(0)
	}
	if err != nil {
		return errors.Join(err, w.leave())
	}
	return nil
}

// Connection is what a [Controller] connects in a worker's process. A worker that leaves needs no call of it any more.
type Connection struct {
	// URL of the server, or of a proxy before it.
	URL string
	// Token for the server.
	Token string
	// Worker is the number of the worker, as [View.Update] takes it.
	Worker string

	w *worker
}

// OnReport sets how a state is reported. The function must not wait for the server. [View.Update] takes the text.
func (c *Connection) OnReport(report func(state string) error) {
	c.w.report = func(n int64) error { return report(string(encodeState(n))) }
}

// OnLeave adds a function to call when the worker leaves, and when Join fails. The last one is called first.
func (c *Connection) OnLeave(leave func() error) { c.w.leaves = append(c.w.leaves, leave) }

// Receive records the number of a firing. Any goroutine may call it.
func (c *Connection) Receive(number string) { c.w.receiveText(number) }

// Fail fails the run, at its end. Any goroutine may call it.
func (c *Connection) Fail(err error) { c.w.fail(err) }

// state is the local state of a member.
type state struct {
	Idle bool
	N    int64
}

func (w *worker) joinGroup(ctx context.Context, q *request) error {
	m, err := agent.Join(ctx, q.URL, agent.Config{Tenant: group, Group: group, Name: strconv.Itoa(q.Worker)}, agent.WithNATS(nats.Token(q.Token)))
	if err != nil {
		return err
	}
	w.leaves = append(w.leaves, m.Close)
	w.report = func(n int64) error { return m.Set(state{Idle: n%2 == 1, N: n}) }
	inRegion, leaveRegion := context.WithCancel(context.WithoutCancel(ctx)) // Until leave.
	entered, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- m.Region(inRegion, region, func(ctx context.Context, _ *agent.Region) error {
			close(entered)
			<-ctx.Done()
			return nil
		}, agent.OnActivateNow("idle", func(_ context.Context, s agent.Signal) error {
			w.receive(numberOf(s.Decision), s.Over)
			return nil
		}))
	}()
	w.leaves = append(w.leaves, func() error {
		leaveRegion()
		return <-ended
	})
	select {
	case <-entered:
		return nil
	case err := <-ended:
		ended <- nil // For leave.
		return errors.Join(errors.New("the region was not entered"), err)
	}
}

// numberOf is the number of a firing of a synchronizer, which is in one term during a run.
func numberOf(d control.Decision) uint64 { return d.Epoch<<40 | d.Number }

func (w *worker) connect(q *request) error {
	nc, err := nats.Connect(q.URL, nats.Token(q.Token))
	if err != nil {
		return fmt.Errorf("connection to %s: %w", q.URL, err)
	}
	w.leaves = append(w.leaves, func() error {
		nc.Close()
		return nil
	})
	_, err = nc.Subscribe(subjectTold, func(m *nats.Msg) { w.receiveText(string(m.Data)) })
	if err != nil {
		return fmt.Errorf("subscription to %s: %w", subjectTold, err)
	}
	number := strconv.Itoa(q.Worker)
	switch q.Report {
	case reportPublish:
		w.report = func(n int64) error { return nc.Publish(subjectState+number, encodeState(n)) }
	case reportAsked:
		_, err = nc.Subscribe(subjectAsk, func(m *nats.Msg) {
			w.fail(m.Respond([]byte(number + " " + strconv.FormatInt(w.n.Load(), 10))))
		})
	case reportKV:
		err = w.useBucket(nc, subjectKV+number)
	default:
		err = fmt.Errorf("way to report %q: it is not known", q.Report)
	}
	if err != nil {
		return err
	}
	return nc.FlushTimeout(patience)
}

// useBucket reports by puts that are acknowledged later, so that the worker does not wait for the server.
func (w *worker) useBucket(nc *nats.Conn, key string) error {
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncErrHandler(func(_ jetstream.JetStream, _ *nats.Msg, err error) { w.fail(err) }))
	if err != nil {
		return fmt.Errorf("JetStream: %w", err)
	}
	w.report = func(n int64) error {
		_, err := js.PublishAsync(key, encodeState(n))
		return err
	}
	return nil
}

func encodeState(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

func (w *worker) receiveText(number string) {
	if n, err := strconv.ParseUint(number, 10, 64); err == nil {
		w.receive(n, false)
	}
}

func (w *worker) receive(number uint64, over bool) {
	now := source.Monotonic()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, Telling{number, now, over})
}

// fail records the first error that a call reports later.
func (w *worker) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed == nil {
		w.failed = err
	}
}

// changeTo changes the state and reports it.
func (w *worker) changeTo(n int64) error {
	before := source.Monotonic()
	w.n.Store(n)
	err := w.report(n)
	w.change = append(w.change, Change{before, source.Monotonic()})
	return err
}

// alternate changes the state for as long as the request says, and ends busy.
func (w *worker) alternate(ctx context.Context, q *request) error {
	rng := rand.New(rand.NewPCG(q.Seed, uint64(q.Worker))) //nolint:gosec // Times of a benchmark.
	end := source.Monotonic().Add(q.Time)
	next := source.Monotonic()
	for n := int64(1); ; n++ {
		mean := meanBusy
		if n%2 == 0 {
			mean = meanIdle
		}
		next = max(next, source.Monotonic()).Add(time.Duration(rng.ExpFloat64() * float64(mean)))
		last := next >= end
		if !waitUntil(ctx, min(next, end)) {
			return context.Cause(ctx)
		}
		if last && n%2 == 1 { // It is busy.
			return nil
		}
		if err := w.changeTo(n); err != nil || last {
			return err
		}
	}
}
