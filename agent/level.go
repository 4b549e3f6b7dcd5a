package agent

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/clocksync/source"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/telemetry"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// level is the thread-level synchronizer of a process. Its machine belongs to whoever
// is in a turn, one goroutine at a time. The threads report to it through memory: each
// turn takes what they have to say, and one reading of the clock for all of them, under
// the lock that orders every state of the process.
type level struct {
	m    *Member
	plan *plan.Level
	pace *pace
	stop <-chan struct{} // ends its goroutine
	wake chan struct{}   // capacity 1: a turn is handed over to its goroutine
	// told takes a summary, with the lock held, where the process's state is not that
	// alone: a processor's. Nil elsewhere.
	told func(row []scgs.Value)

	// Used by whoever is in a turn.
	now     clocksync.Instant // of its begin
	rested  clocksync.Instant // of its end
	dear    int               // of the last turns on end
	core    *synccore.Core
	taken   []*Thread // that have something to say
	states  []processState
	signals []*control.Signal
	inputs  []synccore.Input
	news    int // states among them
	roused  []*Region
	out     synccore.Output
	spans   *telemetry.DecisionSpans
	gap     bool // a thread's reports are incomplete until its ring has answered

	// Guarded by the lock of the process.
	turning     bool              // somebody is in a turn
	over        bool              // nobody begins one any more
	callers     clocksync.Instant // when they may take turns again
	timer       *time.Timer
	armed       clocksync.Instant // when the timer fires; MaxInstant if it does not
	threads     []*Thread         // by name
	summary     bool              // the process's state in the group comes from here
	incarnation uint64
	parent      []*control.Signal
	process     []processState
	past        past
	room        sync.Cond   // process has shrunk, or somebody has left a turn
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

	callersTurns = 4 // one caller takes no more at once
	credit       = time.Millisecond
	dearState    = 50 * time.Microsecond
	dearTurns    = 3 // on end
)

func newLevel(m *Member, plan *plan.Level, stop <-chan struct{}) *level {
	l := &level{
		m: m, plan: plan, pace: &pace{until: clocksync.MaxInstant}, stop: stop, wake: make(chan struct{}, 1),
		timer: time.NewTimer(0), armed: clocksync.MinInstant, spans: telemetry.NewDecisionSpans(m.cfg.TracerProvider, scope),
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

// signalStats sums up the threads' signals. The lock is held.
func (l *level) signalStats() SignalStats {
	sum := l.gone
	for _, t := range l.threads {
		sum = sum.add(statsOf(t.core).Signals)
	}
	return sum
}

// shut closes the threads and waits until nobody is in a turn; there is none after
// that. The lock is held, but not meanwhile.
func (l *level) shut() {
	l.over = true
	for _, t := range l.threads {
		t.shut()
	}
	l.room.Broadcast()
	l.calm()
}

// calm waits until nobody is in a turn. The lock is held, but not meanwhile.
func (l *level) calm() {
	for l.turning {
		l.room.Wait()
	}
}

// unlock gives up the lock of the process. If a turn is due and nobody is in one, the
// caller takes it first, on its own goroutine: it is done before another one has woken.
// Once callers have spent half a millisecond on turns that send no signals,
// these leave them twice their time before the next one: what comes faster is gathered,
// and taken together. Where states take longer than several times what it costs to wake
// the level's goroutine, that takes all turns, beside the callers.
//
// No mark is lost: it is made under the lock, and who is in a turn looks for marks
// under the lock before it says, within the same hold, that nobody is.
func (l *level) unlock() {
	if !l.turning && !l.over {
		now := l.m.now()
		if l.pace.until <= now && l.callers <= now {
			l.turns(now)
			return
		}
		l.arm(now)
	}
	l.m.mu.Unlock()
}

// run takes the turns that time makes due, and those that are handed over, until it is
// stopped.
func (l *level) run() {
	defer l.timer.Stop()
	m := l.m
	for {
		fired := false
		select {
		case <-l.wake:
		case <-l.timer.C:
			fired = true
		case <-l.stop:
			return
		}
		m.mu.Lock()
		if fired {
			l.armed = clocksync.MaxInstant
		}
		if now := m.now(); !l.turning && !l.over && l.pace.until <= now {
			l.turns(now)
		} else {
			l.arm(now)
			m.mu.Unlock()
		}
	}
}

// turns takes turns as long as one is due, but not for ever: then it hands over. It
// gives up the lock, as regions that are to look do so at once, and need it.
func (l *level) turns(now clocksync.Instant) {
	l.turning = true
	done := false
	defer l.whole(&done)
	for n := 0; l.pace.until <= now && n < callersTurns; n++ {
		l.turn(now)
		now = l.rested
	}
	l.turning = false
	l.arm(now)
	l.room.Broadcast()
	var few [8]*Region
	roused := append(few[:0], l.roused...)
	l.roused, done = l.roused[:0], true
	l.m.mu.Unlock()
	for _, r := range roused {
		r.attend()
	}
}

// arm has the goroutine woken when the next turn is due. The lock is held.
func (l *level) arm(now clocksync.Instant) {
	switch until := l.pace.until; {
	case until <= now:
		notify(l.wake)
	case until < l.armed: // One that is early does no harm.
		l.armed = until
		l.timer.Reset(until.Sub(now))
	}
}

// finish takes the last turns: those that let the machine see all there is. The lock is
// held, but not within a turn.
func (l *level) finish() {
	l.calm()
	l.turning = true
	done := false
	defer l.whole(&done)
	for l.turn(l.m.now()); l.gap; l.turn(l.m.now()) {
	}
	l.turning, done = false, true
	l.rouse()
}

// turn lets the machine see what has happened. The lock is held, but not meanwhile.
func (l *level) turn(now clocksync.Instant) {
	at := l.take(now)
	l.m.mu.Unlock()
	l.rouse() // Of the turn before.
	l.gather(at)
	for i := 0; i < len(l.inputs); i++ {
		l.step(&l.inputs[i], i == len(l.inputs)-1)
	}
}

// rouse has regions look that have signals.
func (l *level) rouse() {
	for _, r := range l.roused {
		r.attend()
	}
	l.roused = l.roused[:0]
}

// gather puts what was taken in the order in which the machine sees it. With the last
// it learns of the reading, since when nothing of it has happened.
func (l *level) gather(at clocksync.Stamp) {
	ins := l.inputs[:0]
	for _, p := range l.states {
		ins = append(ins, synccore.Input{Kind: synccore.InProcess, At: p.at, Row: p.row})
	}
	for _, s := range l.signals {
		ins = append(ins, synccore.Input{Kind: synccore.InParent, Signal: s})
	}
	states := len(l.states)
	for _, t := range l.taken {
		for i := range t.out.Hellos {
			ins = append(ins, synccore.Input{Kind: synccore.InHello, From: t.name, Hello: &t.out.Hellos[i]})
		}
		for i := range t.out.Acks {
			ins = append(ins, synccore.Input{Kind: synccore.InAck, From: t.name, Ack: &t.out.Acks[i].Ack})
		}
		for i := range t.out.Batches {
			states += len(t.out.Batches[i].Reports)
			ins = append(ins, synccore.Input{Kind: synccore.InBatch, From: t.name, Batch: &t.out.Batches[i]})
		}
		for i := range t.out.Gones {
			ins = append(ins, synccore.Input{Kind: synccore.InGone, From: t.name, Gone: &t.out.Gones[i]})
		}
	}
	if n := len(ins); n == 0 || ins[n-1].Kind != synccore.InBatch {
		ins = append(ins, synccore.Input{Kind: synccore.InEvidence})
	}
	ins[len(ins)-1].At = at
	l.inputs, l.news = ins, states
}

// whole ends the process if turns are not done: nobody could tell what state the
// machine is in. The goroutine may be the program's, which would go on without it.
func (l *level) whole(done *bool) {
	if *done {
		return
	}
	text := fmt.Sprintf("agent: a turn of the thread-level synchronizer %q has not ended: %v\n\n%s", l.plan.Name, recover(), debug.Stack())
	go func() { panic(text) }()
	select {}
}

// take takes what the threads and the process have to say up to one reading of the
// clock. The lock is held.
func (l *level) take(now clocksync.Instant) clocksync.Stamp {
	l.now, l.gap = now, false
	l.pace.until = clocksync.MaxInstant
	l.taken = l.taken[:0]
	at := l.reading()
	for _, t := range l.threads {
		if t.core.Wake() <= now || t.core.Answers() {
			t.core.Flush(now, at, &t.out)
			l.taken = append(l.taken, t)
		}
	}
	l.states, l.process = l.process, l.states[:0]
	l.signals, l.parent = l.parent, l.signals[:0]
	if len(l.states) > 0 {
		l.room.Broadcast()
	}
	return at
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

// step steps the machine and does what it asks for. After the last one of a turn it
// finds out when the next is due, and the lock is held.
func (l *level) step(in *synccore.Input, last bool) {
	m := l.m
	l.core.Step(l.now, in, &l.out)
	if last && in.Kind == synccore.InBatch && len(l.out.Epochs) > 0 { // The reading was for the epoch before.
		l.inputs = append(l.inputs, synccore.Input{Kind: synccore.InEvidence, At: in.At})
		last = false
	}
	for _, r := range l.out.Rejected {
		m.log.Warn("the thread-level synchronizer refuses an input", telemetry.ClassKey, r.Class.String(), "from", r.From, "reason", r.Reason)
	}
	if o := &l.out; !last && len(o.Welcomes)+len(o.Resends)+len(o.Probes)+len(o.Signals)+len(o.Summary)+len(o.Verdicts) == 0 {
		return // Nobody is held up for nothing.
	}
	l.trace()
	m.mu.Lock()
	l.carryOut()
	if last {
		l.rest()
	}
	for i := range l.out.Signals {
		l.signal(&l.out.Signals[i])
	}
	if last && l.spans == nil {
		return
	}
	m.mu.Unlock()
	l.rouse()
	l.spans.End()
	if last {
		m.mu.Lock()
	}
}

// carryOut does what the machine asks for, but for signals. The lock is held.
func (l *level) carryOut() {
	now := l.now
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
	for i := range l.out.Summary {
		l.tell(now, &l.out.Summary[i])
	}
}

func (l *level) thread(name string) *Thread {
	i, found := slices.BinarySearchFunc(l.threads, name, byName)
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
func (l *level) signal(s *synccore.Addressed[wire.Signals]) {
	if t := l.thread(s.To); t != nil {
		s.Msg.Signals = slices.Clone(s.Msg.Signals) // A gate keeps them.
		for i := range s.Msg.Signals {
			sig := &s.Msg.Signals[i]
			sig.Trace = control.Trace(l.spans.Context(sig.Decision.Number))
		}
		l.roused = t.deliver(t.core.OnSignals(l.now, &s.Msg), l.roused)
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

// rest lets threads go that have left, and finds out when the next turn is due. The
// lock is held.
func (l *level) rest() {
	m := l.m
	now, wake := m.now(), min(l.pace.until, l.out.Wake)
	l.threads = slices.DeleteFunc(l.threads, func(t *Thread) bool {
		next := t.core.Wake()
		if !t.leaving || next != clocksync.MaxInstant {
			wake = min(wake, next)
			return false
		}
		l.gone = l.gone.add(statsOf(t.core).Signals)
		close(t.gone)
		return true
	})
	if len(l.process) > 0 || len(l.parent) > 0 {
		wake = clocksync.MinInstant
	}
	l.pace.until = min(wake, max(m.core.ProbeAt(), now+probePause))
	l.spent(now)
	l.rested = now
}

// spent says when callers may take turns again, after one that is over now. One that
// took long is not dear yet: its goroutine may have been stopped.
func (l *level) spent(now clocksync.Instant) {
	took, most := now.Sub(l.now), dearState*time.Duration(max(l.news, 1))
	if took <= most {
		l.dear = 0
	} else {
		l.dear++
	}
	switch {
	case l.dear == dearTurns:
		l.dear, l.callers = dearTurns-1, clocksync.MaxInstant
	case len(l.out.Signals) > 0:
		l.callers = min(l.callers, now)
	default:
		l.callers = max(min(l.callers, now), now.Add(-credit)).Add(2 * min(took, most))
	}
}
