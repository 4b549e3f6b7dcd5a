package peers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/gopegasus/pegasus/clocksync/source"
	"github.com/gopegasus/pegasus/internal/bench"
)

const (
	workers     = 10
	slowWorkers = 3                      // of these, with a delay
	longest     = 20 * time.Millisecond  // the delay of each of their messages, at most
	settle      = 300 * time.Millisecond // before the changes and after them
	patience    = 10 * time.Second       // for what takes milliseconds
)

// Options say how long to compare.
type Options struct {
	bench.Program

	Time time.Duration // of each controller; half of it without a delay
	Seed uint64        // of the times of the workers and of the delays
	More []Controller  // to compare as well, at the end
}

// controllers are all that are compared, in order.
func (o *Options) controllers() []controller {
	all := controllers()
	for i := range o.More {
		all = append(all, o.More[i].inside())
	}
	return all
}

// Limit is the time after which a comparison is given up.
func (o *Options) Limit() time.Duration {
	return time.Duration(len(o.controllers()))*o.Time + 2*time.Minute
}

// Result is a comparison.
type Result struct {
	bench.Program

	Time    string `json:"time"` // of the options, such as 20s
	Seed    uint64 `json:"seed"` // of the options
	Workers int    `json:"workers"`
	Legs    []Leg  `json:"legs"` // first all without a delay
}

// Leg is one controller under one condition.
type Leg struct {
	Controller string `json:"controller"`
	Delayed    bool   `json:"delayed"` // up to 20 ms for each message of 3 workers
	Judgement

	// OverBare is P50 over the P50 of bare NATS under the same condition; 0 if P50 of bare NATS is unknown.
	OverBare float64 `json:"p50_over_nats"`
	// CPU is the processor time of all processes for each change, in microseconds, the server's included; 0 where the
	// system does not say it.
	CPU float64 `json:"cpu_us_per_change"`
	// Messages is how many messages the server received for each change.
	Messages float64 `json:"messages_per_change"`
}

// bareNATS is the controller that the others are compared with.
const bareNATS = "nats"

// Run compares all controllers.
func Run(ctx context.Context, o Options) (*Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.Limit(), fmt.Errorf("comparison: it took longer than %v: end other programs on this machine", o.Limit()))
	defer cancel()
	r, err := compare(ctx, &o, o.controllers())
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return r, err
}

func compare(ctx context.Context, o *Options, all []controller) (_ *Result, err error) {
	var f fleet
	defer func() { err = errors.Join(err, f.end()) }()
	for range workers {
		p, err := bench.Start(ctx, o.Command)
		if err != nil {
			return nil, err
		}
		f = append(f, p)
	}
	r := &Result{Program: o.Program, Time: o.Time.String(), Seed: o.Seed, Workers: workers}
	for _, delayed := range []bool{false, true} {
		for _, c := range all {
			leg, err := measure(ctx, o, c, f, delayed)
			if err != nil {
				return nil, fmt.Errorf("controller %s: %w", c.name, err)
			}
			r.Legs = append(r.Legs, *leg)
		}
	}
	r.compareLatency()
	return r, nil
}

// compareLatency sets OverBare.
func (r *Result) compareLatency() {
	for i := range r.Legs {
		l := &r.Legs[i]
		bare := slices.IndexFunc(r.Legs, func(b Leg) bool { return b.Controller == bareNATS && b.Delayed == l.Delayed })
		if bare >= 0 && r.Legs[bare].P50 > 0 {
			l.OverBare = l.P50 / r.Legs[bare].P50
		}
	}
}

// run is the run of one controller under one condition.
type run struct {
	workers int
	server  *Server
	record  record
	ends    []func() error              // of the controller, in reverse order
	ready   func(context.Context) error // waits until the controller has all workers; may be nil
	joined  atomic.Bool                 // all workers
}

func (r *run) end() error {
	var errs []error
	for _, end := range slices.Backward(r.ends) {
		errs = append(errs, end())
	}
	r.ends = nil
	return errors.Join(errs...)
}

// measure runs one controller, on a server of its own.
func measure(ctx context.Context, o *Options, c controller, f fleet, delayed bool) (_ *Leg, err error) {
	serve := c.serve
	if serve == nil {
		serve = func(context.Context) (*Server, error) { return startServer(c.report == reportKV) }
	}
	s, err := serve(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.End()) }()
	joins := make([]request, len(f))
	for i := range joins {
		joins[i] = request{Op: opJoin, Report: c.report, URL: s.URL, Token: s.Token}
	}
	if delayed {
		scheme, address, _ := strings.Cut(s.URL, "://")
		for i := range slowWorkers {
			p, err := startProxy(ctx, address, longest, o.Seed+uint64(i))
			if err != nil {
				return nil, err
			}
			defer p.close()
			joins[i].URL = scheme + "://" + p.address()
		}
	}
	r := &run{workers: len(f), server: s}
	defer func() { err = errors.Join(err, r.end()) }()
	if err := c.start(ctx, r); err != nil {
		return nil, err
	}
	defer func() {
		_, leaveErr := f.call(ctx, each(request{Op: opLeave}, len(f)))
		err = errors.Join(err, leaveErr)
	}()
	if _, err := f.call(ctx, joins); err != nil {
		return nil, err
	}
	if r.ready != nil {
		if err := r.ready(ctx); err != nil {
			return nil, err
		}
	}
	r.joined.Store(true)
	return r.alternate(ctx, o, c, f, s, delayed)
}

// alternate lets the workers change their states, and judges the record.
func (r *run) alternate(ctx context.Context, o *Options, c controller, f fleet, s *Server, delayed bool) (*Leg, error) {
	if err := pause(ctx, settle); err != nil {
		return nil, err
	}
	cpu, messages, err := spent(ctx, f, s)
	if err != nil {
		return nil, err
	}
	if _, err := f.call(ctx, each(request{Op: opRun, Time: o.Time / 2, Seed: o.Seed}, len(f))); err != nil {
		return nil, err
	}
	if err := pause(ctx, settle); err != nil {
		return nil, err
	}
	cpuAfter, messagesAfter, err := spent(ctx, f, s)
	if err != nil {
		return nil, err
	}
	answers, err := f.call(ctx, each(request{Op: opTrace}, len(f)))
	if err != nil {
		return nil, err
	}
	r.record.mu.Lock()
	defer r.record.mu.Unlock()
	if r.record.failed != nil {
		return nil, r.record.failed
	}
	t := Trace{Firings: r.record.firings}
	for _, a := range answers {
		t.Changes, t.Told = append(t.Changes, a.Changes), append(t.Told, a.Told)
	}
	leg := &Leg{Controller: c.name, Delayed: delayed, Judgement: Judge(&t)}
	changes := float64(max(leg.Changes-len(f), 1)) // The first states were reported before.
	leg.CPU = float64(cpuAfter-cpu) / float64(time.Microsecond) / changes
	leg.Messages = float64(messagesAfter-messages) / changes
	return leg, nil
}

func pause(ctx context.Context, d time.Duration) error {
	if !waitUntil(ctx, source.Monotonic().Add(d)) {
		return context.Cause(ctx)
	}
	return nil
}

// spent is the processor time of all processes and the messages to the server so far.
func spent(ctx context.Context, f fleet, s *Server) (cpu time.Duration, messages int64, err error) {
	answers, err := f.call(ctx, each(request{Op: opSpent}, len(f)))
	if err != nil {
		return 0, 0, err
	}
	cpu, messages, err = s.Spent()
	if err != nil {
		return 0, 0, fmt.Errorf("statistics of the server: %w", err)
	}
	cpu += bench.Used()
	for _, a := range answers {
		cpu += a.CPU
	}
	return cpu, messages, nil
}

// fleet is the processes of the workers.
type fleet []*bench.Process

// each is the same request for each worker.
func each(q request, n int) []request { return slices.Repeat([]request{q}, n) }

// call sends each worker its request at the same time, and waits for all answers.
func (f fleet) call(ctx context.Context, requests []request) ([]answer, error) {
	answers, errs := make([]answer, len(f)), make([]error, len(f))
	var asking sync.WaitGroup
	for i, p := range f {
		q := requests[i]
		q.Worker = i
		asking.Go(func() {
			if errs[i] = p.Ask(ctx, q, &answers[i]); errs[i] == nil && answers[i].Error != "" {
				errs[i] = errors.New(answers[i].Error)
			}
		})
	}
	asking.Wait()
	return answers, errors.Join(errs...)
}

// end ends all processes at once.
func (f fleet) end() error {
	errs := make([]error, len(f))
	var ending sync.WaitGroup
	for i, p := range f {
		ending.Go(func() { errs[i] = p.End() })
	}
	ending.Wait()
	return errors.Join(errs...)
}

// Server is a server for one run, on the loopback interface.
type Server struct {
	// URL of it: a scheme, an address and a port, such as nats://127.0.0.1:4222. The proxies have the same scheme.
	URL string
	// Token is what a client shows to it; empty: nothing.
	Token string
	// Spent returns the processor time that it has used outside of this process, and how many messages it has received.
	Spent func() (cpu time.Duration, messages int64, err error)
	// End ends the server, and deletes its files.
	End func() error
}

// startServer starts a NATS server on a free port. It admits clients with a random token only. It is not package
// embedded's, because its statistics are needed.
func startServer(jetStream bool) (_ *Server, err error) {
	token, dir := rand.Text(), ""
	if jetStream {
		if dir, err = os.MkdirTemp("", "pegasus-peers"); err != nil {
			return nil, fmt.Errorf("directory for JetStream: %w", err)
		}
	}
	ns, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, Authorization: token, JetStream: jetStream, StoreDir: dir,
		NoSigs: true, NoLog: true, NoSystemAccount: true,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("NATS server: %w", err), os.RemoveAll(dir))
	}
	end := func() error {
		ns.Shutdown()
		ns.WaitForShutdown()
		return os.RemoveAll(dir) // Nothing, without a directory.
	}
	ns.Start()
	if !ns.ReadyForConnections(patience) || jetStream && !ns.JetStreamEnabled() {
		return nil, errors.Join(fmt.Errorf("NATS server: it was not ready within %v: end other programs on this machine, or free space in %s", patience, os.TempDir()), end())
	}
	return &Server{URL: ns.ClientURL(), Token: token, End: end, Spent: func() (time.Duration, int64, error) {
		v, err := ns.Varz(nil)
		if err != nil {
			return 0, 0, err
		}
		return 0, v.InMsgs, nil
	}}, nil
}
