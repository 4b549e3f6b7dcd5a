package agent

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/clocksync/source"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/telemetry"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// level is the thread-level synchronizer of a process. One goroutine owns its
// machine. The threads report to it through memory: each turn takes what they
// have to say, and one reading of the clock for all of them, under the lock that
// orders every state of the process.
type level struct {
	m    *Member
	plan *synccore.Plan
	pace *pace
	stop <-chan struct{} // ends its goroutine
	// told takes a summary, with the lock held, where the process's state is not that
	// alone: a processor's. Nil elsewhere.
	told func(row []scgs.Value)

	// Used by the goroutine only.
	core  *synccore.Core
	in    synccore.Input
	out   synccore.Output
	taken []*Thread
	spans *telemetry.DecisionSpans
	gap   bool // a thread's reports are incomplete until its ring has answered

	// Guarded by the lock of the process.
	threads     []*Thread // by name
	summary     bool      // the process's state in the group comes from here
	incarnation uint64
	parent      []*control.Signal
	process     []processState
	past        past
	room        sync.Cond   // process has shrunk
	state       encoding    // of the process
	gone        SignalStats // of the threads that are
}

// processState is a state of the process beside its threads.
type processState struct {
	at  clocksync.Stamp
	row []scgs.Value
}

const (
	maxProcessStates = 1024 // that wait for the level
	maxParentSignals = 1024 // likewise; the oldest is dropped
	probePause       = clocksync.Instant(time.Millisecond)
)

func newLevel(m *Member, plan *synccore.Plan, stop <-chan struct{}) *level {
	l := &level{
		m: m, plan: plan, pace: newPace(), stop: stop, spans: telemetry.NewDecisionSpans(m.cfg.TracerProvider, scope),
		core:  synccore.New(plan, synccore.Options{Term: uint64(max(source.WallNano(), 1)), Local: true}),
		state: encoding{observed: m.state.observed},
	}
	l.room.L = m.mu
	return l
}

// setProcess begins a state of the process beside its threads. In the rare case
// that the level has not got to very many of them it waits for it. The lock is
// held.
func (l *level) setProcess(state any) error {
	m := l.m
	if len(l.plan.Process) == 0 {
		return fmt.Errorf("agent: the state of this process is the summary of its threads: set theirs, or declare one beside them under process: in section %q", l.plan.Name)
	}
	l.await()
	if m.closed {
		return ErrClosed
	}
	row, err := l.state.row(state, l.plan.Process)
	if err != nil {
		return err
	}
	return l.setRow(row)
}

// await waits until there is room for a state of the process. The lock is held, but
// not meanwhile.
func (l *level) await() {
	for len(l.process) == maxProcessStates && !l.m.closed {
		l.room.Wait()
	}
}

// setRow begins the state of a row. The lock is held.
func (l *level) setRow(row []scgs.Value) error {
	if err := l.plan.Process.Accepts(row); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	l.process = append(l.process, processState{l.stamp(), slices.Clone(row)})
	l.pace.due(clocksync.MinInstant)
	return nil
}

// fromParent shows signals of the level above to this one. The lock is held.
func (l *level) fromParent(fresh []control.Outcome) {
	for _, o := range fresh {
		if o.Fate == control.OldEpoch || o.Signal.Predicate == wire.ProgramSignals {
			continue
		}
		if len(l.parent) == maxParentSignals {
			l.parent = slices.Delete(l.parent, 0, 1)
		}
		l.parent = append(l.parent, o.Signal)
		l.pace.due(clocksync.MinInstant)
	}
}

// summarize makes the process's state in the group the summary of its threads.
// The lock is held.
func (l *level) summarize() {
	if l.summary || l.told != nil || !l.plan.Summary() {
		return
	}
	l.summary = true
	core := l.m.core
	if err := core.End(l.m.now(), l.m.stamp()); err != nil && !errors.Is(err, agentcore.ErrNoState) {
		l.m.log.Warn("the state before the threads cannot be ended", "member", l.m.cfg.Name, "error", err)
	}
	core.Virtual()
	l.m.pace.due(core.Wake())
}

// signals sums up the threads' signals. The lock is held.
func (l *level) signals() SignalStats {
	sum := l.gone
	for _, t := range l.threads {
		sum = sum.add(statsOf(t.core).Signals)
	}
	return sum
}

// shut closes the threads. The lock is held.
func (l *level) shut() {
	for _, t := range l.threads {
		t.shut()
	}
	l.room.Broadcast()
}

// run takes turns until it is stopped.
func (l *level) run() {
	timer, armed := time.NewTimer(0), clocksync.MinInstant
	defer timer.Stop()
	for {
		if wake := l.turn(); wake < armed { // One that is early does no harm.
			armed = wake
			timer.Reset(wake.Sub(l.m.now()))
		}
		select {
		case <-l.pace.wake:
		case <-timer.C:
			armed = clocksync.MaxInstant
		case <-l.stop:
			return
		}
	}
}

// turn lets the machine see what has happened, and returns when the next one is
// due.
func (l *level) turn() clocksync.Instant {
	at, process, parent := l.take()
	for _, p := range process {
		l.step(synccore.Input{Kind: synccore.InProcess, At: p.at, Row: p.row})
	}
	for _, t := range l.taken {
		l.report(t)
	}
	for _, s := range parent {
		l.step(synccore.Input{Kind: synccore.InParent, Signal: s})
	}
	if l.gap {
		l.step(synccore.Input{Kind: synccore.InTick})
	} else {
		// Nothing has happened between this reading and the reports above.
		l.step(synccore.Input{Kind: synccore.InEvidence, At: at})
	}
	return l.rest()
}

// take gathers what the threads and the process have to say up to one reading of
// the clock.
func (l *level) take() (clocksync.Stamp, []processState, []*control.Signal) {
	m := l.m
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	l.gap = false
	l.pace.until = clocksync.MinInstant // rest looks at what comes in meanwhile.
	l.taken = append(l.taken[:0], l.threads...)
	at := l.reading()
	for _, t := range l.taken {
		t.core.Flush(now, at, &t.out)
	}
	process, parent := l.process, l.parent
	l.process, l.parent = nil, nil
	l.room.Broadcast()
	return at, process, parent
}

// reading is a stamp above every state of the process. The lock is held.
func (l *level) reading() clocksync.Stamp {
	above := clocksync.MinInstant
	if n := len(l.process); n > 0 {
		above = l.process[n-1].at.Mono
	}
	for _, t := range l.threads {
		above = max(above, newest(t.core))
	}
	return readAbove(l.stamp, above)
}

// stamp reads the clock for what happens below the group: readings of one clock
// are compared, and the interval is kept for what the group is told. The lock is
// held.
func (l *level) stamp() clocksync.Stamp {
	at := l.m.stamp()
	l.past.add(at)
	at.Within = clocksync.Exactly(at.Mono)
	return at
}

// report steps the machine with what a thread had to say.
func (l *level) report(t *Thread) {
	for i := range t.out.Hellos {
		l.step(synccore.Input{Kind: synccore.InHello, From: t.name, Hello: &t.out.Hellos[i]})
	}
	for i := range t.out.Batches {
		l.step(synccore.Input{Kind: synccore.InBatch, From: t.name, Batch: &t.out.Batches[i]})
	}
	for i := range t.out.Gones {
		l.step(synccore.Input{Kind: synccore.InGone, From: t.name, Gone: &t.out.Gones[i]})
	}
	for i := range t.out.Acks {
		l.step(synccore.Input{Kind: synccore.InAck, From: t.name, Ack: &t.out.Acks[i].Ack})
	}
}

// step steps the machine and does what it asks for.
func (l *level) step(in synccore.Input) {
	m := l.m
	l.in = in
	l.core.Step(m.now(), &l.in, &l.out)
	for _, r := range l.out.Rejected {
		m.log.Warn("the thread-level synchronizer refuses an input", telemetry.ClassKey, r.Class.String(), "from", r.From, "reason", r.Reason)
	}
	if o := &l.out; len(o.Welcomes)+len(o.Resends)+len(o.Probes)+len(o.Signals)+len(o.Summary)+len(o.Verdicts) == 0 {
		return // Nobody is held up for nothing.
	}
	l.trace()
	defer l.spans.End()
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	for i := range l.out.Welcomes {
		l.welcome(now, &l.out.Welcomes[i])
	}
	for i := range l.out.Resends {
		l.gap = true
		if t := l.thread(l.out.Resends[i].To); t != nil {
			t.core.OnResend(&l.out.Resends[i].Msg)
		}
	}
	for i := range l.out.Probes {
		if t := l.thread(l.out.Probes[i].To); t != nil {
			t.core.OnProbe(now, &l.out.Probes[i].Msg)
		}
	}
	for i := range l.out.Signals {
		l.signal(now, l.out.Signals[i])
	}
	for i := range l.out.Summary {
		l.tell(now, &l.out.Summary[i])
	}
}

func (l *level) thread(name string) *Thread {
	i, found := slices.BinarySearchFunc(l.threads, &Thread{name: name}, byName)
	if !found {
		return nil
	}
	return l.threads[i]
}

// welcome passes an answer on to a thread. The lock is held.
func (l *level) welcome(now clocksync.Instant, w *synccore.Addressed[wire.Welcome]) {
	t := l.thread(w.To)
	if t == nil {
		return
	}
	var err error
	switch t.core.OnWelcome(now, &w.Msg) {
	case agentcore.Accepted:
	case agentcore.Refused:
		err = fmt.Errorf("refused by synchronizer %q: %s", w.Msg.Synchronizer, w.Msg.Reason)
	case agentcore.Ignored, agentcore.Recalled, agentcore.Dropped:
		return
	}
	select {
	case t.joined <- err:
	default: // Thread has its answer.
	}
}

// signal lets signals into the regions of a thread. The lock is held.
func (l *level) signal(now clocksync.Instant, s synccore.Addressed[wire.Signals]) {
	if t := l.thread(s.To); t != nil {
		s.Msg.Signals = slices.Clone(s.Msg.Signals) // A gate keeps them.
		for i := range s.Msg.Signals {
			sig := &s.Msg.Signals[i]
			sig.Trace = control.Trace(l.spans.Context(sig.Decision.Number))
		}
		t.deliver(t.core.OnSignals(now, &s.Msg))
	}
}

// tell tells the group about the state of the process. The lock is held.
func (l *level) tell(now clocksync.Instant, e *synccore.SummaryEvent) {
	if l.told != nil {
		if e.Kind == synccore.SummaryStart {
			l.told(e.Row)
		}
		return
	}
	core := l.m.core
	e.At.Within = l.past.within(e.At.Mono)
	var err error
	switch e.Kind {
	case synccore.SummaryStart:
		if err = core.Set(now, e.At, e.Row); err != nil {
			err = errors.Join(err, core.End(now, e.At))
		}
	case synccore.SummaryEnd:
		err = core.End(now, e.At)
	case synccore.SummaryAlive:
		err = core.Alive(now, e.At)
	}
	if err != nil && !errors.Is(err, agentcore.ErrNoState) {
		l.m.log.Warn("the summary of the threads cannot be told", "member", l.m.cfg.Name, "error", err)
	}
	l.m.pace.due(core.Wake())
}

// rest lets threads go that have left, and returns when the next turn is due.
func (l *level) rest() clocksync.Instant {
	m := l.m
	m.mu.Lock()
	defer m.mu.Unlock()
	l.threads = slices.DeleteFunc(l.threads, func(t *Thread) bool {
		if !t.leaving || t.core.Wake() != clocksync.MaxInstant {
			return false
		}
		l.gone = l.gone.add(statsOf(t.core).Signals)
		close(t.gone)
		return true
	})
	wake := l.out.Wake
	for _, t := range l.threads {
		wake = min(wake, t.core.Wake())
	}
	if len(l.process) > 0 || len(l.parent) > 0 {
		wake = clocksync.MinInstant
	}
	wake = min(wake, max(m.core.ProbeAt(), m.now()+probePause))
	l.pace.until = wake
	return wake
}
