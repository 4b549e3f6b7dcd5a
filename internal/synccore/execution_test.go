package synccore_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/scgs"
)

// executionHeader is what the programs of testdata/execution run on. Of x every
// processor has a value, of y only one that has set it. %d processors are awaited.
const executionHeader = `synchronizers:
  s:
    members: {group: g, count: %d, min: 1}
    silence: {after: 1s, then: drop}
    state: {x: {type: int, default: 0}, y: int}
    predicates:
      one: {when: "any(members, .x == 1)", signal: {kind: activate, region: work}}
      two: {when: "any(members, .x == 2)"}
      known: {when: "all(members, .y > 0)"}
`

// TestExecutions plays the stories of testdata/execution: a synchronizer that runs
// a program, and its processors. "program" takes the section of a program, begins
// it, and names processors that are there from the start; "bare" takes a whole
// file. "reload" takes a section, or with "bare" a file, that is followed from then
// on. "play" takes a line for each thing that happens:
//
//	join NAME [LABEL...]      a process starts; it is a processor of the node whose name
//	                          stands before a hyphen
//	kill NAME                 a process ends; nobody is told
//	leave NAME                a process takes leave of the group, and ends
//	cut NAME | heal NAME      nothing gets to it and from it, and again
//	set NAME FIELD VALUE      what the block there reports
//	done NAME [RESULT]        the block ends
//	fail NAME WHY
//	                          a RESULT of LONG is too long an input for a signal
//	ends NAME [RESULT]        the block ends, and its result is kept back
//	hands NAME                what was kept back is handed over
//	stubborn NAME             from now on blocks there do not end when told to
//	canceled NAME             a stubborn one does
//	body NAME RUN RESULT      a result of that run of the first program is handed over,
//	                          whoever ran it, and even where the rest is cut
//	cancel [WHY]              the program is cancelled
//	restart                   the machine is rebuilt from its journal and continues
//	attach                    a standby comes, and is told from now on what the machine is told
//	deafen                    it is not any more
//	takeover                  it continues in place of the machine
//	keep                      of the journal what it has now will be left at the next restart
//	wait DURATION
//
// Signals are obeyed at once where nothing is cut. "status" shows where the program
// stands. "timeline" draws the runs, a column a line: [ started, = runs, ] done,
// x failed or lost, c cancelled, ~ told to end; R is a restart, T a takeover, L a reload. "again"
// is "program" for the same processors, under another machine.
func TestExecutions(t *testing.T) {
	datadriven.Walk(t, "testdata/execution", func(t *testing.T, path string) {
		t.Helper()
		s := &execution{}
		datadriven.RunTest(t, path, s.command)
		s.over()
	})
}

type execution struct {
	f        *fleet
	said     strings.Builder
	cut      map[string]bool
	stubborn map[string]bool
	rows     []*runRow
	marks    []byte
	column   int
}

// runRow is a run of the timeline.
type runRow struct {
	run      uint64
	instance uint64 // of the block
	label    string
	cells    []byte
	live     byte // what the next cells are, 0: none
}

// over replays the journal of a story that has ended.
func (s *execution) over() {
	if s.f != nil {
		s.f.replayed()
	}
}

func (s *execution) command(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	switch d.Cmd {
	case "program":
		s.over()
		return s.program(t, d)
	case "again":
		return s.again(t, d)
	case "reload":
		s.f.t = t
		file, err := configfile.ParseProgram("changed.yaml", []byte(executionText(d)))
		if err != nil {
			return err.Error()
		}
		s.mark('L')
		s.f.step(synccore.Input{Kind: synccore.InLevel, Level: file.Host})
		s.settle(5 * time.Millisecond)
		return s.told()
	case "play":
		s.f.t = t
		var b strings.Builder
		for line := range strings.Lines(d.Input) {
			fmt.Fprintf(&b, "> %s\n", strings.TrimSpace(line))
			if !s.play(strings.Fields(line)) {
				d.Fatalf(t, "no such line: %s", line)
			}
			b.WriteString(s.told())
		}
		return b.String()
	case "status":
		return s.status()
	case "timeline":
		return s.timeline()
	}
	d.Fatalf(t, "no command %s", d.Cmd)
	return ""
}

func executionText(d *datadriven.TestData) string {
	if d.HasArg("bare") {
		return d.Input + "\n"
	}
	var b strings.Builder
	count := 1
	for _, arg := range d.CmdArgs {
		if arg.Key == "on" {
			count = len(arg.Vals)
		}
	}
	fmt.Fprintf(&b, executionHeader+"program:\n  name: test\n", count)
	for line := range strings.Lines(d.Input + "\n") {
		b.WriteString("  " + line)
	}
	return b.String()
}

func (s *execution) program(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	f, err := newFleet(t, executionText(d))
	if err != nil {
		return err.Error()
	}
	*s = execution{cut: map[string]bool{}, stubborn: map[string]bool{}}
	s.host(f)
	for _, arg := range d.CmdArgs {
		if arg.Key != "on" {
			continue
		}
		for _, name := range arg.Vals {
			f.join(name)
		}
	}
	s.settle(5 * time.Millisecond)
	return s.told()
}

// again hosts another machine for the processors that are there.
func (s *execution) again(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	f, err := newFleet(t, executionText(d))
	if err != nil {
		return err.Error()
	}
	s.over()
	before := s.f
	s.rows, s.marks, s.column = nil, nil, 0
	s.host(f)
	f.now, f.procs = before.now, before.procs
	for _, p := range f.procs {
		p.f = f
	}
	f.core = synccore.New(f.plan, synccore.Options{Term: before.term + 1})
	f.term = before.term + 1
	f.call()
	s.settle(105 * time.Millisecond)
	return s.told()
}

// host has a fleet drawn and told.
func (s *execution) host(f *fleet) {
	s.f = f
	f.carry = func(p *proc, deliver func()) {
		if !s.cut[p.name] {
			deliver()
		}
	}
	f.observe = s.note
	f.began = func(p *proc) {
		if len(p.input) > 100 {
			fmt.Fprintf(&s.said, "  %s begins run %d with %d bytes\n", p.name, p.last.run, len(p.input))
		}
	}
	f.left = func(p *proc) {
		if !s.stubborn[p.name] {
			p.end(wire.PhaseCanceled, 0, "")
		}
	}
}

// settle lets time pass, and everybody say and do all that is due.
func (s *execution) settle(d time.Duration) {
	f := s.f
	for end := f.now.Add(d); f.now < end; {
		f.now = f.now.Add(time.Millisecond)
		if f.wake <= f.now {
			f.step(synccore.Input{Kind: synccore.InTick})
		}
		for _, p := range f.procs {
			if p.due() <= f.now {
				p.flush()
			}
		}
	}
	s.column++
	for _, r := range s.rows {
		if r.live != 0 && len(r.cells) < s.column {
			r.cells = append(r.cells, r.live)
		}
	}
}

func (s *execution) play(words []string) bool {
	f := s.f
	var p *proc
	rest := ""
	if len(words) > 1 {
		p = f.proc(words[1])
		rest = strings.Join(words[2:], " ")
	}
	wait := 5 * time.Millisecond
	switch words[0] {
	case "join":
		f.join(words[1], words[2:]...)
		wait = 155 * time.Millisecond // After a restart it is to say hello twice.
	case "kill":
		p.dead = true
	case "leave":
		p.feed(agentcore.Input{Kind: agentcore.InLeave})
		p.flush()
		p.dead = true
	case "cut", "heal":
		s.cut[words[1]] = words[0] == "cut"
	case "set":
		v := scgs.Value{}
		if n, err := strconv.ParseInt(words[3], 10, 64); err == nil {
			v = scgs.IntValue(n)
		}
		p.set(words[2], v)
	case "done", "ends", "fail", "canceled":
		if !p.runs {
			return false
		}
		s.end(p, words[0], rest)
	case "hands":
		s.hand(p)
	case "stubborn":
		s.stubborn[words[1]] = true
	case "body":
		run, _ := strconv.ParseUint(words[2], 10, 64)
		p.body = &plan.Body{Program: fleetTerm, Run: run, Kind: wire.BodyResult, Text: strings.Join(words[3:], " ")}
		s.deliver(p)
	case "cancel":
		f.step(synccore.Input{Kind: synccore.InCancel, Reason: strings.Join(words[1:], " ")})
	case "restart":
		s.mark('R')
		f.restart()
		wait = 255 * time.Millisecond // Members say hello again after 100 ms at the earliest, and once more.
	case "attach":
		s.f.attach()
	case "deafen":
		s.f.stand.deaf = true
	case "takeover":
		s.mark('T')
		f.takeover()
		wait = 255 * time.Millisecond
	case "keep":
		kept := s.f.record
		kept.text = slices.Clone(kept.text)
		s.f.kept = &kept
	case "raise":
		f.raise()
		wait = 105 * time.Millisecond
	case "wait":
		var err error
		if wait, err = time.ParseDuration(words[1]); err != nil {
			return false
		}
	default:
		return false
	}
	s.settle(wait)
	return true
}

// end ends what runs on a processor.
func (s *execution) end(p *proc, how, rest string) {
	switch how {
	case "fail":
		p.end(wire.PhaseFailed, wire.BodyFailure, rest)
	case "canceled":
		p.end(wire.PhaseCanceled, 0, "")
	default:
		if rest == "" {
			rest = "null"
		}
		if rest == "LONG" {
			rest = strconv.Quote(strings.Repeat("x", wire.ShortInput))
		}
		p.end(wire.PhaseDone, wire.BodyResult, rest)
	}
	if how != "ends" {
		s.hand(p)
	}
}

// hand hands over a body as soon as the processor is not cut off: it would repeat it
// until it is taken.
func (s *execution) hand(p *proc) {
	if !s.cut[p.name] {
		s.deliver(p)
	}
}

func (s *execution) deliver(p *proc) {
	if why := p.hand(); why != "" {
		fmt.Fprintf(&s.said, "  body of %s refused: %s\n", p.name, why)
	}
}

func (s *execution) told() string {
	text := s.said.String()
	s.said.Reset()
	return text
}

// note keeps what a step has told.
func (s *execution) note() {
	o := &s.f.out
	for _, r := range o.Reloads {
		fmt.Fprintf(&s.said, "  reload %s %v\n", r.Config, r.Changes)
	}
	for _, e := range o.Epochs {
		fmt.Fprintf(&s.said, "  epoch %d %v dropped %v\n", e.Epoch, e.Members, e.Dropped)
	}
	for _, v := range o.Verdicts {
		if s.f.plan.Program != nil && slices.Contains(compiled(s.f.plan).Predicates(), "s."+v.Predicate) {
			fmt.Fprintf(&s.said, "  verdict %s %v\n", v.Predicate, v.Truth)
		}
	}
	for i := range o.Program {
		e := &o.Program[i]
		fmt.Fprintf(&s.said, "  %s\n", programLine(e))
		s.draw(e)
	}
	for _, x := range o.Fates {
		if x.Fate != control.Applied || x.Signal.Predicate != wire.ProgramSignals {
			fmt.Fprintf(&s.said, "  fate of %s to %s: %v %s\n", x.Signal.Name, x.Signal.Target, x.Fate, x.Detail)
		}
	}
	for _, r := range o.Rejected {
		fmt.Fprintf(&s.said, "  rejected %s: %s\n", r.From, r.Detail)
	}
}

func (s *execution) mark(mark byte) {
	for len(s.marks) < s.column {
		s.marks = append(s.marks, ' ')
	}
	s.marks = append(s.marks, mark)
}

// draw notes what an event does to the timeline.
func (s *execution) draw(e *monitor.ProgramEvent) {
	mark := func(cell, live byte) {
		for _, r := range s.rows {
			if r.run == e.Run && r.live != 0 {
				for len(r.cells) < s.column {
					r.cells = append(r.cells, r.live)
				}
				r.cells, r.live = append(r.cells[:s.column], cell), live
			}
		}
	}
	switch e.Kind {
	case monitor.ProgramStart:
		s.close(e, 'x') // Of the attempt before.
		s.rows = append(s.rows, &runRow{
			run: e.Run, instance: e.Block.Instance, label: fmt.Sprintf("%s %v %s", e.Name, e.Block, e.Processor), live: ' ',
		})
		mark('[', '=')
	case monitor.ProgramCancel:
		mark('~', '~')
	case monitor.ProgramLost:
		mark('x', 0)
	case monitor.ProgramEnd:
		if e.Block.Instance > 0 {
			s.close(e, "?]xc"[e.Outcome])
		}
	}
}

// close ends the row of the run that stands for a block, which not every event names.
func (s *execution) close(e *monitor.ProgramEvent, cell byte) {
	for _, r := range s.rows {
		if r.live == 0 || r.instance != e.Block.Instance {
			continue
		}
		for len(r.cells) < s.column {
			r.cells = append(r.cells, r.live)
		}
		r.cells, r.live = append(r.cells[:s.column], cell), 0
	}
}

func (s *execution) timeline() string {
	width := 0
	for _, r := range s.rows {
		width = max(width, len(r.label))
	}
	var b strings.Builder
	if len(s.marks) > 0 {
		fmt.Fprintf(&b, "%-*s |%s\n", width, "", s.marks)
	}
	for _, r := range s.rows {
		fmt.Fprintf(&b, "%-*s |%s\n", width, r.label, strings.TrimRight(string(r.cells), " "))
	}
	return b.String()
}

// status is where the program stands, a line for each block.
func (s *execution) status() string {
	p := s.f.core.Status(s.f.now).Program
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s %s\n", p.Name, p.Outcome, p.Reason)
	for _, x := range p.Blocks {
		fmt.Fprintf(&b, "%s: %d started, %d done, %d failed, %d canceled, %d lost\n", x.Path, x.Starts, x.Done, x.Failed, x.Canceled, x.Lost)
		for _, r := range x.Runs {
			fmt.Fprintf(&b, "  run %d %s on %s: %s\n", r.Run, r.Replica, r.Processor, r.Phase)
		}
	}
	for _, x := range p.Waits {
		fmt.Fprintf(&b, "%s: %s %s waits for %s\n", x.Path, x.Name, x.Replica, x.For)
	}
	return b.String()
}
