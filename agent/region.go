package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/gopegasus/pegasus/control"
)

// Work is the code of a region. Its context ends when the region is cancelled,
// when the one that was handed to Region ends, or when the member is closed.
type Work func(ctx context.Context, r *Region) error

// Handler reacts to a signal.
type Handler func(ctx context.Context, s Signal) error

// RegionOption declares what a region reacts to.
type RegionOption func(*Region) error

// OnActivate declares the handler of an activation. It runs in [Region.Check] or
// [Region.Wait], on the goroutine of the work and with the region's context; the
// work goes on after it. Its error is returned there.
func OnActivate(name string, handle Handler) RegionOption {
	return onActivate(name, handle, control.AtCheck)
}

// OnActivateNow declares the handler of an activation that does not wait for the
// work: it runs at once, on a goroutine of the region beside it, one signal after
// the other. Its error is returned by the next Check or Wait, or else by Region,
// which waits for it; if it panics the region is cancelled and Region panics.
func OnActivateNow(name string, handle Handler) RegionOption {
	return onActivate(name, handle, control.AtOnce)
}

func onActivate(name string, handle Handler, at control.Delivery) RegionOption {
	return func(r *Region) error {
		r.handlers = append(r.handlers, control.Handler{Name: name, At: at})
		return declare(r.activate, name, handle)
	}
}

// OnCancel declares the handler of a cancellation. It runs on the goroutine that
// called Region, after the work has returned, with the context that Region was
// given. A cancellation needs none: then Region returns [*Canceled].
func OnCancel(name string, handle Handler) RegionOption {
	return func(r *Region) error { return declare(r.cancel, name, handle) }
}

func declare(handlers map[string]Handler, name string, handle Handler) error {
	if err := checkName("signal", name); err != nil {
		return err
	}
	if handle == nil {
		return fmt.Errorf("agent: signal %q has a nil handler", name)
	}
	if handlers[name] != nil {
		return fmt.Errorf("agent: signal %q has two handlers of one kind: keep one", name)
	}
	handlers[name] = handle
	return nil
}

// Region is one entry into a region.
type Region struct {
	p        *participant
	name     string
	entry    uint64
	handlers []control.Handler
	activate map[string]Handler
	cancel   map[string]Handler
	ctx      context.Context
	end      context.CancelCauseFunc
	unwatch  func() bool

	pending atomic.Bool   // Check has something to do
	wake    chan struct{} // capacity 1; something arrived for Wait

	left bool // used by the goroutine of Region only

	beside *beside // nil if no handler runs beside the work
}

// Name is the region's name.
func (r *Region) Name() string { return r.name }

// region runs work inside a new entry of a region.
func (p *participant) region(ctx context.Context, name string, work Work, opts []RegionOption) error {
	r, err := p.enter(ctx, name, opts)
	if err != nil {
		return err
	}
	var canceled *control.Signal
	whole := false
	defer func() {
		if whole {
			return
		}
		if s := cmp.Or(canceled, r.leave()); s != nil {
			p.finish(s, control.Refused, "the work panicked")
		}
	}()
	err = r.do(work)
	canceled = r.leave()
	late := r.beside.result()
	whole = true
	switch {
	case canceled != nil:
		return r.afterCancel(ctx, canceled)
	case late != nil:
		return errors.Join(err, late)
	}
	return err
}

func (r *Region) do(work Work) error { return work(r.ctx, r) }

func (p *participant) enter(ctx context.Context, name string, opts []RegionOption) (*Region, error) {
	if err := checkName("region", name); err != nil {
		return nil, err
	}
	r := &Region{p: p, name: name, activate: map[string]Handler{}, cancel: map[string]Handler{}, wake: make(chan struct{}, 1)}
	for _, o := range opts {
		if err := o(r); err != nil {
			return nil, fmt.Errorf("agent: region %q: %w", name, err)
		}
	}
	p.mu.Lock()
	defer p.unlock()
	if p.closed {
		return nil, ErrClosed
	}
	var err error
	if r.entry, err = p.core.Enter(p.now(), name, r.handlers); err != nil {
		return nil, fmt.Errorf("agent: %w", err)
	}
	inner, end := context.WithCancelCause(ctx)
	r.ctx, r.end = inner, end
	r.unwatch = context.AfterFunc(inner, func() { r.pending.Store(true) })
	p.regions[name] = r
	r.beside = startBeside(r)
	p.pace.due(p.core.Wake())
	return r, nil
}

// leave closes the entry and returns the cancellation it had accepted. A second
// call does nothing.
func (r *Region) leave() *control.Signal {
	if r.left {
		return nil
	}
	r.left = true
	p := r.p
	p.mu.Lock()
	canceled := p.core.LeaveRegion(p.now(), r.entry)
	if p.regions[r.name] == r {
		delete(p.regions, r.name)
	}
	p.pace.due(p.core.Wake())
	p.unlock()
	r.unwatch()
	r.beside.stop()
	r.end(nil)
	return canceled
}

// afterCancel runs the cancel handler with a context that is still alive.
func (r *Region) afterCancel(ctx context.Context, s *control.Signal) error {
	if handle := r.cancel[s.Name]; handle != nil {
		return r.p.handle(ctx, s, handle)
	}
	_ = r.p.handle(ctx, s, func(context.Context, Signal) error { return nil })
	return &Canceled{signalOf(s)}
}

// arrived takes note of a signal that the region accepted, and reports whether Check
// and Wait are to look. The lock is held.
func (r *Region) arrived(s *control.Signal) bool {
	if s.Kind == control.Cancel {
		r.end(&Canceled{signalOf(s)})
	}
	if s.Kind == control.Activate && slices.Contains(r.handlers, control.Handler{Name: s.Name, At: control.AtOnce}) {
		notify(r.beside.wake)
		return false
	}
	return true
}

// attend makes Check and Wait look.
func (r *Region) attend() {
	r.pending.Store(true)
	notify(r.wake)
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Check runs the handlers of the activations that have arrived, on this
// goroutine, and returns nil or the first error of one. After a cancellation it
// returns the cause, [*Canceled]; after the end of the context that Region was
// given, the cause of that; after Close, [ErrClosed]. With nothing to do it costs
// one atomic load, so it may stand in an inner loop.
func (r *Region) Check() error {
	if !r.pending.Load() {
		return nil
	}
	_, err := r.run()
	return err
}

// Wait blocks until an activation has arrived and its handler has run, and
// returns as [Region.Check] does. It returns the cause of ctx if that ends first.
func (r *Region) Wait(ctx context.Context) error {
	for {
		if ran, err := r.run(); ran || err != nil {
			return err
		}
		select {
		case <-r.wake:
		case <-r.ctx.Done():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// run runs what waits for the next check.
func (r *Region) run() (ran bool, err error) {
	for {
		s, err := r.take(&ran)
		if s == nil || err != nil {
			return ran, err
		}
		if err := r.p.handle(r.ctx, s, r.activate[s.Name]); err != nil {
			return ran, err
		}
	}
}

// take returns the next activation to run, or the error that is to be returned
// instead. It sets ran if there is one, or a handler has run beside the work.
func (r *Region) take(ran *bool) (*control.Signal, error) {
	p := r.p
	p.mu.Lock()
	defer p.unlock()
	besideRan, err := r.beside.news()
	*ran = *ran || besideRan
	if r.ctx.Err() != nil {
		return nil, context.Cause(r.ctx)
	}
	if err != nil {
		return nil, err
	}
	s := p.core.Next(p.now(), r.entry, control.AtCheck)
	r.pending.Store(s != nil) // After one there may be another.
	*ran = *ran || s != nil
	p.pace.due(p.core.Wake())
	return s, nil
}

// handle runs a handler and tells the fate of its signal.
func (p *participant) handle(ctx context.Context, s *control.Signal, handle Handler) error {
	fate, detail := control.Refused, "its handler panicked"
	defer func() { p.finish(s, fate, detail) }()
	err := p.spans.apply(ctx, s, handle)
	fate, detail = control.Applied, ""
	return err
}

func (p *participant) finish(s *control.Signal, fate control.Fate, detail string) {
	p.mu.Lock()
	defer p.unlock()
	p.core.Finish(p.now(), s, fate, detail)
	p.pace.due(p.core.Wake())
}
