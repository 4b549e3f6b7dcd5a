package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/configs"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/examples/tsp/tsplib"
	"github.com/gopegasus/pegasus/synchronizer"
)

// Why a run ends without a verdict.
var (
	errInterrupted = errors.New("interrupted")
	errTime        = errors.New("the time limit of -time was reached")
)

// liveEvery is how often the live line is written.
const liveEvery = 100 * time.Millisecond

// lead runs the synchronizer, the coordinator and the worker processes to a
// verdict. The result is nil if the run failed before there was a tour.
func lead(ctx context.Context, o *options, sc *screen, start time.Time) (_ *result, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l := &leader{options: o, screen: sc, start: start, cancel: cancel}
	defer func() { err = errors.Join(err, l.close()) }()
	if err := l.open(ctx); err != nil {
		return l.finish(because(ctx, err))
	}
	return l.finish(l.search(ctx))
}

// because prefers the reason for which a context ended to what it led to.
func because(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// leader is what a run consists of in the parent process.
type leader struct {
	*options
	screen *screen
	start  time.Time
	cancel context.CancelCauseFunc

	url     string
	coord   *coordinator
	crew    *crew
	closers []func() error // run backwards
}

func (l *leader) later(f func() error) { l.closers = append(l.closers, f) }

func (l *leader) close() error {
	var err error
	for _, f := range slices.Backward(l.closers) {
		err = errors.Join(err, f())
	}
	return err
}

// open starts everything up to the worker processes.
func (l *leader) open(ctx context.Context) error {
	in, err := tsplib.Load(l.instance)
	if err != nil {
		return err
	}
	cfg, err := l.configuration()
	if err != nil {
		return err
	}
	if err := l.server(); err != nil { //nolint:contextcheck // close ends the server.
		return err
	}
	info := runInfo{ID: "tsp-" + newID(), Instance: l.instance, N: in.N, Kind: l.subtasks, Seed: l.seed, Threads: l.threads, Strategy: l.strategy, Separate: l.separate}
	l.coord = newCoordinator(info, in, l.gap, l.screen)
	if l.journal != "" {
		j, file, err := openJournal(l.journal, info.ID, l.start)
		if err != nil {
			return err
		}
		l.later(file.Close)
		l.coord.journal = j
	}
	if l.coord.given, err = readTour(l.tour, in); err != nil {
		return err
	}
	if err := l.readFile(); err != nil {
		return err
	}
	if err := l.connect(ctx, cfg); err != nil {
		return err
	}
	return l.hire()
}

func (l *leader) configuration() (*synchronizer.Config, error) {
	members := []synchronizer.Override{synchronizer.Members("gsync", l.processes+1), synchronizer.Members("tsync", l.threads)}
	if l.config != "" {
		return synchronizer.LoadConfig(l.config, members...)
	}
	src, err := configs.Files.ReadFile("tsp.yaml")
	if err != nil {
		return nil, err
	}
	return synchronizer.ParseConfig("tsp.yaml", src, members...)
}

// server is that of -nats, or an embedded one.
func (l *leader) server() error {
	l.url = l.nats
	if l.url != "" {
		return nil
	}
	srv, err := embedded.Start(embedded.Options{})
	if err != nil {
		return err
	}
	l.later(func() error { srv.Close(); return nil })
	l.url = srv.URL()
	return nil
}

// readFile offers an instance's file to workers elsewhere.
func (l *leader) readFile() (err error) {
	c := l.coord
	if isBuiltin(c.info.Instance) {
		return nil
	}
	if c.file, err = os.ReadFile(c.info.Instance); err != nil {
		return fmt.Errorf("instance: %w", err)
	}
	c.info.Size = len(c.file)
	return nil
}

// isBuiltin reports whether every worker can load an instance by its name.
func isBuiltin(spec string) bool {
	_, embedded := tsplib.Optimum(spec)
	return embedded || strings.HasPrefix(spec, "random:")
}

// connect opens the data connection and starts the synchronizer.
func (l *leader) connect(ctx context.Context, cfg *synchronizer.Config) error {
	nc, err := dialData(ctx, l.url, "tsp coordinator")
	if err != nil {
		return err
	}
	l.later(func() error { nc.Close(); return nil })
	if err := l.coord.serve(nc); err != nil {
		return err
	}
	opt := synchronizer.Options{
		Name: "gsync", Tenant: l.coord.info.ID, Logger: l.logger(), Observe: l.coord.observe,
		SeparateClock: l.separate,
	}
	if l.journal != "" {
		f, err := synchronizer.CreateJournal(l.journal, opt.Name, l.start)
		if err != nil {
			return err
		}
		l.later(f.Close)
		opt.Journal = f
	}
	s, err := synchronizer.Start(ctx, l.url, cfg, opt)
	if err != nil {
		return err
	}
	l.later(s.Close)
	go func() {
		<-s.Done()
		if err := s.Err(); err != nil {
			l.cancel(err)
		}
	}()
	return nil
}

// logger shows warnings of the product with -v.
func (l *leader) logger() *slog.Logger {
	if !l.verbose {
		return nil
	}
	return slog.New(slog.NewTextHandler(&prefixed{screen: l.screen, name: "gsync"}, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// hire starts the workers.
func (l *leader) hire() error {
	run := l.coord.info.ID
	args := []string{"-worker", "-nats", l.url, "-run", run}
	if l.verbose {
		args = append(args, "-v")
	}
	l.screen.line("%s: %s; %s x %s; run %s on %s",
		l.coord.info.title(), plural(l.coord.in.N, "city"), plural(l.processes, "process"), plural(l.threads, "thread"), run, l.url)
	l.crew = &crew{args: args, screen: l.screen, begun: l.coord.begun, deserted: l.deserted}
	return l.crew.start(l.processes)
}

// deserted ends the run when the last worker process has ended, unless workers
// from elsewhere go on or may still come.
func (l *leader) deserted(err error) {
	switch {
	case l.coord.outsiders() > 0:
	case l.nats != "" && l.coord.begun():
		l.screen.line("%v; waiting for workers: go run ./examples/tsp -worker -nats %s", err, redact(l.nats))
	default:
		l.cancel(err)
	}
}

// partsPerThread is how many subtasks a thread finds in the first cut. Few are
// enough: what turns out large is divided by migration.
const partsPerThread = 4

// search waits for the verdict.
func (l *leader) search(ctx context.Context) error {
	ctx, cancel := l.limited(ctx)
	defer cancel()
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		l.show(ctx)
	}()
	defer func() { cancel(); <-shown }()
	return because(ctx, l.coord.search(ctx, l.url, partsPerThread*max(1, l.processes)*l.threads))
}

// limited is a context that ends with the time of -time, if there is one.
func (l *leader) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.time == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithDeadlineCause(ctx, l.start.Add(l.time), errTime)
}

func (l *leader) show(ctx context.Context) {
	tick := time.NewTicker(liveEvery)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			l.screen.live(l.coord.status(now, l.start), now)
		case <-ctx.Done():
			l.screen.end()
			return
		}
	}
}

// finish sees the workers off and sums up.
func (l *leader) finish(err error) (*result, error) {
	end := time.Now()
	if l.crew == nil {
		return nil, err
	}
	l.coord.dismiss()
	wait := time.Duration(0)
	if err == nil {
		wait = leaveWait
	}
	l.crew.leave(wait)
	res := l.coord.result(l.start, end)
	res.Processes = max(res.Processes, l.processes)
	res.Interrupted = errors.Is(err, errInterrupted)
	if len(res.Tour) == 0 {
		return nil, err
	}
	return res, err
}

// print writes the result where it belongs: the object of -json to stdout, or
// the tour and the verdict line.
func (r *result) print(o *options, stdout io.Writer, sc *screen) error {
	if o.json {
		sc.line("%s", r)
		return r.printJSON(stdout)
	}
	sc.line("%s", r.tourLine())
	sc.line("%s", r)
	return nil
}
