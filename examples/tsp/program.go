package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/gopegasus/pegasus/control"
	flow "github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/examples/tsp/bnb"
	"github.com/gopegasus/pegasus/examples/tsp/tsplib"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

//go:embed program.yaml
var programConfig []byte

// leadProgram runs program.yaml on worker processes that are nodes, and prints the tour
// and the verdict.
func leadProgram(ctx context.Context, o *options, sc *screen, start time.Time) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l := &leader{options: o, screen: sc, start: start}
	defer func() { err = errors.Join(err, l.close()) }()
	ctx, stop := l.limited(ctx)
	defer stop()
	in, err := tsplib.Load(o.instance)
	if err != nil {
		return err
	}
	cfg, err := synchronizer.ParseProgram("program.yaml", programConfig)
	if err != nil {
		return err
	}
	if err := l.server(); err != nil { //nolint:contextcheck // close ends the server.
		return err
	}
	id := "tsp-" + newID()
	w := &programWatch{screen: sc, finished: make(chan struct{}), applied: map[string]int{}}
	s, err := synchronizer.Start(ctx, l.url, cfg, synchronizer.Options{Tenant: id, Observe: w.observe, Logger: l.logger()})
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // The program has ended, or failed for another reason.
	args := []string{"-worker", "-program", "-nats", l.url, "-run", id, "-instance", o.instance, "-seed", strconv.FormatUint(o.seed, 10), "-subtasks", o.subtasks}
	c := &crew{args: args, screen: sc, begun: w.begun, deserted: cancel}
	defer c.leave(0)
	if err := c.start(searchers); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.Done():
		return s.Err()
	case <-w.finished:
	}
	found, err := w.result(in)
	if err != nil {
		return err
	}
	r := result{Tour: make([]int, 0, in.N)}
	for _, city := range found.Tour {
		r.Tour = append(r.Tour, city+1)
	}
	sc.line("%s", r.tourLine())
	title := (&runInfo{Instance: o.instance}).title()
	sc.line("%s: length %d, proven optimal by decision %s, %.2f s; %s, %s, %s; signals: %d new best, %d share",
		title, found.Length, w.proven, time.Since(start).Seconds(), plural(searchers, "process"), plural(w.rounds, "round"), plural(int(found.Nodes), "node"),
		w.count("NewBest"), w.count("Share"))
	return nil
}

// programWatch keeps what the synchronizer tells of the program.
type programWatch struct {
	screen   *screen
	finished chan struct{}
	end      monitor.ProgramEvent // before finished is closed
	proven   string               // likewise: the decision
	rounds   int                  // likewise

	mu      sync.Mutex
	started bool
	applied map[string]int // signals by name; each process that applied one counts
}

// observe takes the events of the synchronizer, on its goroutine.
func (w *programWatch) observe(e monitor.Event) {
	switch e := e.(type) {
	case monitor.Fate:
		w.mu.Lock()
		defer w.mu.Unlock()
		if e.Fate == control.Applied {
			w.applied[e.Signal.Name]++
		}
	case monitor.ProgramEvent:
		w.happened(e)
	}
}

func (w *programWatch) happened(e monitor.ProgramEvent) {
	switch {
	case e.Kind == monitor.ProgramStart:
		w.mu.Lock()
		w.started = true
		w.mu.Unlock()
		w.screen.detail("%s %v starts on %s", e.Name, e.Replicas, e.Processor)
	case e.Kind == monitor.ProgramPass && e.Predicate == "gsync.proven":
		w.rounds++
		w.proven = e.Decision.String()
	case e.Kind == monitor.ProgramLost:
		w.screen.line("%s is lost with %s %v: it starts again elsewhere", e.Processor, e.Name, e.Replicas)
	case e.Kind == monitor.ProgramFinish:
		w.end = e
		close(w.finished)
	}
}

func (w *programWatch) begun() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.started
}

// count is how many processes have applied a signal, so far.
func (w *programWatch) count(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.applied[name]
}

// result is what the program results in, if that is a tour with nothing left to
// search.
func (w *programWatch) result(in *tsplib.Instance) (*round, error) {
	if w.end.Outcome != flow.Done {
		return nil, fmt.Errorf("the program did not end well: %s", w.end.Reason)
	}
	var r round
	if err := json.Unmarshal([]byte(w.end.Result), &r); err != nil {
		return nil, fmt.Errorf("the result of the program: %w", err)
	}
	if err := bnb.Verify(in, r.Tour, r.Length); err != nil {
		return nil, err
	}
	if len(r.Rest) > 0 || r.Pruned < r.Length {
		return nil, fmt.Errorf("the program has ended with %s left, and pruned by %d", plural(len(r.Rest), "subtask"), r.Pruned)
	}
	return &r, nil
}
