package bustest

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/gopegasus/pegasus/internal/bus"
)

// Plan says what becomes of what is published, replies included. The chances
// are between 0 and 1 and are drawn independently; the zero Plan does nothing.
type Plan struct {
	Drop      float64 // Chance that a message is lost, or the request of a Request.
	Duplicate float64 // Chance that it is sent twice.
	Swap      float64 // Chance that it is held until the next one, or Flush, was sent.
	// MinDelay and MaxDelay bound the time a message is held back; each has its
	// own. Nothing is delayed where MaxDelay is 0.
	MinDelay, MaxDelay time.Duration
	// Only, where set, chooses the subjects the plan applies to.
	Only func(subject string) bool
}

// Faults counts what was done.
type Faults struct{ Dropped, Duplicated, Swapped, Delayed int }

// FaultyBus is a Bus whose publishing is at fault.
type FaultyBus struct {
	bus.Bus

	mu      sync.Mutex
	plan    Plan
	rng     *rand.Rand
	held    []message
	faults  Faults
	closed  bool
	delayed sync.WaitGroup
	timers  map[*time.Timer]struct{}
}

type message struct {
	subject string
	data    []byte
}

// Faulty returns b with faults, of which Gather has none: the same seed of rng and the same sequence of
// calls give the same ones. A message at fault reports success, as the network
// does; an error of sending it later is lost.
func Faulty(b bus.Bus, rng *rand.Rand, plan Plan) *FaultyBus {
	return &FaultyBus{Bus: b, rng: rng, plan: plan, timers: map[*time.Timer]struct{}{}}
}

// SetPlan replaces the plan for what is published from now on.
func (f *FaultyBus) SetPlan(plan Plan) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plan = plan
}

// Faults returns the counts so far.
func (f *FaultyBus) Faults() Faults {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.faults
}

// Publish implements [bus.Bus].
func (f *FaultyBus) Publish(subject string, data []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.plan.Only != nil && !f.plan.Only(subject) {
		return f.Bus.Publish(subject, data)
	}
	copies := 1
	if f.chance(f.plan.Duplicate, &f.faults.Duplicated) {
		copies = 2
	}
	if f.chance(f.plan.Drop, &f.faults.Dropped) {
		copies--
	}
	m := message{subject, data}
	if f.chance(f.plan.Swap, &f.faults.Swapped) {
		m.data = slices.Clone(data)
		f.held = append(f.held, slices.Repeat([]message{m}, copies)...)
		return nil
	}
	var err error
	for range copies {
		err = f.send(m)
	}
	f.release()
	return err
}

// Reply implements [bus.Bus].
func (f *FaultyBus) Reply(m bus.Message, data []byte) error {
	if m.Reply == "" {
		return f.Bus.Reply(m, data)
	}
	return f.Publish(m.Reply, data)
}

// Request implements [bus.Bus]; a dropped request waits for ctx.
func (f *FaultyBus) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	f.mu.Lock()
	drop := (f.plan.Only == nil || f.plan.Only(subject)) && f.chance(f.plan.Drop, &f.faults.Dropped)
	f.mu.Unlock()
	if drop {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return f.Bus.Request(ctx, subject, data)
}

// Flush implements [bus.Bus]; it sends what is held for a swap, and does not
// wait for what is delayed.
func (f *FaultyBus) Flush(ctx context.Context) error {
	f.mu.Lock()
	f.release()
	f.mu.Unlock()
	return f.Bus.Flush(ctx)
}

// Close implements [bus.Bus]; what is held or delayed is lost.
func (f *FaultyBus) Close() error {
	f.mu.Lock()
	f.closed, f.held = true, nil
	for timer := range f.timers {
		f.cancel(timer)
	}
	f.mu.Unlock()
	f.delayed.Wait()
	return f.Bus.Close()
}

// chance draws, and counts where it came true. Nothing is drawn for a fault
// that is not planned.
func (f *FaultyBus) chance(p float64, count *int) bool {
	if p <= 0 || f.rng.Float64() >= p {
		return false
	}
	*count++
	return true
}

// release sends what was held for a swap.
func (f *FaultyBus) release() {
	for _, m := range f.held {
		_ = f.send(m)
	}
	f.held = nil
}

// send publishes now or after a delay.
func (f *FaultyBus) send(m message) error {
	if f.plan.MaxDelay <= 0 {
		return f.Bus.Publish(m.subject, m.data)
	}
	f.faults.Delayed++
	m.data = slices.Clone(m.data)
	f.delayed.Add(1)
	var timer *time.Timer
	timer = time.AfterFunc(f.delay(), func() {
		defer f.delayed.Done()
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.timers, timer)
		if !f.closed {
			_ = f.Bus.Publish(m.subject, m.data)
		}
	})
	f.timers[timer] = struct{}{}
	return nil
}

func (f *FaultyBus) delay() time.Duration {
	spread := max(f.plan.MaxDelay-f.plan.MinDelay, 0)
	return f.plan.MinDelay + time.Duration(f.rng.Int64N(int64(spread)+1))
}

// cancel stops a timer; one that fires at this moment ends by itself.
func (f *FaultyBus) cancel(timer *time.Timer) {
	if timer.Stop() {
		f.delayed.Done()
	}
	delete(f.timers, timer)
}
