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
	"github.com/gopegasus/pegasus/internal/gostate"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/telemetry"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// level is the thread-level synchronizer of a process. Its machine belongs to whoever
// is in a turn of its [turns]. The threads report to it through memory: each
// turn takes what they have to say, and one reading of the clock for all of them, under
// the lock that orders every state of the process.
type level struct {
	m    *Member
	plan *plan.Level
	stop <-chan struct{} // ends its goroutine
	// told takes a summary, with the lock held, where the process's state is not that
	// alone: a processor's. Nil elsewhere.
	told func(row []scgs.Value)

	// Used by whoever is in a turn.
	now     clocksync.Instant // of its begin
	rested  clocksync.Instant // of its end
	core    *synccore.Core
	taken   []*Thread // that have something to say
	states  []processState
	signals []*control.Signal
	inputs  []synccore.Input
	news    int // states among them
	roused  []*Region
	out     synccore.Output
	fresh   agentcore.Output // of signals: their thread's lock is in another processor's cache
	spans   *telemetry.DecisionSpans
	gap     bool // a thread's reports are incomplete until its ring has answered

	// Guarded by the lock of the process.
	turns       *turns
	threads     []*Thread // by name
	summary     bool      // the process's state in the group comes from here
	incarnation uint64
	parent      []*control.Signal
	process     []processState
	past        agentcore.Past
	room        sync.Cond        // process has shrunk, or nobody takes turns any more
	state       gostate.Encoding // of the process
	gone        SignalStats      // of the threads that are
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

func newLevel(m *Member, plan *plan.Level, stop <-chan struct{}) *level {
	spans := telemetry.NewDecisionSpans(m.cfg.TracerProvider, scope)
	l := &level{
		m: m, plan: plan, stop: stop, turns: newTurns(m.mu), spans: spans,
		core:  synccore.New(plan, synccore.Options{Term: uint64(max(source.WallNano(), 1)), Local: true, Once: true, Unread: spans == nil}),
		state: gostate.Encoding{Providers: m.state.Providers},
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
	l.awaitRoom()
	if m.closed {
		return ErrClosed
	}
	e, at, err := l.state.Of(state, l.plan.Process)
	if err != nil {
		return err
	}
	row, err := l.state.Row(e, at)
	if err != nil {
		return err
	}
	return l.state.Took(e, l.setRow(row))
}

// awaitRoom waits until there is room for a state of the process. The lock is held, but
// not meanwhile.
func (l *level) awaitRoom() {
	for len(l.process) == maxProcessStates && !l.m.closed {
		l.room.Wait()
	}
}

// setRow begins the state of a row. The lock is held.
func (l *level) setRow(row []scgs.Value) error {
	if err := l.plan.Process.Accepts(row); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	l.summarizeThreads()
	l.process = append(l.process, processState{l.stamp(), slices.Clone(row)})
	l.turns.bringForward(clocksync.MinInstant)
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
		l.turns.bringForward(clocksync.MinInstant)
	}
}

// summarizeThreads makes the process's state in the group the summary of its threads.
// The lock is held.
func (l *level) summarizeThreads() {
	if l.summary || l.told != nil || !l.plan.Summary() {
		return
	}
	l.summary = true
	if err := l.m.stepInput(&agentcore.Input{Kind: agentcore.InEnd, At: l.m.stampClock()}).Err; err != nil && !errors.Is(err, agentcore.ErrNoState) {
		l.m.log.Warn("the state before the threads cannot be ended", "member", l.m.cfg.Name, "error", err)
	}
	l.m.stepInput(&agentcore.Input{Kind: agentcore.InSummary})
}

// signalStats sums up the threads' signals. The lock is held.
func (l *level) signalStats() SignalStats {
	sum := l.gone
	for _, t := range l.threads {
		sum = sum.add(statsOf(t.core).Signals)
	}
	return sum
}

// shutThreads closes the threads and waits until nobody is in a turn; there is none after
// that. The lock is held, but not meanwhile.
func (l *level) shutThreads() {
	l.turns.closeTurns()
	for _, t := range l.threads {
		t.cancelRegions()
	}
	l.room.Broadcast()
	l.turns.awaitCalm()
}

// runDue takes the due turns, if they are the caller's to take. The caller has just given up
// the lock after a call that may have brought a turn forward. A nil *level has none.
func (l *level) runDue() {
	if l == nil || !l.turns.isWorthAsking(l.m.now) {
		return
	}
	l.m.mu.Lock()
	l.take(true)
}

// unlockTakingTurns gives up the lock, but first takes the turns that runDue would.
func (l *level) unlockTakingTurns() {
	if l.turns.isWorthAsking(l.m.now) {
		l.take(true)
	} else {
		l.m.mu.Unlock()
	}
}

// runTurns takes the turns that time makes due, and those that are handed over, until it is
// stopped.
func (l *level) runTurns() {
	defer l.turns.timer.Stop()
	for l.turns.awaitTurn(l.stop) {
		l.take(false)
	}
}

// take takes turns as long as one is due, but not for ever: then it hands over. The lock
// is held, and given up before regions that are to look do so, as they do at once and
// need it.
func (l *level) take(caller bool) {
	now := l.m.now()
	if !l.turns.beginTurn(now, caller) {
		l.m.mu.Unlock()
		return
	}
	done := false
	defer l.whole(&done)
	for n := 0; l.turns.until <= now && n < callersTurns; n++ {
		now = l.turn(now)
	}
	l.turns.endTurn(now)
	var few [8]*Region
	roused := append(few[:0], l.roused...)
	l.roused, done = l.roused[:0], true
	l.m.mu.Unlock()
	for _, r := range roused {
		r.attendSignals()
	}
}

// takeLastTurns takes the last turns: those that let the machine see all there is. The lock is
// held, but not within a turn.
func (l *level) takeLastTurns() {
	l.turns.seizeTurn()
	done := false
	defer l.whole(&done)
	now := l.turn(l.m.now())
	for l.gap {
		now = l.turn(now)
	}
	l.turns.endTurn(now)
	done = true
	l.rouse()
}

// turn lets the machine see what has happened, and returns when it is over. The lock is
// held, but not meanwhile.
func (l *level) turn(now clocksync.Instant) (over clocksync.Instant) {
	at := l.collect(now)
	l.m.mu.Unlock()
	l.rouse() // Of the turn before.
	l.gather(at)
	for i := 0; i < len(l.inputs); i++ {
		l.step(&l.inputs[i], i == len(l.inputs)-1)
	}
	return l.rested
}

// rouse has regions look that have signals.
func (l *level) rouse() {
	for _, r := range l.roused {
		r.attendSignals()
	}
	l.roused = l.roused[:0]
}

// gather puts the entries taken in the order in which the machine sees them. With the last it
// learns of the reading, since when nothing of it has happened.
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

// whole ends the process if turns are not done: the state of the machine would be unknown. The
// goroutine may be the program's, which would continue without it.
func (l *level) whole(done *bool) {
	if *done {
		return
	}
	text := fmt.Sprintf("agent: a turn of the thread-level synchronizer %q has not ended: %v\n\n%s", l.plan.Name, recover(), debug.Stack())
	go func() { panic(text) }()
	select {}
}

// collect takes what the threads and the process have to say up to one reading of the
// clock. The lock is held at its beginning and end.
func (l *level) collect(now clocksync.Instant) clocksync.Stamp {
	at := readAbove(l.m.mu, l.stamp, l.newest)
	l.now, l.gap = now, false
	l.turns.until = clocksync.MaxInstant
	l.taken = l.taken[:0]
	for _, t := range l.threads {
		if t.due.Wake <= now {
			t.stepMachine(now, &agentcore.Input{Kind: agentcore.InTick, At: at}, &t.out)
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

// newest is the newest reading at which a state of the process began. The lock is held.
func (l *level) newest() clocksync.Instant {
	above := clocksync.MinInstant
	if n := len(l.process); n > 0 {
		above = l.process[n-1].at.Mono
	}
	for _, t := range l.threads {
		above = max(above, t.newestReading())
	}
	return above
}

// stamp reads the clock for events below the group: readings of the same clock are compared,
// and the interval is kept for reports to the group. The lock is held.
func (l *level) stamp() (at clocksync.Stamp) {
	l.readStamp(&at)
	return at
}

// readStamp is stamp as [Member.readStamp] is.
func (l *level) readStamp(at *clocksync.Stamp) {
	l.m.readStamp(at)
	l.past.Add(at)
	at.Within = clocksync.Exactly(at.Mono)
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
		m.log.Warn("the thread-level synchronizer refuses an input", telemetry.ClassKey, r.Reason.String(), "from", r.From, "reason", r.Detail)
	}
	if o := &l.out; !last && len(o.Welcomes)+len(o.Resends)+len(o.Probes)+len(o.Signals)+len(o.Summary)+len(o.Verdicts) == 0 {
		return // Nobody is held up for nothing.
	}
	l.spans.Begin(l.out.Epochs, l.out.Verdicts) // Reports of threads do not travel, so they have no spans.
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
			t.stepMachine(now, &agentcore.Input{Kind: agentcore.InResend, Resend: &l.out.Resends[i].Msg}, &t.answer)
		}
	}
	for i := range l.out.Probes {
		if t := l.thread(l.out.Probes[i].To); t != nil {
			t.stepMachine(now, &agentcore.Input{Kind: agentcore.InProbe, Probe: &l.out.Probes[i].Msg}, &t.answer)
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
func (l *level) welcome(now clocksync.Instant, w *wire.Addressed[wire.Welcome]) {
	t := l.thread(w.To)
	if t == nil {
		return
	}
	t.stepMachine(now, &agentcore.Input{Kind: agentcore.InWelcome, Welcome: &w.Msg}, &t.answer)
	var err error
	switch t.answer.Reception {
	case agentcore.Accepted:
	case agentcore.Refused:
		err = &RefusedError{w.Msg.Synchronizer, t.name, w.Msg.Reason}
	case agentcore.Ignored:
		l.m.welcomeIgnored(t.name, &w.Msg, t.answer.Why)
		return
	case agentcore.Recalled, agentcore.Dropped:
		return
	}
	select {
	case t.joined <- err:
	default: // Thread has its answer.
	}
}

// signal lets signals into the regions of a thread. The lock is held.
func (l *level) signal(s *wire.Addressed[wire.Signals]) {
	if t := l.thread(s.To); t != nil {
		l.spans.Mark(s.Msg.Signals)
		t.stepMachine(l.now, &agentcore.Input{Kind: agentcore.InSignals, Signals: &s.Msg}, &l.fresh)
		l.roused = t.deliverSignals(l.fresh.Fresh, l.roused)
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
	e.At.Within = l.past.Within(e.At.Mono)
	step := func(kind agentcore.Kind) error {
		l.m.stepMachine(now, &agentcore.Input{Kind: kind, At: e.At, Row: e.Row}, &l.m.answer)
		return l.m.answer.Err
	}
	var err error
	switch e.Kind {
	case synccore.SummaryStart:
		if err = step(agentcore.InState); err != nil {
			err = errors.Join(err, step(agentcore.InEnd))
		}
	case synccore.SummaryEnd:
		err = step(agentcore.InEnd)
	case synccore.SummaryAlive:
		err = step(agentcore.InAlive)
	}
	if err != nil && !errors.Is(err, agentcore.ErrNoState) {
		l.m.log.Warn("the summary of the threads cannot be told", "member", l.m.cfg.Name, "error", err)
	}
}

// rest lets threads go that have left, and finds out when the next turn is due. The
// lock is held.
func (l *level) rest() {
	m := l.m
	now, wake := m.now(), min(l.turns.until, l.out.Wake)
	l.threads = slices.DeleteFunc(l.threads, func(t *Thread) bool {
		if !t.leaving || t.due.Wake != clocksync.MaxInstant {
			wake = min(wake, t.due.Wake)
			return false
		}
		l.gone = l.gone.add(statsOf(t.core).Signals)
		close(t.gone)
		return true
	})
	if len(l.process) > 0 || len(l.parent) > 0 {
		wake = clocksync.MinInstant
	}
	l.turns.until = min(wake, max(m.due.Probe, now+probePause))
	l.turns.pauseCallers(now, now.Sub(l.now), l.news, len(l.out.Signals) > 0)
	l.rested = now
}
