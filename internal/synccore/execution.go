package synccore

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
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// Body is what a processor hands over of a run that has ended.
type Body struct {
	Program uint64        `json:"program"`
	Run     uint64        `json:"run"`
	Kind    wire.BodyKind `json:"kind"`
	Text    string        `json:"text"`
}

// execution carries out a program: it lets the interpreter see what global states show
// of processors and predicates, and makes signals of what that asks for. Nothing
// is started, cancelled or passed but by a decision on a global state in force.
type execution struct {
	id         uint64 // of this execution: the term in which it began
	run        *program.Run
	out        program.Output
	began      bool
	wake       clocksync.Instant
	processors map[string]*processor
	held       map[string]clocksync.Instant // processors that get nothing before that
	runs       map[uint64]*blockRun         // that have not ended
	byID       map[program.ID]*blockRun
	numbers    uint64
	verdicts   []heldVerdict
	touched    []*member   // whose state in force is to be looked at
	attention  []*blockRun // that may need a signal
	decision   control.Decision
	finish     *monitor.ProgramEvent      // the end of the program
	tallies    map[int]*monitor.RunCounts // of the blocks by construct
	total      monitor.RunCounts
	resume     clocksync.Instant // since when processors are awaited after a restart, MaxInstant if none is
	formed     bool              // there was an epoch before the restart
}

// processor is a member as the interpreter knows it.
type processor struct {
	name, node  string
	incarnation uint64
	run         *blockRun // that was placed there
	awaited     bool      // it has not been seen since a restart
}

// gone reports whether the process that had the run of the processor is no more, as
// what comes back after a restart shows. A start that was sent and never seen may
// have reached the process from before.
func (p *processor) gone(m *member, shows bool) bool {
	return p.run != nil && !shows && (p.run.seen || p.run.started && p.incarnation != m.incarnation)
}

// heldVerdict is a verdict that waits for the interpreter.
type heldVerdict struct {
	predicate string
	truth     predicates.Truth
	decision  control.Decision // zero: of the pass
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
	seen      bool // a global state has shown it
	cancel    bool
	started   bool              // a start was sent and may have arrived
	arrived   bool              // it has
	left      bool              // a cancellation has had its effect
	signal    bool              // one is under way
	again     clocksync.Instant // no signal before that
	body      *Body
	attended  bool // it is in attention
}

func newExecution(plan *program.Compiled, id uint64) *execution {
	return &execution{
		id: id, run: program.NewRun(plan), wake: clocksync.MaxInstant, resume: clocksync.MaxInstant,
		processors: map[string]*processor{}, held: map[string]clocksync.Instant{}, runs: map[uint64]*blockRun{}, byID: map[program.ID]*blockRun{},
		tallies: map[int]*monitor.RunCounts{},
	}
}

// noteVerdict keeps a verdict for the program, if that reads the predicate.
func (c *Core) noteVerdict(r *plan.Rule, v *monitor.Verdict) {
	if c.exec == nil || !r.Read {
		return
	}
	truth := v.Truth
	if truth == predicates.True && r.Hold > 0 && !v.Fired {
		truth = predicates.Unknown // It has not held for long enough.
	}
	c.exec.verdicts = append(c.exec.verdicts, heldVerdict{c.plan.Name + "." + r.Name, truth, v.Decision})
}

// noteChanged keeps the members whose states a global state has changed.
func (c *Core) noteChanged() {
	f := c.exec
	if f == nil {
		return
	}
	for _, ch := range c.ev.Changed {
		if m := c.byIndex[ch.Member]; m != c.process && !ch.Unknown {
			f.touched = append(f.touched, m)
		}
	}
}

// carryOn lets the program go on, if a global state is in force to decide on.
func (c *Core) carryOn(out *Output) {
	f := c.exec
	if f == nil || c.opt.Local {
		return
	}
	if !c.tuple || c.paused || len(c.removing) > 0 {
		return
	}
	f.decision = control.Decision{}
	if f.run.Finished() {
		f.verdicts, f.touched, f.attention, f.wake = f.verdicts[:0], f.touched[:0], nil, clocksync.MaxInstant
		return
	}
	if !f.began {
		f.began = true
		c.interpret(&program.Input{Kind: program.InBegin}, out)
	}
	// The interpreter may fire no verdict of its own: the list is as long as it is.
	for _, v := range f.verdicts {
		if v.decision.Number == 0 {
			v.decision = c.decide()
		}
		c.interpret(&program.Input{Kind: program.InVerdict, Predicate: v.predicate, Truth: v.truth, Decision: v.decision}, out)
	}
	f.verdicts = f.verdicts[:0]
	c.takeUp()
	for _, m := range f.touched {
		if m.index != noIndex && !m.gone {
			c.observe(m, out)
		}
	}
	f.touched = f.touched[:0]
	if f.wake <= c.now {
		c.interpret(&program.Input{Kind: program.InTick}, out)
	}
	c.attend(out)
}

// decide is the decision of this pass.
func (c *Core) decide() control.Decision {
	if f := c.exec; f.decision.Number == 0 {
		f.decision = c.decision()
	}
	return c.exec.decision
}

// shown is what the state in force of a processor says.
type shown struct {
	phase        string
	program, run uint64
	block        string
}

func (c *Core) shown(m *member) shown {
	row := c.rows.get(m.state.Ref)
	own := row[len(row)-wire.ProcessorFields:]
	return shown{
		own[0].Text(), uint64(own[2].Int()), uint64(own[3].Int()), own[1].Text(), //nolint:gosec // Ours are not negative, and others match none.
	}
}

// observe takes what a global state shows of a processor.
func (c *Core) observe(m *member, out *Output) {
	f := c.exec
	if m.state.Unknown || m.state.Seq == 0 {
		return
	}
	s := c.shown(m)
	p := f.processors[m.name]
	if p != nil && p.awaited {
		p.awaited = false
		if p.gone(m, p.run != nil && s.program == f.id && s.run == p.run.number) {
			c.lost(p, "its process has ended", out)
			p = nil
		} else {
			p.incarnation = m.incarnation
		}
	}
	if _, held := f.held[m.name]; held {
		return
	}
	if p == nil {
		c.enroll(m, out)
	}
	r := f.runs[s.run]
	if s.program != f.id || r == nil || r.on != m.name {
		if s.phase == wire.PhaseRunning {
			c.stray(m, s, out)
		}
		return
	}
	r.seen = true
	switch s.phase {
	case wire.PhaseRunning:
		if r.cancel {
			c.want(r)
		}
	case wire.PhaseCanceled:
		c.ended(r, &program.Input{Kind: program.InFailed, Block: r.id, Reason: "it was cancelled"}, out)
	case wire.PhaseDone, wire.PhaseFailed:
		c.come(r, out)
	}
}

// come ends a run that a global state shows to have ended, once its body is there.
func (c *Core) come(r *blockRun, out *Output) {
	if r.body == nil {
		return
	}
	in := program.Input{Kind: program.InDone, Block: r.id, Result: r.body.Text}
	if r.body.Kind == wire.BodyFailure {
		in = program.Input{Kind: program.InFailed, Block: r.id, Reason: r.body.Text}
	}
	c.ended(r, &in, out)
}

// ended forgets a run and tells the interpreter how it has ended.
func (c *Core) ended(r *blockRun, in *program.Input, out *Output) {
	f := c.exec
	if in.Kind == program.InDone {
		in.Decision = c.decide()
	}
	delete(f.runs, r.number)
	delete(f.byID, r.id)
	if p := f.processors[r.on]; p != nil && p.run == r {
		p.run = nil
	}
	for _, n := range f.counts(r.construct) {
		switch {
		case in.Kind == program.InDone:
			n.Done++
		case r.cancel:
			n.Canceled++
		default:
			n.Failed++
		}
	}
	at := len(out.Program)
	c.interpret(in, out)
	if in.Kind == program.InFailed && !r.cancel && !slices.ContainsFunc(out.Program[at:], func(e monitor.ProgramEvent) bool {
		return e.Kind == monitor.ProgramEnd && e.Block == r.id
	}) {
		// Another attempt or an else follows, and nothing else would tell why.
		e := c.event(&program.Action{Construct: r.construct, Replicas: r.replicas, Block: r.id, Reason: in.Reason}, monitor.ProgramFail, r)
		out.Program = slices.Insert(out.Program, at, e)
	}
}

// enroll makes a member a node of the interpreter.
func (c *Core) enroll(m *member, out *Output) {
	row := c.rows.get(m.state.Ref)
	own := row[len(row)-wire.ProcessorFields:]
	of := own[4].Text()
	c.exec.processors[m.name] = &processor{name: m.name, node: of, incarnation: m.incarnation}
	node := program.Node{Name: m.name, Of: of, Cores: max(1, int(own[6].Int())), Labels: texts(own[5]), Alone: true, Threaded: texts(own[7])}
	c.interpret(&program.Input{Kind: program.InJoined, Node: node}, out)
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
func (c *Core) stray(m *member, s shown, out *Output) {
	c.signal(m, &control.Signal{
		Name: wire.CancelSignal, Kind: control.Cancel, Region: s.block,
		Data: []control.Datum{{Name: wire.DatumRun, Value: scgs.IntValue(0)}},
	}, out)
}

// lost takes a processor from the interpreter, with what runs there.
func (c *Core) lost(p *processor, why string, out *Output) {
	f := c.exec
	delete(f.processors, p.name)
	if r := p.run; r != nil {
		for _, n := range f.counts(r.construct) {
			n.Lost++
		}
		delete(f.runs, r.number)
		delete(f.byID, r.id)
		out.Program = append(out.Program, c.event(&program.Action{Construct: r.construct, Replicas: r.replicas, Block: r.id, Reason: why}, monitor.ProgramLost, r))
	}
	c.interpret(&program.Input{Kind: program.InLeft, Node: program.Node{Name: p.name}}, out)
}

// execEpoch makes the verdicts of the epoch before void, those that wait among them.
func (c *Core) execEpoch(out *Output) {
	f := c.exec
	if f == nil {
		return
	}
	f.verdicts = f.verdicts[:0]
	begun := control.Decision{Synchronizer: c.plan.Name, Term: c.opt.Term, Epoch: c.epoch}
	c.interpret(&program.Input{Kind: program.InEpoch, Decision: begun}, out)
}

// execFresh makes the verdicts on predicates void that another configuration has anew.
func (c *Core) execFresh(fresh []int, out *Output) {
	if c.exec == nil {
		return
	}
	for _, i := range fresh {
		if r := c.plan.Rules[i]; r.Read {
			name := c.plan.Name + "." + r.Name
			c.exec.verdicts = slices.DeleteFunc(c.exec.verdicts, func(v heldVerdict) bool { return v.predicate == name })
			c.interpret(&program.Input{Kind: program.InVerdict, Predicate: name, Truth: predicates.Unknown, Decision: c.decision()}, out)
		}
	}
}

// execLeft tells the program of the members that an epoch is without.
func (c *Core) execLeft(dropped []monitor.Dropped, out *Output) {
	if c.exec == nil {
		return
	}
	var lost []*processor
	why := map[string]string{}
	for _, d := range dropped {
		delete(c.exec.held, d.Name)
		if p := c.exec.processors[d.Name]; p != nil && !p.awaited {
			lost = append(lost, p)
			why[d.Name] = d.Reason
		}
	}
	c.holdBack(lost, out)
	for _, p := range idleFirst(lost) {
		c.lost(p, why[p.name], out)
	}
}

// holdBack gives nothing to the idle processors of nodes that have lost others: a node ends
// as a whole, and that is told of one processor after the other. Those that are still
// here after the time of silence are taken up again.
func (c *Core) holdBack(lost []*processor, out *Output) {
	f := c.exec
	for _, name := range slices.Sorted(maps.Keys(f.processors)) {
		p := f.processors[name]
		if p.run != nil || p.awaited || slices.Contains(lost, p) || !slices.ContainsFunc(lost, func(l *processor) bool { return l.node == p.node }) {
			continue
		}
		delete(f.processors, name)
		f.held[name] = c.now.Add(c.plan.Silence.After)
		c.interpret(&program.Input{Kind: program.InLeft, Node: program.Node{Name: name}}, out)
	}
}

// takeUp takes up again the processors that were held for long enough.
func (c *Core) takeUp() {
	f := c.exec
	for _, name := range slices.Sorted(maps.Keys(f.held)) {
		if f.held[name] > c.now {
			continue
		}
		delete(f.held, name)
		if m := c.members[name]; m != nil {
			f.touched = append(f.touched, m)
		}
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

// awaitOver gives up processors that did not come back after a restart.
func (c *Core) awaitOver(out *Output) {
	f := c.exec
	if f == nil || f.resume == clocksync.MaxInstant || c.now.Sub(f.resume) <= c.plan.Silence.After {
		return
	}
	f.resume = clocksync.MaxInstant
	if f.formed && !c.begun {
		// As many as were awaited at first were there before: from now on those who
		// are there are enough, if they are for an epoch after the first.
		c.begun, c.paused, c.changed = true, true, true
	}
	var late []*processor
	for _, p := range f.processors {
		if p.awaited {
			late = append(late, p)
		}
	}
	for _, p := range idleFirst(late) {
		c.lost(p, "it did not come back after the restart", out)
	}
}

// interpret steps the interpreter and does what it asks for. A program that has ended
// is told nothing more.
func (c *Core) interpret(in *program.Input, out *Output) {
	f := c.exec
	if f.run.Finished() {
		return
	}
	f.run.Step(c.now, in, &f.out)
	f.wake = f.out.Wake
	for i := range f.out.Actions {
		c.act(&f.out.Actions[i], out)
	}
}

func (c *Core) act(a *program.Action, out *Output) {
	f := c.exec
	var kind monitor.ProgramKind
	r := f.byID[a.Block]
	switch a.Kind {
	case program.ActStart:
		kind = monitor.ProgramStart
		f.numbers++
		r = &blockRun{
			number: f.numbers, id: a.Block, construct: a.Construct, on: a.Node, input: cmp.Or(strings.Clone(a.Input), "null"),
			replicas: slices.Clone(a.Replicas),
			block:    c.plan.Program.Info(a.Construct).Block.Name,
		}
		f.runs[r.number], f.byID[r.id] = r, r
		for _, n := range f.counts(a.Construct) {
			n.Starts++
		}
		p := f.processors[a.Node]
		if p == nil || p.run != nil {
			panic(fmt.Sprintf("synccore: block %v is started on %q, which is no processor, or not idle: %+v", a.Block, a.Node, p))
		}
		p.run = r
		c.want(r)
	case program.ActCancel:
		kind = monitor.ProgramCancel
		if r != nil {
			r.cancel = true
			c.want(r)
		}
	case program.ActPass:
		kind = monitor.ProgramPass
	case program.ActSignal:
		if kind = monitor.ProgramSignal; !c.acted(a.Decision, r) {
			return // Its signals went to others.
		}
	case program.ActEnd:
		kind = monitor.ProgramEnd
	case program.ActFinish:
		kind = monitor.ProgramFinish
	case program.ActRefuse:
		if f.run.Finished() {
			return // A deadline has ended it in this step.
		}
		kind = monitor.ProgramRefuse
	}
	e := c.event(a, kind, r)
	if kind == monitor.ProgramFinish {
		f.finish = &e
	}
	out.Program = append(out.Program, e)
}

// event is what observers are told of an action.
func (c *Core) event(a *program.Action, kind monitor.ProgramKind, r *blockRun) monitor.ProgramEvent {
	e := monitor.ProgramEvent{
		Kind: kind, Replicas: slices.Clone(a.Replicas), Block: a.Block, Processor: a.Node, Predicate: a.Predicate, Branch: a.Branch,
		Decision: a.Decision, Outcome: a.Outcome, Result: a.Result, Reason: a.Reason,
	}
	if kind != monitor.ProgramRefuse && a.Construct >= 0 {
		info := c.plan.Program.Info(a.Construct)
		e.Path, e.Construct, e.Name = info.Path, info.Kind.String(), info.Name
	}
	if r != nil {
		e.Run, e.Processor = r.number, r.on
	}
	return e
}

// want has a run looked at: it may need a signal.
func (c *Core) want(r *blockRun) {
	if !r.attended {
		r.attended = true
		c.exec.attention = append(c.exec.attention, r)
	}
}

// attend sends what the runs need, as far as the global state in force allows.
func (c *Core) attend(out *Output) {
	f := c.exec
	list := f.attention
	f.attention = nil
	for _, r := range list {
		r.attended = false
		if f.runs[r.number] == r && !c.serve(r, out) {
			c.want(r)
		}
	}
}

// serve sends a run's signal. It is false if the run is to be looked at again.
func (c *Core) serve(r *blockRun, out *Output) bool {
	m := c.members[r.on]
	switch {
	case r.signal:
		return true // Its fate brings it back.
	case r.cancel && !r.started:
		c.ended(r, &program.Input{Kind: program.InFailed, Block: r.id, Reason: "it was cancelled before it began"}, out)
		return true
	case r.arrived && !r.seen, r.seen && !r.cancel, r.left:
		return true // A global state will show it.
	case m == nil || m.gone || m.index == noIndex || m.state.Seq == 0 || m.state.Unknown || c.now < r.again:
		return false
	}
	s := c.shown(m)
	mine := s.program == c.exec.id && s.run == r.number
	switch {
	case mine && s.phase != wire.PhaseRunning:
		return true // It has ended.
	case mine && !r.cancel:
		return true
	case mine:
		r.signal = c.signal(m, &control.Signal{
			Name: wire.CancelSignal, Kind: control.Cancel, Region: r.block, Data: c.data(r),
		}, out)
	case s.phase == wire.PhaseRunning:
		return false // Of another one, which is told to end.
	default:
		data := append(c.data(r), control.Datum{Name: wire.DatumBlock, Value: scgs.StringValue(r.block)},
			control.Datum{Name: wire.DatumSize, Value: scgs.IntValue(int64(len(r.input)))})
		if len(r.replicas) > 0 {
			data = append(data, control.Datum{Name: wire.DatumReplica, Value: scgs.StringValue(dotted(r.replicas))})
		}
		if len(r.input) <= wire.ShortInput {
			data = append(data, control.Datum{Name: wire.DatumInput, Value: scgs.StringValue(r.input)})
		}
		r.signal = c.signal(m, &control.Signal{Name: wire.StartSignal, Kind: control.Activate, Region: wire.ProcessorRegion, Data: data}, out)
		r.started = r.started || r.signal
	}
	if !r.signal {
		r.again = c.now.Add(probeAgain)
	}
	return r.signal
}

// dotted joins numbers by dots. Nested deeper than a signal can hold, they are left
// out from the outside.
func dotted(numbers []int32) string {
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

func (c *Core) data(r *blockRun) []control.Datum {
	return []control.Datum{
		{Name: wire.DatumProgram, Value: scgs.IntValue(int64(c.exec.id))}, //nolint:gosec // A time since 1970.
		{Name: wire.DatumRun, Value: scgs.IntValue(int64(r.number))},      //nolint:gosec // Counted from 1.
	}
}

// signal sends a signal of this pass to a processor, if that is in the region.
func (c *Core) signal(m *member, s *control.Signal, out *Output) bool {
	if s.Entry = c.entry(m.pos, s.Region, &occasion{}); s.Entry == 0 {
		return false
	}
	s.Decision, s.Predicate, s.Target, s.TTL = c.decide(), wire.ProgramSignals, m.name, config.DefaultExpiry
	return c.post("", m.incarnation, s, out)
}

// execFate takes the fate of a signal of the program. One that had no effect is
// sent anew, by a later decision, if it is still needed.
func (c *Core) execFate(s *control.Signal, fate control.Fate) {
	if c.exec == nil || s.Predicate != wire.ProgramSignals {
		return
	}
	r := c.exec.runs[uint64(s.Lookup(wire.DatumRun).Int())] //nolint:gosec // It was one.
	if r == nil || r.on != s.Target {
		return
	}
	start := s.Name == wire.StartSignal
	r.signal = false
	switch {
	case fate == control.Applied && start:
		r.arrived = true
	case fate == control.Applied:
		r.left = true
	case start && fate != control.Unconfirmed:
		r.started = false // It has not arrived, and never will.
	}
	if fate != control.Applied {
		r.again = c.now.Add(probeAgain)
	}
	c.want(r)
}

// bodyOf takes what a run has come to. It says why it is refused, or "".
func (c *Core) bodyOf(from string, b *Body, out *Output) {
	f := c.exec
	if f == nil {
		out.Refused = c.plan.Name + " runs no program"
		return
	}
	r := f.runs[b.Run]
	switch {
	case b.Program != f.id:
		out.Refused = "it is of another execution of the program"
	case r == nil && b.Run > 0 && b.Run <= f.numbers:
		// It has ended, and this is a copy; or it was given up.
	case r == nil || r.on != from:
		out.Refused = fmt.Sprintf("run %d was not started on %q", b.Run, from)
	case r.body == nil:
		kept := *b
		r.body = &kept
		if m := c.members[from]; m != nil && m.index != noIndex {
			f.touched = append(f.touched, m)
		}
	}
}

// cancelProgram ends the program: what runs is cancelled first.
func (c *Core) cancelProgram(reason string, out *Output) {
	f := c.exec
	switch {
	case f == nil:
		out.Refused = c.plan.Name + " runs no program"
		return
	case f.run.Finished():
		return
	case !f.began:
		f.began = true
		c.interpret(&program.Input{Kind: program.InBegin}, out)
	}
	c.interpret(&program.Input{Kind: program.InCancel, Reason: reason}, out)
}

// under reports whether a rule acts on a member: one that blocks of the program are
// under acts on no others.
func (c *Core) under(r *plan.Rule, member string) bool {
	if c.exec == nil || !r.Attached {
		return true
	}
	p := c.exec.processors[member]
	return p != nil && p.run != nil && c.plan.Program.Under(p.run.construct, c.plan.Name+"."+r.Name)
}

// acted reports whether a decision has sent a signal to the run that is not known to
// have had no effect.
func (c *Core) acted(d control.Decision, r *blockRun) bool {
	return r != nil && slices.ContainsFunc(c.outbox, func(p *pending) bool {
		return p.group == "" && p.signal.Target == r.on && p.signal.Decision == d
	})
}

// RunInput is the input of a run on a processor; ok is false if there is no such
// run. The caller must own the machine.
func (c *Core) RunInput(processor string, id, number uint64) (input string, ok bool) {
	if c.exec == nil || c.exec.id != id {
		return "", false
	}
	r := c.exec.runs[number]
	if r == nil || r.on != processor {
		return "", false
	}
	return r.input, true
}

// Handed reports whether what a run has come to is there already. The caller must own
// the machine.
func (c *Core) Handed(number uint64) bool {
	return c.exec != nil && c.exec.runs[number] != nil && c.exec.runs[number].body != nil
}

// execWake is when the program has something to do by itself.
func (c *Core) execWake() clocksync.Instant {
	f := c.exec
	if f == nil {
		return clocksync.MaxInstant
	}
	wake := f.wake
	for _, until := range f.held {
		wake = min(wake, until)
	}
	for _, r := range f.attention {
		if r.again > c.now {
			wake = min(wake, r.again)
		}
	}
	if wake <= c.now {
		wake = c.now.Add(10 * time.Millisecond) // No global state is in force.
	}
	return wake
}
