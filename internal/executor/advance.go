package executor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/scgs"
)

const (
	signalAgain  = 250 * time.Millisecond // a signal that had no effect is sent again
	noStateAgain = 10 * time.Millisecond  // the due actions are looked at again while there is no current global state
	showWithin   = 5 * time.Second        // a processor that has taken a start shows the run, or it has failed
)

// pass is what one call of the machine needs. The decision of a pass is numbered
// when it is needed first.
type pass struct {
	*executor
	now      clocksync.Instant
	world    plan.World // nil but on a current global state
	out      *plan.ExecutorOutput
	decision control.Decision
}

// Advance implements [plan.Executor].
func (f *executor) Advance(now clocksync.Instant, w plan.World, out *plan.ExecutorOutput) {
	if f.run.Finished() {
		f.verdicts, f.moved, f.attention, f.wake = f.verdicts[:0], f.moved[:0], nil, clocksync.MaxInstant
		return
	}
	p := pass{executor: f, now: now, world: w, out: out}
	p.beginPass()
	// The interpreter may fire no verdict of its own: the list is as long as it is.
	for _, v := range f.verdicts {
		if v.decision.Number == 0 {
			v.decision = p.decide()
		}
		p.stepInterpreter(&program.Input{Kind: program.InVerdict, Predicate: v.predicate, Truth: v.truth, Decision: v.decision})
	}
	f.verdicts = f.verdicts[:0]
	f.release(now)
	for _, m := range f.moved {
		if shown, ok := w.Processor(m.name); ok && (m.incarnation == 0 || m.incarnation == shown.Incarnation) {
			p.observe(m.name, &shown)
		}
	}
	f.moved = f.moved[:0]
	if f.wake <= now {
		p.stepInterpreter(&program.Input{Kind: program.InTick})
	}
	p.attend()
}

func (p *pass) beginPass() {
	if !p.began {
		p.began = true
		p.stepInterpreter(&program.Input{Kind: program.InBegin})
	}
}

// decide is the decision of this pass.
func (p *pass) decide() control.Decision {
	if p.decision.Number == 0 {
		p.decision = p.world.Decision()
	}
	return p.decision
}

// release looks again at the processors that were held for long enough.
func (f *executor) release(now clocksync.Instant) {
	for _, name := range slices.Sorted(maps.Keys(f.held)) {
		if f.held[name] > now {
			continue
		}
		delete(f.held, name)
		f.moved = append(f.moved, moved{name: name})
	}
}

// shown is what the state of a processor says.
type shown struct {
	phase        string
	program, run uint64
	block        string
}

func shownIn(m *plan.Processor) shown {
	own := m.Row[len(m.Row)-wire.ProcessorFields:]
	return shown{
		own[0].Text(), uint64(own[2].Int()), uint64(own[3].Int()), own[1].Text(), //nolint:gosec // Ours are not negative, and others match none.
	}
}

// observe takes what a global state shows of a processor.
func (p *pass) observe(name string, m *plan.Processor) {
	s := shownIn(m)
	q := p.processors[name]
	if q == nil && p.Awaits() && !m.Obeys {
		q = &processor{name: name, awaited: true, stranger: true}
		p.processors[name] = q
		p.awaited++
	}
	if q != nil && q.awaited {
		if !m.Obeys && p.hold != plan.HoldNone {
			return // Earlier messages may yet come to it.
		}
		q.awaited = false
		p.awaited--
		if q.stranger {
			q = nil
		} else if q.isGone(m.Incarnation, q.run != nil && s.program == p.id && s.run == q.run.number) {
			why := "its process has ended"
			if q.incarnation == m.Incarnation {
				why = "its processor has gone on to another run, which the journal lacks; it may run twice"
			}
			p.loseProcessor(q, why)
			q = nil
		} else if q.incarnation != m.Incarnation {
			q.incarnation = m.Incarnation
			p.log.noteRecord(&record{Processor: name, Incarnation: m.Incarnation})
		}
	}
	if _, held := p.held[name]; held {
		return
	}
	if q == nil {
		p.enroll(name, m)
	}
	r := p.runs[s.run]
	if s.program != p.id || r == nil || r.on != name {
		known := s.program != p.id || p.reportTwice(name, s.run, "its processor has gone on with it", p.out)
		if s.phase == wire.PhaseRunning {
			if p.stray(name, m, s); !known {
				p.giveUp(&blockRun{number: s.run, block: s.block, on: name, construct: -1, seen: true})
				p.reportTwice(name, s.run, "the record has no such run", p.out)
			}
		}
		return
	}
	if !r.seen {
		r.seen, r.again = true, clocksync.MinInstant // It need not be waited for any more.
	}
	switch s.phase {
	case wire.PhaseRunning:
		if r.cancel {
			p.wantLook(r)
		}
	case wire.PhaseCanceled:
		p.endRun(r, &program.Input{Kind: program.InFailed, Block: r.id, Reason: "it was cancelled"})
	case wire.PhaseDone, wire.PhaseFailed:
		p.come(r)
	}
}

// come ends a run that a global state shows to have ended, once its body is there.
func (p *pass) come(r *blockRun) {
	if r.body == nil {
		return
	}
	in := program.Input{Kind: program.InDone, Block: r.id, Result: r.body.Text}
	if r.body.Kind == wire.BodyFailure {
		in = program.Input{Kind: program.InFailed, Block: r.id, Reason: r.body.Text}
	}
	p.endRun(r, &in)
}

// endRun forgets a run and tells the interpreter how it has ended.
func (p *pass) endRun(r *blockRun, in *program.Input) {
	if in.Kind == program.InDone && in.Decision.Number == 0 {
		in.Decision = p.decide()
	}
	delete(p.runs, r.number)
	delete(p.byID, r.id)
	if q := p.processors[r.on]; q != nil && q.run == r {
		q.run = nil
	}
	for _, n := range p.countsOf(r.construct) {
		switch {
		case in.Kind == program.InDone:
			n.Done++
		case r.cancel:
			n.Canceled++
		default:
			n.Failed++
		}
	}
	if in.Kind == program.InDone {
		p.noteTime(r, p.now.Add(-p.behind).Sub(r.placed))
	}
	at := len(p.out.Events)
	p.stepInterpreter(in)
	if in.Kind == program.InFailed && !r.cancel && !slices.ContainsFunc(p.out.Events[at:], func(e monitor.ProgramEvent) bool {
		return e.Kind == monitor.ProgramEnd && e.Block == r.id
	}) {
		// Another attempt or an else follows, and nothing else would tell why.
		e := p.event(&program.Action{Construct: r.construct, Replicas: r.replicas, Block: r.id, Reason: in.Reason}, monitor.ProgramFail, r)
		p.out.Events = slices.Insert(p.out.Events, at, e)
	}
}

// enroll makes a member a node of the interpreter.
func (p *pass) enroll(name string, m *plan.Processor) {
	own := m.Row[len(m.Row)-wire.ProcessorFields:]
	of := own[4].Text()
	p.processors[name] = &processor{name: name, node: of, incarnation: m.Incarnation}
	node := program.Node{Name: name, Of: of, Cores: max(1, int(own[6].Int())), Labels: texts(own[5]), Alone: true, Threaded: texts(own[7])}
	p.stepInterpreter(&program.Input{Kind: program.InJoined, Node: node})
}

func texts(list scgs.Value) []string {
	words := make([]string, list.Len())
	for i := range words {
		words[i] = list.At(i).Text()
	}
	return words
}

// stray cancels a block that nobody waits for any more: of a program that was here
// before, or on a processor that was given up and has come back.
func (p *pass) stray(name string, m *plan.Processor, s shown) {
	p.send(name, m, &control.Signal{
		Name: wire.CancelSignal, Kind: control.Cancel, Region: s.block,
		Data: []control.Datum{{Name: wire.DatumRun, Value: scgs.IntValue(0)}},
	})
}

// giveUp keeps a run that nobody waits for any more and that may continue, so that this is
// reported when it shows.
func (f *executor) giveUp(r *blockRun) {
	if r.cancel || !r.started && !r.seen {
		return
	}
	if len(f.gaveUp) == maxGivenUp {
		f.gaveUp = slices.Delete(f.gaveUp, 0, 1)
	}
	kept := *r
	kept.input, kept.body = "", nil
	f.gaveUp = append(f.gaveUp, &kept)
}

// reportTwice reports whether a run on a processor was given up, and tells it once.
func (f *executor) reportTwice(on string, run uint64, why string, out *plan.ExecutorOutput) bool {
	i := slices.IndexFunc(f.gaveUp, func(r *blockRun) bool { return r.number == run && r.on == on })
	if i < 0 {
		return false
	}
	r := f.gaveUp[i]
	if r.told {
		return true
	}
	r.told = true
	e := f.event(&program.Action{Construct: r.construct, Replicas: r.replicas, Block: r.id, Reason: why}, monitor.ProgramTwice, r)
	if f.total.Twice++; r.construct < 0 {
		e.Construct, e.Name = program.KindDo.String(), r.block
	} else {
		f.countsOf(r.construct)[0].Twice++
	}
	out.Events = append(out.Events, e)
	return true
}

// loseProcessor takes a processor from the interpreter, with the runs there.
func (p *pass) loseProcessor(q *processor, why string) {
	delete(p.processors, q.name)
	if r := q.run; r != nil {
		for _, n := range p.countsOf(r.construct) {
			n.Lost++
		}
		p.giveUp(r)
		delete(p.runs, r.number)
		delete(p.byID, r.id)
		p.out.Events = append(p.out.Events, p.event(&program.Action{Construct: r.construct, Replicas: r.replicas, Block: r.id, Reason: why}, monitor.ProgramLost, r))
	}
	p.stepInterpreter(&program.Input{Kind: program.InLeft, Node: program.Node{Name: q.name}})
}

// stepInterpreter steps the interpreter and does what it asks for. A program that has ended
// gets no more inputs.
func (p *pass) stepInterpreter(in *program.Input) {
	if p.run.Finished() {
		return
	}
	p.run.Step(p.now.Add(-p.behind), in, &p.executor.out)
	if p.wake = p.executor.out.Wake; p.wake != clocksync.MaxInstant {
		p.wake = p.wake.Add(p.behind)
	}
	p.noteInput(in, p.executor.out.Actions)
	for i := range p.executor.out.Actions {
		p.act(&p.executor.out.Actions[i])
	}
}

func (p *pass) act(a *program.Action) {
	var kind monitor.ProgramKind
	r := p.byID[a.Block]
	switch a.Kind {
	case program.ActStart:
		kind = monitor.ProgramStart
		r = p.place(a)
	case program.ActCancel:
		kind = monitor.ProgramCancel
		if r != nil {
			r.cancel = true
			p.wantLook(r)
		}
	case program.ActPass:
		kind = monitor.ProgramPass
	case program.ActSignal:
		if kind = monitor.ProgramSignal; r == nil || p.world == nil || !p.world.Pending(a.Decision, r.on) {
			return // Its signals went to others.
		}
	case program.ActEnd:
		kind = monitor.ProgramEnd
	case program.ActFinish:
		kind = monitor.ProgramFinish
	case program.ActRefuse:
		if p.run.Finished() {
			return // A deadline has ended it in this step.
		}
		kind = monitor.ProgramRefuse
	}
	e := p.event(a, kind, r)
	if kind == monitor.ProgramFinish {
		p.finish = &e
	}
	p.out.Events = append(p.out.Events, e)
}

// place puts another attempt at a block on an idle processor.
func (p *pass) place(a *program.Action) *blockRun {
	p.numbers++
	r := &blockRun{
		number: p.numbers, id: a.Block, construct: a.Construct, on: a.Node, input: cmp.Or(strings.Clone(a.Input), "null"),
		replicas: slices.Clone(a.Replicas), placed: p.now.Add(-p.behind),
		block: p.program.Info(a.Construct).Block.Name,
	}
	p.runs[r.number], p.byID[r.id] = r, r
	for _, n := range p.countsOf(a.Construct) {
		n.Starts++
	}
	q := p.processors[a.Node]
	if q == nil || q.run != nil {
		panic(fmt.Sprintf("executor: block %v is started on %q, which is no processor, or not idle: %+v", a.Block, a.Node, q))
	}
	q.run = r
	p.wantLook(r)
	return r
}

// event is the observers' record of an action.
func (f *executor) event(a *program.Action, kind monitor.ProgramKind, r *blockRun) monitor.ProgramEvent {
	e := monitor.ProgramEvent{
		Kind: kind, Replicas: slices.Clone(a.Replicas), Block: a.Block, Processor: a.Node, Predicate: a.Predicate, Branch: a.Branch, Iteration: a.Iteration,
		Decision: a.Decision, Outcome: a.Outcome, Result: a.Result, Reason: a.Reason,
	}
	if kind != monitor.ProgramRefuse && a.Construct >= 0 {
		info := f.program.Info(a.Construct)
		e.Path, e.Construct, e.Name = info.Path, info.Kind.String(), info.Name
	}
	if r != nil {
		e.Run, e.Processor = r.number, r.on
	}
	return e
}

// wantLook has a run looked at: it may need a signal.
func (f *executor) wantLook(r *blockRun) {
	if !r.attended {
		r.attended = true
		f.attention = append(f.attention, r)
	}
}

// attend sends what the runs need, as far as the current global state allows.
func (p *pass) attend() {
	list := p.attention
	p.attention = nil
	for _, r := range list {
		r.attended = false
		if p.runs[r.number] == r && !p.serve(r) {
			p.wantLook(r)
		}
	}
}

// serve sends a run's signal. It is false if the run is to be looked at again.
func (p *pass) serve(r *blockRun) bool {
	switch {
	case r.signal:
		return true // Its fate brings it back.
	case r.cancel && !r.started:
		p.endRun(r, &program.Input{Kind: program.InFailed, Block: r.id, Reason: "it was cancelled before it began"})
		return true
	case r.seen && !r.cancel && !p.late(r), r.left:
		return true // A global state will show it.
	case r.arrived && !r.seen && p.now < r.since.Add(showWithin):
		r.again = r.since.Add(showWithin) // One will show it sooner.
		return false
	}
	m, ok := p.world.Processor(r.on)
	if !ok || p.now < r.again {
		return false
	}
	s := shownIn(&m)
	mine := s.program == p.id && s.run == r.number
	switch {
	case r.arrived && !r.seen && !mine:
		if !m.Newest || m.Heard < r.since.Add(showWithin/2) {
			r.again = p.now.Add(signalAgain) // What it shows may be from before the start.
			return false
		}
		p.giveUp(r)
		p.endRun(r, &program.Input{Kind: program.InFailed, Block: r.id, Reason: hidden(r)})
		return true
	case r.arrived && !r.seen:
		return true // It is seen in this state.
	case mine && s.phase != wire.PhaseRunning:
		if !p.late(r) {
			return true // It has ended.
		}
		p.again(r, "what it has come to was handed over before the restart, and the journal lacks it; it may run twice")
		return p.serve(r)
	case mine && !r.cancel:
		return true
	case mine:
		r.signal = p.sendOf(r, &m, &control.Signal{
			Name: wire.CancelSignal, Kind: control.Cancel, Region: r.block, Data: p.data(r),
		})
	case s.phase == wire.PhaseRunning:
		return false // Of another one, which has to end.
	case s.program == p.id && s.run > r.number && r.number <= p.before:
		p.again(r, "the journal lacks what was started on the processor after it; it may run twice")
		return p.serve(r)
	case p.isWaiting():
		return false // A member may have it, or another attempt at it.
	default:
		data := append(p.data(r), control.Datum{Name: wire.DatumBlock, Value: scgs.StringValue(r.block)},
			control.Datum{Name: wire.DatumSize, Value: scgs.IntValue(int64(len(r.input)))})
		if len(r.replicas) > 0 {
			data = append(data, control.Datum{Name: wire.DatumReplica, Value: scgs.StringValue(joinDotted(r.replicas))})
		}
		if len(r.input) <= wire.ShortInput {
			data = append(data, control.Datum{Name: wire.DatumInput, Value: scgs.StringValue(r.input)})
		}
		r.signal = p.sendOf(r, &m, &control.Signal{Name: wire.StartSignal, Kind: control.Activate, Region: wire.ProcessorRegion, Data: data})
		if r.signal && !r.started {
			r.started = true
			p.log.noteRecord(&record{Run: r.number})
		}
	}
	if !r.signal {
		r.again = p.now.Add(signalAgain)
	}
	return r.signal
}

// hidden says why a run has failed that its processor has taken and does not show.
func hidden(r *blockRun) string {
	if r.body != nil && r.body.Kind == wire.BodyFailure {
		return r.body.Text
	}
	return fmt.Sprintf("processor %q has taken the start, and does not show the run after %v; it may run twice", r.on, showWithin)
}

// late reports whether a run of an earlier life has come to nothing in the time in which what
// is under way comes after a restart.
func (f *executor) late(r *blockRun) bool { return f.overdue && r.number <= f.before && r.body == nil }

// again makes a run of an earlier life another one, which the processor will take for new,
// in the same place.
func (p *pass) again(r *blockRun, why string) {
	p.out.Events = append(p.out.Events, p.event(&program.Action{Construct: r.construct, Replicas: r.replicas, Block: r.id, Reason: why}, monitor.ProgramFail, r))
	p.renumberRun(r)
}

func (f *executor) renumberRun(r *blockRun) {
	f.giveUp(r)
	delete(f.runs, r.number)
	f.numbers++
	f.log.noteRecord(&record{Run: r.number, Again: f.numbers})
	r.number = f.numbers
	r.seen, r.started, r.arrived, r.left, r.body, r.sent = false, false, false, false, nil, [2]uint32{}
	f.runs[r.number] = r
}

// joinDotted joins numbers by dots. Nested deeper than a signal can hold, they are left
// out from the outside.
func joinDotted(numbers []int32) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.Itoa(int(n))
	}
	text := strings.Join(words, ".")
	for len(text) > scgs.MaxTextBytes {
		_, text, _ = strings.Cut(text, ".")
	}
	return text
}

func (f *executor) data(r *blockRun) []control.Datum {
	return []control.Datum{
		{Name: wire.DatumProgram, Value: scgs.IntValue(int64(f.id))}, //nolint:gosec // A time since 1970.
		{Name: wire.DatumRun, Value: scgs.IntValue(int64(r.number))}, //nolint:gosec // Counted from 1.
	}
}

// sendOf sends a signal of a run, whose cause is the step: the execution of the program, the run, which
// is one attempt at a block, and the how-manieth start or cancellation of it.
func (p *pass) sendOf(r *blockRun, m *plan.Processor, s *control.Signal) bool {
	n := &r.sent[s.Kind-control.Activate]
	s.Cause = control.Cause{Source: wire.Weight(wire.ProgramSignals+"\n"+s.Name, p.id), Witness: r.number, Firing: *n + 1}
	if !p.send(r.on, m, s) {
		return false
	}
	*n++
	return true
}

// send sends a signal of this pass to a processor, if that is in the region.
func (p *pass) send(name string, m *plan.Processor, s *control.Signal) bool {
	if s.Entry = m.Entry(s.Region); s.Entry == 0 {
		return false
	}
	s.Decision, s.Predicate, s.Target, s.TTL = p.decide(), wire.ProgramSignals, name, config.DefaultExpiry
	p.out.Signals = append(p.out.Signals, s)
	return true
}
