package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/agentcore"
)

// Work is the code of a region. Its context ends when the region is cancelled, when the context
// given to Region ends, or when the member is closed.
type Work func(ctx context.Context, r *Region) error

// Handler reacts to a signal.
type Handler func(ctx context.Context, s Signal) error

// RegionOption declares what a region reacts to.
type RegionOption func(*Region) error

// OnActivate declares the handler of an activation. It runs in [Region.Check] or [Region.Wait],
// on the goroutine of the work and with the region's context. The work continues after it.
// Check or Wait returns its error.
func OnActivate(name string, handle Handler) RegionOption {
	return onActivate(name, handle, control.AtCheck)
}

// OnActivateNow declares the handler of an activation that runs at once, while the work
// of the region runs. The handlers of a region run on a goroutine of their own, one signal
// after the other. The next Check or Wait returns the handler's error. If there is none,
// Region waits for the handler and returns the error. If the handler panics, the region is
// cancelled and Region panics.
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
		return fmt.Errorf("agent: signal %q has two handlers of the same kind: keep one", name)
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

	loss *loss // nil: it continues without control

	replaced error // what the next check returns, once; nil: nothing. Guarded by the lock
}

// Name is the region's name.
func (r *Region) Name() string { return r.name }

// runRegion runs work inside a new entry of a region.
func (p *participant) runRegion(ctx context.Context, name string, work Work, opts []RegionOption) error {
	r, err := p.enter(ctx, name, work, opts)
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
	late := r.beside.takeResult()
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

func (p *participant) enter(ctx context.Context, name string, work Work, opts []RegionOption) (*Region, error) {
	if err := checkName("region", name); err != nil {
		return nil, err
	}
	switch {
	case ctx == nil:
		return nil, fmt.Errorf("agent: region %q: %w", name, errNilContext)
	case work == nil:
		return nil, fmt.Errorf("agent: region %q: the work is nil: pass the function to run inside", name)
	case slices.ContainsFunc(opts, func(o RegionOption) bool { return o == nil }):
		return nil, fmt.Errorf("agent: region %q: %w", name, errNilOption)
	}
	r := &Region{p: p, name: name, activate: map[string]Handler{}, cancel: map[string]Handler{}, wake: make(chan struct{}, 1)}
	for _, o := range opts {
		if err := o(r); err != nil {
			return nil, fmt.Errorf("agent: region %q: %w", name, err)
		}
	}
	if err := p.process().checkRegion(r); err != nil {
		return nil, err
	}
	if r.loss != nil && r.loss.Hold {
		if err := r.awaitAdmission(ctx); err != nil {
			r.unwatched()
			return nil, err
		}
	}
	if err := p.open(ctx, r); err != nil {
		r.unwatched()
		return nil, err
	}
	if r.loss != nil && !r.loss.Hold {
		p.process().multiplexer.contact.enterRule(r.loss)
	}
	return r, nil
}

// open opens an entry for a region.
func (p *participant) open(ctx context.Context, r *Region) error {
	defer p.above.runDue()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	out := p.stepInput(&agentcore.Input{Kind: agentcore.InEnter, Region: r.name, Handlers: r.handlers})
	if out.Err != nil {
		return fmt.Errorf("agent: %w", out.Err)
	}
	r.entry = out.Entry
	inner, end := context.WithCancelCause(ctx)
	r.ctx, r.end = inner, end
	r.unwatch = context.AfterFunc(inner, func() { r.pending.Store(true) })
	p.regions[r.name] = r
	r.beside = startBeside(r)
	return nil
}

// unwatched ends the rule of the region, if it has one.
func (r *Region) unwatched() {
	if r.loss != nil {
		r.p.process().multiplexer.contact.exitRule(r.loss)
	}
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
	canceled := p.stepInput(&agentcore.Input{Kind: agentcore.InExit, Entry: r.entry}).Signal
	if p.regions[r.name] == r {
		delete(p.regions, r.name)
	}
	p.mu.Unlock()
	p.above.runDue()
	r.unwatched()
	r.unwatch()
	r.beside.stopHandlers()
	r.end(nil)
	return canceled
}

// afterCancel runs the cancel handler with a context that is still alive.
func (r *Region) afterCancel(ctx context.Context, s *control.Signal) error {
	handle, declared := r.cancel[s.Name]
	if !declared {
		handle = func(context.Context, Signal) error { return nil }
	}
	err := r.p.runHandler(ctx, s, handle)
	r.p.finish(s, control.Applied, "")
	if !declared {
		return &Canceled{signalOf(s)}
	}
	return err
}

// noteArrived takes note of a signal that the region accepted, and reports whether Check
// and Wait are to look. The lock is held.
func (r *Region) noteArrived(s *control.Signal) bool {
	if s.Kind == control.Cancel {
		r.end(&Canceled{signalOf(s)})
	}
	if s.Kind == control.Activate && slices.Contains(r.handlers, control.Handler{Name: s.Name, At: control.AtOnce}) {
		notifyChannel(r.beside.wake)
		return false
	}
	return true
}

// attendSignals makes Check and Wait look.
func (r *Region) attendSignals() {
	r.pending.Store(true)
	notifyChannel(r.wake)
}

func notifyChannel(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Check runs the handlers of the activations that have arrived, on this goroutine, and returns
// nil or the first error of a handler. After a cancellation it returns the cause, [*Canceled].
// After the end of the context that Region was given, it returns the cause of that context;
// after Close, [ErrClosed]. When another process has joined under the member's name, it returns
// [ErrReplaced], once in each region that is open then. Without control it may wait, see
// [OnControlLoss]. With nothing to do it costs one atomic load, so it may stand in an inner
// loop.
func (r *Region) Check() error {
	if !r.pending.Load() {
		return nil
	}
	return r.check()
}

func (r *Region) check() error {
	for {
		_, err := r.run()
		free := r.heldUntil()
		if err != nil || free == nil {
			return err
		}
		select {
		case <-free:
		case <-r.wake:
		case <-r.ctx.Done():
		}
	}
}

// Wait blocks until an activation has arrived and its handler has run, and
// returns as [Region.Check] does. It returns the cause of ctx if that ends first.
func (r *Region) Wait(ctx context.Context) error {
	whole := false
	for look := r.pending.Load(); ; look = true {
		var free <-chan struct{}
		if look {
			ran, err := r.run()
			whole = whole || ran
			if free = r.heldUntil(); err != nil || whole && free == nil {
				return err
			}
		}
		select {
		case <-free:
		case <-r.wake:
		case <-r.ctx.Done():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// run runs what waits for the next check.
func (r *Region) run() (ran bool, err error) {
	var s *control.Signal
	for {
		if s, err = r.take(s, err, &ran); s == nil {
			return ran, err
		}
		err = r.p.runHandler(r.ctx, s, r.activate[s.Name])
	}
}

// take finishes the activation whose handler has returned err, if there is one, and
// returns the next to run, or the error that is to be returned instead: so there is one
// hold of the lock between two handlers. It sets ran if there is a next one, or a handler
// has run beside the work.
func (r *Region) take(done *control.Signal, err error, ran *bool) (*control.Signal, error) {
	p := r.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if done != nil {
		p.finishApplied(done)
		if err != nil {
			return nil, err
		}
	}
	r.pending.Store(false) // First: the context may end at any time.
	besideRan, err := r.beside.takeNews()
	*ran = *ran || besideRan
	if r.ctx.Err() != nil {
		r.pending.Store(true)
		return nil, context.Cause(r.ctx)
	}
	if err != nil {
		r.pending.Store(true)
		return nil, err
	}
	if err, r.replaced = r.replaced, nil; err != nil {
		r.pending.Store(true)
		return nil, err
	}
	s := p.stepInput(&agentcore.Input{Kind: agentcore.InNext, Entry: r.entry, Delivery: control.AtCheck}).Signal
	if s != nil {
		r.pending.Store(true) // After one there may be another.
	}
	*ran = *ran || s != nil
	return s, nil
}

// runHandler runs a handler. The caller finishes the signal, but for a handler that does not
// return.
func (p *participant) runHandler(ctx context.Context, s *control.Signal, handle Handler) error {
	whole := false
	defer func() {
		if !whole {
			p.finish(s, control.Refused, "its handler panicked")
		}
	}()
	err := p.spans.Apply(ctx, s, func(ctx context.Context) error { return handle(ctx, signalOf(s)) })
	whole = true
	return err
}

// finishApplied finishes a signal whose handler has returned. The lock is held.
func (p *participant) finishApplied(s *control.Signal) {
	p.stepInput(&agentcore.Input{Kind: agentcore.InFinish, Signal: s, Fate: control.Applied})
}

func (p *participant) finish(s *control.Signal, fate control.Fate, detail string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stepInput(&agentcore.Input{Kind: agentcore.InFinish, Signal: s, Fate: fate, Detail: detail})
}
