package synccore_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/journal"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/scgs"
)

// tester is what the worlds below need of a test.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Fatal(args ...any)
}

// fleet is a synchronizer's machine that runs a program, with a journal, and the
// processors of its group. Processors are the machines of agents under the rules of
// package agent: they take one start at a time and no number twice. What their blocks
// do is up to the test.
type fleet struct {
	t       tester
	plan    *plan.Level
	core    *synccore.Core
	term    uint64
	record  recorder
	now     clocksync.Instant
	wake    clocksync.Instant
	out     synccore.Output
	procs   []*proc
	carry   func(p *proc, deliver func())           // the network, either way
	observe func()                                  // the output of a step
	began   func(p *proc)                           // a block has begun on a processor
	left    func(p *proc)                           // the run there has to end
	kept    *recorder                               // the rest of the journal when the machine is rebuilt; nil: all
	ran     map[uint64]string                       // where each run began
	alter   func(*synccore.Input, *synccore.Output) // a mutant of the machine; may be nil
	lazy    func(*synccore.Input) bool              // a mutant of the shell: what it does not wait for the disk for
	stand   *standby                                // nil: there is none
	tail    []tail                                  // what the file was after each step since it was synced
}

// tail is the journal after a step, and how many events of the program it has.
type tail struct {
	recorder

	events int
}

// proc is a processor.
type proc struct {
	f      *fleet
	name   string
	labels []string
	core   *agentcore.Core
	reply  agentcore.Output // of the last step
	row    []scgs.Value
	entry  uint64 // of the region of the processor
	dead   bool   // its process has ended
	term   uint64 // that it obeys
	last   task   // that has begun, or ended
	runs   bool   // last has not ended
	told   bool   // last had to end
	own    uint64 // the entry of the block's region
	input  string
	body   *plan.Body // that nobody has taken yet
	stored scgs.Schema
}

// task is what a start names.
type task struct {
	program, run uint64
	block        string
	input        string // if it came along
	short        bool
}

const fleetTerm = 7

// newFleet hosts the machine of a program.
func newFleet(t tester, text string) (*fleet, error) {
	file, err := configfile.ParseProgram("test.yaml", []byte(text))
	if err != nil {
		return nil, err
	}
	plan := file.Host
	f := &fleet{
		t: t, plan: plan, core: synccore.New(plan, synccore.Options{Term: fleetTerm}), term: fleetTerm,
		carry: func(_ *proc, deliver func()) { deliver() }, observe: func() {}, began: func(*proc) {}, left: func(*proc) {},
		ran: map[uint64]string{},
	}
	f.record.on = true
	return f, nil
}

// step steps the machine and delivers what it says.
func (f *fleet) step(in synccore.Input) {
	f.record.step(f.t, f.core, f.now, &in, &f.out)
	f.stand.follow(f.now, &in, f.core.MadeAlone(&f.out))
	if f.alter != nil {
		f.alter(&in, &f.out)
	}
	// The shell waits for the disk before it sends a start and before it answers for a body.
	if (len(f.out.Signals) > 0 || in.Kind == synccore.InBody) && (f.lazy == nil || !f.lazy(&in)) {
		f.tail = f.tail[:0]
	}
	f.wake = f.out.Wake
	f.observe()
	var deliver []func()
	send := func(to string, frame []byte, err error) {
		if err != nil {
			f.t.Fatal(err)
		}
		for _, p := range f.procs {
			if to == "" && f.proc(p.name) == p {
				deliver = append(deliver, func() { f.carry(p, func() { p.receive(frame) }) })
			}
		}
		if p := f.proc(to); p != nil {
			deliver = append(deliver, func() { f.carry(p, func() { p.receive(frame) }) })
		}
	}
	for _, m := range f.out.Welcomes {
		frame, err := wire.AppendWelcome(nil, &m.Msg)
		send(m.To, frame, err)
	}
	for _, m := range f.out.Resends {
		frame, err := wire.AppendResend(nil, &m.Msg)
		send(m.To, frame, err)
	}
	for _, m := range f.out.Signals {
		frame, _, err := wire.AppendSignals(nil, &m.Msg)
		send(m.To, frame, err)
	}
	for _, m := range f.out.Probes {
		frame, err := wire.AppendProbe(nil, &m.Msg)
		send(m.To, frame, err)
	}
	for _, d := range deliver { // They step the machine in turn.
		d()
	}
}

// proc is the newest processor of a name.
func (f *fleet) proc(name string) *proc {
	for _, p := range slices.Backward(f.procs) {
		if p.name == name {
			return p
		}
	}
	return nil
}

// replayed is the machine that the journal leads to. Every output is as it was.
func (f *fleet) replayed() *synccore.Core {
	j, err := journal.Read(bytes.NewReader(f.record.text))
	if err != nil {
		f.t.Fatal(err)
	}
	core := synccore.New(j.Level, j.Header.Options)
	var out synccore.Output
	var digest journal.Digest
	var rec journal.Record
	for {
		err := j.Next(&rec)
		if errors.Is(err, io.EOF) {
			return core
		}
		if err != nil {
			f.t.Fatal(err)
		}
		core.Step(rec.Now, &rec.Input, &out)
		if digest.Add(&out); digest.Sum() != rec.Out {
			f.t.Fatalf("line %d of the journal: the outputs are others than when it was recorded", j.Line())
		}
	}
}

// tear has the file of the journal lose what came after some step since it was synced, and
// returns how many events of the program are left, -1 for all.
func (f *fleet) tear(pick func(n int) int) int {
	if len(f.tail) == 0 {
		return -1
	}
	t := f.tail[pick(len(f.tail))]
	f.tail = f.tail[:0]
	f.record = t.recorder
	return t.events
}

// restart continues with the machine that the journal leads to, in the next term.
func (f *fleet) restart() {
	again := synccore.Options{Term: f.term + 1, Hold: plan.HoldKnown}
	if f.kept != nil {
		f.record, f.kept, again.Runs = *f.kept, nil, 1<<32
	}
	f.core = f.replayed()
	f.term++
	f.step(synccore.Input{Kind: synccore.InRestart, Restart: &again})
	f.call()
}

// raise has the machine continue in a later term, of which a member has told.
func (f *fleet) raise() {
	f.term++
	f.step(synccore.Input{Kind: synccore.InTerm, Term: f.term})
	f.call()
}

// call asks the processors to introduce themselves, as a machine does that begins.
func (f *fleet) call() {
	for _, p := range f.procs {
		call, err := wire.AppendWelcome(nil, &wire.Welcome{Synchronizer: f.plan.Name, Term: f.term})
		if err != nil {
			f.t.Fatal(err)
		}
		f.carry(p, func() { p.receive(call) })
	}
}

// join starts the process of a processor.
func (f *fleet) join(name string, labels ...string) {
	incarnation := uint64(1)
	if old := f.proc(name); old != nil {
		old.dead = true
		incarnation = old.core.Incarnation() + 10
	}
	p := &proc{f: f, name: name, labels: labels}
	p.core = agentcore.New(agentcore.Options{Hello: wire.Hello{Member: name, Incarnation: incarnation, Host: "h", Domain: "h"}})
	p.entry = p.feed(agentcore.Input{Kind: agentcore.InEnter, Region: wire.ProcessorRegion, Handlers: []control.Handler{{Name: wire.StartSignal}}}).Entry
	f.procs = append(f.procs, p)
	p.flush()
}

// due is when a processor has something to say.
func (p *proc) due() clocksync.Instant {
	if p.dead {
		return clocksync.MaxInstant
	}
	return p.reply.Wake
}

// feed steps the processor's machine, which must not refuse the input.
func (p *proc) feed(in agentcore.Input) *agentcore.Output {
	if p.core.Step(p.f.now, &in, &p.reply); p.reply.Err != nil {
		p.f.t.Fatal(p.reply.Err)
	}
	return &p.reply
}

func (p *proc) stamp() clocksync.Stamp {
	p.f.now++ // No two readings are the same.
	return clocksync.Stamp{Domain: "h", Mono: p.f.now, Within: clocksync.Unbounded}
}

// flush sends the messages that are due.
func (p *proc) flush() {
	if p.dead {
		return
	}
	var out agentcore.Output // The machine may be stepped while this is sent.
	at := p.stamp()
	p.core.Step(p.f.now, &agentcore.Input{Kind: agentcore.InTick, At: at}, &out)
	p.reply.Due = out.Due
	up := func(in synccore.Input) {
		in.From = p.name
		p.f.carry(p, func() { p.f.step(in) })
	}
	for i := range out.Hellos {
		h := out.Hellos[i]
		up(synccore.Input{Kind: synccore.InHello, Hello: &h})
	}
	for i := range out.Batches {
		codec := p.core.Codec()
		frame, _, err := codec.Append(nil, &out.Batches[i])
		b := &wire.Batch{}
		if err == nil {
			err = codec.Decode(frame, "h", b)
		}
		if err != nil {
			p.f.t.Fatal(err)
		}
		up(synccore.Input{Kind: synccore.InBatch, Batch: b})
	}
	for i := range out.Gones {
		g := out.Gones[i]
		up(synccore.Input{Kind: synccore.InGone, Gone: &g})
	}
	for i := range out.Acks {
		a := out.Acks[i].Ack
		a.Answers = slices.Clone(a.Answers)
		up(synccore.Input{Kind: synccore.InAck, Ack: &a})
	}
}

// receive takes a frame of the machine.
func (p *proc) receive(frame []byte) {
	if p.dead {
		return
	}
	kind, err := wire.KindOf(frame)
	if err != nil {
		p.f.t.Fatal(err)
	}
	switch kind {
	case wire.KindWelcome:
		m, _ := wire.DecodeWelcome(frame)
		if p.feed(agentcore.Input{Kind: agentcore.InWelcome, Welcome: &m}).Reception == agentcore.Accepted {
			if p.term = m.Term; p.row == nil {
				p.idle()
			}
		}
	case wire.KindProbe:
		m, _ := wire.DecodeProbe(frame)
		p.feed(agentcore.Input{Kind: agentcore.InProbe, Probe: &m})
	case wire.KindResend:
		m, _ := wire.DecodeResend(frame)
		p.feed(agentcore.Input{Kind: agentcore.InResend, Resend: &m})
	case wire.KindSignals:
		m, _ := wire.DecodeSignals(frame)
		p.feed(agentcore.Input{Kind: agentcore.InSignals, Signals: &m})
	}
	p.serve()
	p.flush()
}

// idle begins the first state.
func (p *proc) idle() {
	p.stored = p.core.Codec().Schema()
	p.row = make([]scgs.Value, len(p.stored))
	for i, x := range p.stored {
		p.row[i] = x.Default
	}
	labels := make([]scgs.Value, len(p.labels))
	for i, l := range p.labels {
		labels[i] = scgs.StringValue(l)
	}
	own := p.fields()
	node, _, _ := strings.Cut(p.name, "-")
	own[4], own[5], own[6] = scgs.StringValue(node), scgs.ListValue(scgs.String, labels...), scgs.IntValue(1)
	p.tell()
}

// fields are those that a processor sets itself.
func (p *proc) fields() []scgs.Value { return p.row[len(p.row)-wire.ProcessorFields:] }

func (p *proc) tell() {
	p.feed(agentcore.Input{Kind: agentcore.InState, At: p.stamp(), Row: p.row})
}

// set changes a field that the block reports.
func (p *proc) set(field string, v scgs.Value) {
	p.row[p.stored.Index(field)] = v
	p.tell()
}

// serve takes the signals that wait: a start while nothing runs, and the cancellation of the
// block that runs.
func (p *proc) serve() {
	for !p.runs {
		s := p.feed(agentcore.Input{Kind: agentcore.InNext, Entry: p.entry, Delivery: control.AtCheck}).Signal
		if s == nil {
			return
		}
		p.feed(agentcore.Input{Kind: agentcore.InFinish, Signal: s, Fate: control.Applied})
		next := task{
			program: uint64(s.Lookup(wire.DatumProgram).Int()), run: uint64(s.Lookup(wire.DatumRun).Int()),
			block: s.Lookup(wire.DatumBlock).Text(),
		}
		if in := s.Lookup(wire.DatumInput); in.Type() != scgs.Invalid {
			next.input, next.short = in.Text(), true
		}
		if next.program > p.last.program || next.program == p.last.program && next.run > p.last.run {
			p.begin(next)
		}
	}
	if p.runs && !p.told && p.core.Canceled(p.own) != nil {
		p.told = true
		p.f.left(p)
	}
}

// begin begins a run.
func (p *proc) begin(next task) {
	if where, ok := p.f.ran[next.run]; ok {
		p.f.t.Fatalf("run %d begins on %s, and has begun on %s before", next.run, p.process(), where)
	}
	p.f.ran[next.run] = p.process()
	p.last, p.runs, p.told, p.body = next, true, false, nil
	p.own = p.feed(agentcore.Input{Kind: agentcore.InEnter, Region: next.block}).Entry
	own := p.fields()
	own[0], own[1] = scgs.EnumValue(wire.PhaseRunning), scgs.StringValue(next.block)
	own[2], own[3] = scgs.IntValue(int64(next.program)), scgs.IntValue(int64(next.run))
	p.tell()
	if p.input = next.input; !next.short {
		var ok bool
		if p.input, ok = p.f.core.RunInput(p.name, next.program, next.run); !ok {
			p.input = "" // The run was given up.
		}
	}
	p.f.began(p)
}

func (p *proc) process() string {
	return fmt.Sprintf("%s, incarnation %d", p.name, p.core.Incarnation())
}

// end ends what runs. The result waits until the test hands it over.
func (p *proc) end(phase string, kind wire.BodyKind, text string) {
	if s := p.feed(agentcore.Input{Kind: agentcore.InExit, Entry: p.own}).Signal; s != nil {
		p.feed(agentcore.Input{Kind: agentcore.InFinish, Signal: s, Fate: control.Applied})
	}
	p.runs = false
	if phase != wire.PhaseCanceled {
		p.body = &plan.Body{Program: p.last.program, Run: p.last.run, Kind: kind, Text: text}
	}
	p.fields()[0] = scgs.EnumValue(phase)
	p.tell()
}

// hand hands over what a run has come to, and says why it is refused, if it is.
func (p *proc) hand() (refused string) {
	if p.body == nil {
		return ""
	}
	b := *p.body
	p.f.step(synccore.Input{Kind: synccore.InBody, From: p.name, Body: &b})
	p.body = nil
	return p.f.out.Refused
}

// programLine tells an event of a program.
func programLine(e *monitor.ProgramEvent) string {
	what := e.Construct
	if e.Name != "" {
		what += " " + e.Name
	}
	if len(e.Replicas) > 0 {
		what += strings.ReplaceAll(fmt.Sprint(e.Replicas), " ", "][")
	}
	run := fmt.Sprintf("%s as %v, run %d on %s", what, e.Block, e.Run, e.Processor)
	because := ""
	if e.Reason != "" {
		because = ": " + e.Reason
	}
	switch e.Kind {
	case monitor.ProgramStart:
		return "start " + run
	case monitor.ProgramCancel:
		return "cancel " + run + because
	case monitor.ProgramLost:
		return "lost " + run + because
	case monitor.ProgramFail:
		return "failed " + run + because
	case monitor.ProgramTwice:
		return "perhaps twice " + run + because
	case monitor.ProgramSignal:
		return fmt.Sprintf("signal %s to %s (%v)", e.Predicate, run, e.Decision)
	case monitor.ProgramPass:
		by := ""
		if e.Predicate != "" {
			by = fmt.Sprintf(" branch %d by %s", e.Branch, e.Predicate)
		}
		return fmt.Sprintf("pass %s%s (%v)", what, by, e.Decision)
	case monitor.ProgramEnd:
		if e.Block.Instance > 0 {
			what += " as " + e.Block.String()
		}
		return fmt.Sprintf("end %s: %v%s", what, e.Outcome, because)
	case monitor.ProgramFinish:
		if e.Result != "" {
			because = ": result " + e.Result
		}
		return fmt.Sprintf("finish: %v%s", e.Outcome, because)
	case monitor.ProgramRefuse:
		return "refuse" + because
	}
	return "?"
}
