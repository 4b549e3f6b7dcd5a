package agent

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/agentcore"
)

// beside runs the handlers of a region that do not wait for its work, one after
// the other on a goroutine of their own. A nil *beside runs none.
type beside struct {
	region   *Region
	wake     chan struct{} // capacity 1; closed when the region is left
	done     chan struct{}
	ran      bool  // since the last check; guarded by the lock of the process
	err      error // likewise
	panicked error // read after done
}

// startBeside returns nil for a region without such handlers.
func startBeside(r *Region) *beside {
	if !slices.ContainsFunc(r.handlers, func(h control.Handler) bool { return h.At == control.AtOnce }) {
		return nil
	}
	b := &beside{region: r, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go b.run()
	return b
}

func (b *beside) run() {
	defer close(b.done)
	for range b.wake {
		var err error
		for s := b.next(nil, nil); s != nil; s = b.next(s, err) {
			var ok bool
			if ok, err = b.handle(s); !ok {
				return
			}
		}
	}
}

// next finishes the signal whose handler has returned, if there is one, and takes out the
// next.
func (b *beside) next(done *control.Signal, err error) *control.Signal {
	r := b.region
	p := r.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if done != nil {
		p.finishApplied(done)
		b.ran, b.err = true, errors.Join(b.err, err)
		r.attendSignals()
	}
	return p.stepInput(&agentcore.Input{Kind: agentcore.InNext, Entry: r.entry, Delivery: control.AtOnce}).Signal
}

// handle runs one handler. A panic is kept for the goroutine of Region, which
// the end of its context brings back.
func (b *beside) handle(s *control.Signal) (ok bool, err error) {
	r := b.region
	defer func() {
		if v := recover(); v != nil {
			b.panicked = fmt.Errorf("agent: region %q: the handler of %q panicked: %v\n\n%s", r.name, s.Name, v, debug.Stack())
			r.end(b.panicked)
		}
	}()
	err = r.p.runHandler(r.ctx, s, r.activate[s.Name])
	return true, err
}

// takeNews tells what happened since the last call. The lock is held.
func (b *beside) takeNews() (ran bool, err error) {
	if b == nil {
		return false, nil
	}
	ran, err = b.ran, b.err
	b.ran, b.err = false, nil
	return ran, err
}

// stopHandlers ends the goroutine after the handler it is in. No signal arrives any more.
func (b *beside) stopHandlers() {
	if b != nil {
		close(b.wake)
		<-b.done
	}
}

// takeResult is the error no check has returned. It passes a panic on.
func (b *beside) takeResult() error {
	if b == nil {
		return nil
	}
	if b.panicked != nil {
		panic(b.panicked)
	}
	return b.err
}
