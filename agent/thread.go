package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/clocksync/source"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/gostate"
	"github.com/gopegasus/pegasus/internal/wire"
)

// Thread is a part of a process that has a state and regions of its own: a
// member of the thread-level synchronizer that runs inside the process. Which
// goroutines it stands for is the program's matter.
type Thread struct {
	participant
	name    string
	out     agentcore.Output // of ticks; used by whoever is in a turn of the level
	joined  chan error       // capacity 1: the answer to the hello
	gone    chan struct{}    // closed when the level has let it go
	leaving bool
}

// ThreadOption says more about a thread.
type ThreadOption func(*wire.Hello) error

// ThreadState checks the type of a value against the declared state of threads
// when the thread is made, as Config.State does for the process.
func ThreadState(prototype any) ThreadOption {
	return func(h *wire.Hello) (err error) {
		h.Schema, err = gostate.SchemaOf(prototype)
		h.Typed = err == nil
		return err
	}
}

// Thread adds a thread to the process. Its name is unique among open threads. From the first
// thread on, the process's state in the group is the summary of its threads; a state set before
// ends. Thread fails if the configuration declares no threads below the member's group, or
// fewer than that.
func (m *Member) Thread(name string, opts ...ThreadOption) (*Thread, error) {
	if err := checkName("thread", name); err != nil {
		return nil, err
	}
	if m.level == nil {
		return nil, fmt.Errorf("agent: thread %q: the configuration declares no threads below group %q: add a synchronizer with members: {threads: N} and the group's as its parent", name, m.cfg.Group)
	}
	t, err := m.level.openThread(name, opts)
	if err == nil {
		err = t.awaitAnswer()
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// openThread adds a thread, which is to be awaited.
func (l *level) openThread(name string, opts []ThreadOption) (*Thread, error) {
	t := &Thread{name: name, joined: make(chan error, 1), gone: make(chan struct{})}
	t.above = l
	hello := wire.Hello{Member: name, Host: l.m.cfg.Host, Domain: l.m.clock.Domain()}
	for _, o := range opts {
		if o == nil {
			return nil, fmt.Errorf("agent: thread %q: %w", name, errNilOption)
		}
		if err := o(&hello); err != nil {
			return nil, err
		}
	}
	return t, l.add(t, hello)
}

// awaitAnswer waits for the level's answer to a new thread.
func (t *Thread) awaitAnswer() error {
	select {
	case err := <-t.joined:
		if err != nil {
			return errors.Join(fmt.Errorf("agent: thread %q: %w", t.name, err), t.Close())
		}
		if len(t.above.plan.State) == 0 {
			return t.Set(struct{}{}) // Where no field is declared, being there is the state.
		}
		return nil
	case <-t.above.stop:
		return ErrClosed
	}
}

// Name is the thread's name.
func (t *Thread) Name() string { return t.name }

// Set begins a new state of the thread now, as [Member.Set] does for a process.
//
// Set may take turns of the thread-level synchronizer on the caller's goroutine, at most four.
// Then it evaluates predicates, which takes some microseconds where they are cheap, and signals
// have reached their regions when it returns. It leaves turns to a goroutine of the
// synchronizer in three cases: another goroutine is in a turn, states come so fast that they
// are better taken together, or a turn takes longer than 50 µs. The same holds for Close, and
// for entering and leaving regions.
func (t *Thread) Set(state any) error {
	t.mu.Lock()
	defer t.above.unlockTakingTurns()
	return t.beginState(state)
}

// Region runs work inside a region of the thread, as [Member.Region] does for a
// process.
func (t *Thread) Region(ctx context.Context, name string, work Work, opts ...RegionOption) error {
	return t.runRegion(ctx, name, work, opts)
}

// Stats returns the counters of the thread.
func (t *Thread) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	return statsOf(t.core)
}

// Close ends the thread: its open regions are cancelled with [ErrClosed], and the
// next epoch of the process is without it. Its name may be used again. Closing
// again does nothing.
func (t *Thread) Close() error {
	t.mu.Lock()
	t.cancelRegions()
	t.leaving = true
	t.stepInput(&agentcore.Input{Kind: agentcore.InLeave})
	t.pace.bringForward(clocksync.MinInstant)
	t.mu.Unlock()
	t.above.runDue()
	select {
	case <-t.gone:
	case <-t.above.stop:
	}
	return nil
}

// add takes a thread in; the level speaks for it from now on.
func (l *level) add(t *Thread, hello wire.Hello) error {
	m := l.m
	defer l.runDue()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	i, found := slices.BinarySearchFunc(l.threads, t.name, byName)
	if found {
		return fmt.Errorf("agent: thread %q is there already: give this one another name, or close that", t.name)
	}
	l.incarnation = max(l.incarnation+1, uint64(max(source.WallNano(), 1)))
	hello.Incarnation = l.incarnation
	t.participant = participant{
		mu: m.mu, above: l, readStamp: l.readStamp, now: m.now, pace: &l.turns.pace, regions: map[string]*Region{}, spans: m.spans,
		core: agentcore.New(agentcore.Options{Hello: hello, Local: true}), last: clocksync.MinInstant, due: agentcore.Due{Wake: clocksync.MinInstant},
	}
	l.threads = slices.Insert(l.threads, i, t)
	l.summarizeThreads()
	t.pace.bringForward(t.due.Wake)
	return nil
}

func byName(t *Thread, name string) int { return strings.Compare(t.name, name) }
