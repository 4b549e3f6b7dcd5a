// Package executor carries out a control program on the members of a synchronizer. It lets the
// interpreter of control/program see what global states show of processors and predicates, and
// makes signals of its requests. Nothing is started, cancelled or passed but by a decision on a
// current global state.
//
// An executor is pure and belongs to one machine (internal/synccore), which tells it
// what has happened and takes signals and events from it.
package executor

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
)

// Program is a compiled program that machines can run.
type Program struct{ *program.Compiled }

// Begin implements [plan.Program].
func (p Program) Begin(level string, id uint64) plan.Executor {
	return &executor{
		program: p.Compiled, level: level, id: id, run: program.NewRun(p.Compiled), wake: clocksync.MaxInstant, resume: clocksync.MaxInstant,
		processors: map[string]*processor{}, held: map[string]clocksync.Instant{}, runs: map[uint64]*blockRun{}, byID: map[program.ID]*blockRun{},
		tallies: map[int]*tally{},
	}
}

// Same implements [plan.Program].
func (p Program) Same(other plan.Program) bool {
	q, ok := other.(Program)
	return ok && reflect.DeepEqual(p.Program(), q.Program()) && slices.Equal(p.Predicates(), q.Predicates())
}

type executor struct {
	program    *program.Compiled
	level      string
	id         uint64
	run        *program.Run
	out        program.Output
	began      bool
	wake       clocksync.Instant
	processors map[string]*processor
	held       map[string]clocksync.Instant // processors that get nothing before that
	runs       map[uint64]*blockRun         // that have not ended
	byID       map[program.ID]*blockRun
	numbers    uint64
	before     uint64 // runs of up to this number were started in earlier lives
	overdue    bool   // what these have come to should be here by now
	verdicts   []heldVerdict
	moved      []moved     // members whose current state is to be looked at
	attention  []*blockRun // that may need a signal
	finish     *monitor.ProgramEvent
	tallies    map[int]*tally // of the blocks by construct
	total      monitor.RunCounts
	resume     clocksync.Instant // since when processors are awaited after a restart, MaxInstant if none is
	formed     bool              // there was an epoch before the restart
	awaited    int               // processors that have not come back since
	hold       plan.Hold         // for them
	gaveUp     []*blockRun       // the last runs that were given up and may have continued
	log        log               // for whoever continues with the program
	behind     time.Duration     // of the interpreter's time behind the clock, which was another one before

	drawn struct {
		is      bool
		drawing *monitor.ProgramDrawing
	}
}

// maxGivenUp bounds the runs that were given up and are known again.
const maxGivenUp = 1024

// processor is a member as the interpreter knows it.
type processor struct {
	name, node  string
	incarnation uint64
	run         *blockRun // that was placed there
	awaited     bool      // since a restart it has not been seen to obey the new term
	stranger    bool      // and was not known before it
}

// isGone reports whether the process that had the run of the processor is no more, as
// what comes back after a restart shows. A start that was sent and never seen may
// have reached the process from before.
func (p *processor) isGone(incarnation uint64, shows bool) bool {
	return p.run != nil && !shows && (p.run.seen || p.run.started && p.incarnation != incarnation)
}

// heldVerdict is a verdict that waits for the interpreter.
type heldVerdict struct {
	predicate string
	truth     predicates.Truth
	decision  control.Decision // zero: of the pass
}

// moved is a member whose state has changed; of any incarnation if that is 0.
type moved struct {
	name        string
	incarnation uint64
}

// tally is about all runs of a construct. The times are of runs with a result.
type tally struct {
	monitor.RunCounts

	sum, longest time.Duration
}

// blockRun is one attempt at a block on a processor.
type blockRun struct {
	number    uint64
	id        program.ID
	construct int
	block     string
	on        string // the processor
	replicas  []int32
	input     string
	placed    clocksync.Instant // when it was requested, by the interpreter's time
	seen      bool              // a global state has shown it
	cancel    bool
	started   bool              // a start was sent and may have arrived
	arrived   bool              // it has
	since     clocksync.Instant // when that was reported
	left      bool              // a cancellation has had its effect
	signal    bool              // one is under way
	sent      [2]uint32         // how many starts and cancellations were
	again     clocksync.Instant // no signal before that
	body      *plan.Body
	attended  bool // it is in attention
	told      bool // it was given up, and that it continued all the same is reported
}

// Verdict implements [plan.Executor].
func (f *executor) Verdict(predicate string, truth predicates.Truth, d control.Decision) {
	f.verdicts = append(f.verdicts, heldVerdict{f.level + "." + predicate, truth, d})
}

// Moved implements [plan.Executor].
func (f *executor) Moved(member string, incarnation uint64) {
	f.moved = append(f.moved, moved{member, incarnation})
}

// Epoch implements [plan.Executor]: the verdicts that wait are void, too.
func (f *executor) Epoch(now clocksync.Instant, begun control.Decision, out *plan.ExecutorOutput) {
	f.verdicts = f.verdicts[:0]
	p := pass{executor: f, now: now, out: out}
	p.stepInterpreter(&program.Input{Kind: program.InEpoch, Decision: begun})
}

// Renewed implements [plan.Executor].
func (f *executor) Renewed(now clocksync.Instant, names []string, w plan.World, out *plan.ExecutorOutput) {
	p := pass{executor: f, now: now, world: w, out: out}
	for _, name := range names {
		name = f.level + "." + name
		f.verdicts = slices.DeleteFunc(f.verdicts, func(v heldVerdict) bool { return v.predicate == name })
		p.stepInterpreter(&program.Input{Kind: program.InVerdict, Predicate: name, Truth: predicates.Unknown, Decision: w.Decision()})
	}
}

// Left implements [plan.Executor].
func (f *executor) Left(now clocksync.Instant, silence plan.Silence, dropped []monitor.Dropped, out *plan.ExecutorOutput) {
	p := pass{executor: f, now: now, out: out}
	var lost []*processor
	why := map[string]string{}
	for _, d := range dropped {
		delete(f.held, d.Name)
		if p := f.processors[d.Name]; p != nil && (!p.awaited || d.Reason == "left" && f.hold != plan.HoldNone && !p.stranger) {
			if p.awaited {
				p.awaited = false
				f.awaited--
			}
			lost = append(lost, p)
			why[d.Name] = d.Reason
		}
	}
	p.holdBack(lost, now.Add(silence))
	for _, l := range idleFirst(lost) {
		p.loseProcessor(l, why[l.name])
	}
}

// holdBack gives nothing to the idle processors of nodes that have lost others: a node ends as
// a whole, and its processors report that one after the other. Those that are still here after
// the time of silence are enrolled again.
func (p *pass) holdBack(lost []*processor, until clocksync.Instant) {
	for _, name := range slices.Sorted(maps.Keys(p.processors)) {
		q := p.processors[name]
		if q.run != nil || q.awaited || slices.Contains(lost, q) || !slices.ContainsFunc(lost, func(l *processor) bool { return l.node == q.node }) {
			continue
		}
		delete(p.processors, name)
		p.held[name] = until
		p.stepInterpreter(&program.Input{Kind: program.InLeft, Node: program.Node{Name: name}})
	}
}

// idleFirst puts processors that are lost together in order: first those on which
// nothing runs, so that nothing is tried again there, then by name.
func idleFirst(list []*processor) []*processor {
	busy := func(p *processor) int {
		if p.run == nil {
			return 0
		}
		return 1
	}
	slices.SortFunc(list, func(a, b *processor) int {
		return cmp.Or(busy(a)-busy(b), cmp.Compare(a.name, b.name))
	})
	return list
}

// Overdue implements [plan.Executor].
func (f *executor) Overdue(now clocksync.Instant, silence plan.Silence, out *plan.ExecutorOutput) (resume bool) {
	if f.resume == clocksync.MaxInstant || now.Sub(f.resume) <= silence {
		return false
	}
	f.resume, f.awaited = clocksync.MaxInstant, 0
	var late []*processor
	for _, p := range f.processors {
		if p.awaited {
			late = append(late, p)
		}
	}
	p := pass{executor: f, now: now, out: out}
	for _, l := range idleFirst(late) {
		if l.stranger {
			delete(f.processors, l.name)
		} else {
			p.loseProcessor(l, "it did not come back after the restart")
		}
		f.Moved(l.name, 0) // It may be here, and not have said that it obeys.
	}
	f.overdue = true
	for _, number := range slices.Sorted(maps.Keys(f.runs)) {
		f.wantLook(f.runs[number])
	}
	return f.formed
}

// Settled implements [plan.Executor]. A signal that had no effect is sent again, by a
// later decision, if it is still needed.
func (f *executor) Settled(now clocksync.Instant, s *control.Signal, fate control.Fate) {
	r := f.runs[uint64(s.Lookup(wire.DatumRun).Int())] //nolint:gosec // It was one.
	if r == nil || r.on != s.Target {
		return
	}
	start := s.Name == wire.StartSignal
	r.signal = false
	switch {
	case fate == control.Applied && start:
		r.arrived, r.since = true, now
	case fate == control.Applied:
		r.left = true
	case start && fate != control.Unconfirmed:
		r.started = false // It has not arrived, and never will.
	}
	if fate != control.Applied {
		r.again = now.Add(signalAgain)
	}
	f.wantLook(r)
}

// Awaits implements [plan.Executor].
func (f *executor) Awaits() bool { return f.hold != plan.HoldNone && f.resume != clocksync.MaxInstant }

// isWaiting reports whether nothing is to be started yet after a restart: a member may run a
// block that the record lacks.
func (f *executor) isWaiting() bool {
	return f.hold != plan.HoldNone && f.awaited > 0 || f.hold == plan.HoldSilence && f.resume != clocksync.MaxInstant
}

// Take implements [plan.Executor].
func (f *executor) Take(from string, b *plan.Body, out *plan.ExecutorOutput) (isNew bool, refused string) {
	r := f.runs[b.Run]
	switch {
	case b.Program != f.id:
		return false, "it is of another execution of the program"
	case r == nil && f.reportTwice(from, b.Run, "it has come to a result, which is not taken", out):
		return false, fmt.Sprintf("run %d on %q was given up: it may have run twice", b.Run, from)
	case r == nil && b.Run > 0 && b.Run <= f.numbers:
		return false, fmt.Sprintf("run %d has ended", b.Run)
	case r == nil || r.on != from:
		return false, fmt.Sprintf("run %d was not started on %q", b.Run, from)
	case r.body != nil:
		return false, ""
	}
	kept := *b
	r.body = &kept
	f.log.noteRecord(&record{Run: b.Run, Body: &kept})
	return true, ""
}

// Cancel implements [plan.Executor].
func (f *executor) Cancel(now clocksync.Instant, reason string, out *plan.ExecutorOutput) {
	if f.run.Finished() {
		return
	}
	p := pass{executor: f, now: now, out: out}
	p.beginPass()
	p.stepInterpreter(&program.Input{Kind: program.InCancel, Reason: reason})
}

// Restart implements [plan.Executor]. The end of a program that has ended is reported once
// more. What continues is found again in the states of the members that come back; those that
// do not are lost after the time of silence. The journal may lack what came after its last
// line: runs that were started then have numbers that are given to no other one. Until every
// processor has said that it obeys the new term, or is lost, nothing is started: any of them
// may run what the journal has not, or has elsewhere.
func (f *executor) Restart(now clocksync.Instant, formed bool, begun control.Decision, runs uint64, hold plan.Hold, was clocksync.Instant, out *plan.ExecutorOutput) {
	if f.finish != nil {
		out.Events = append(out.Events, *f.finish)
	}
	if was != now { // No deadline knows how long nobody led.
		f.behind += now.Sub(was)
		f.log.noteRecord(&record{Behind: f.behind})
		for name := range f.held {
			f.held[name] = now
		}
	}
	f.Epoch(now, begun, out)
	f.moved, f.attention = f.moved[:0], f.attention[:0]
	f.resume, f.formed = now, f.formed || formed
	if runs > 0 {
		if f.numbers >= runs {
			runs = f.numbers + 1<<32
		}
		f.numbers, f.before, f.overdue = runs, runs, false
		f.log.noteRecord(&record{Numbers: runs})
	}
	for _, p := range f.processors {
		p.awaited = true
	}
	f.awaited, f.hold = len(f.processors), hold
	for _, number := range slices.Sorted(maps.Keys(f.runs)) {
		r := f.runs[number]
		r.signal, r.arrived, r.left, r.attended, r.again = false, false, false, false, clocksync.MinInstant
		for i := range r.sent { // The last one may have arrived: it is sent once more, as the same.
			r.sent[i] = max(r.sent[i], 1) - 1
		}
		f.wantLook(r)
	}
}

// ID implements [plan.Executor].
func (f *executor) ID() uint64 { return f.id }

// Under implements [plan.Executor].
func (f *executor) Under(predicate, member string) bool {
	p := f.processors[member]
	return p != nil && p.run != nil && f.program.Under(p.run.construct, f.level+"."+predicate)
}

// Run implements [plan.Executor].
func (f *executor) Run(processor string, id, number uint64) (input string, found, handed bool) {
	r := f.runs[number]
	if f.id != id || r == nil || r.on != processor {
		return "", false, false
	}
	return r.input, true, r.body != nil
}

// Wake implements [plan.Executor].
func (f *executor) Wake(now clocksync.Instant) clocksync.Instant {
	wake := f.wake
	for _, until := range f.held {
		wake = min(wake, until)
	}
	for _, r := range f.attention {
		if r.again > now {
			wake = min(wake, r.again)
		}
	}
	if wake <= now {
		wake = now.Add(noStateAgain) // There is no current global state.
	}
	return wake
}
