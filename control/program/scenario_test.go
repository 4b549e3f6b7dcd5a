package program_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/predicates"
)

// header is what the programs of the tests refer to.
const header = `synchronizers:
  s:
    members: {group: g}
    predicates:
      p: {when: len(members) > 1, signal: {kind: activate, region: r}}
      q: {when: len(members) > 2, signal: {kind: activate, region: r}}
      r: {when: len(members) > 3}
      always: {when: "true"}
      never: {when: "false"}
  u:
    members: {group: h}
    predicates:
      r: {when: len(members) > 1}
      z: {when: len(members) > 1}
  threads:
    parent: s
    members: {threads: {min: 2, max: 4}}
    predicates:
      t: {when: len(members) > 1, signal: {kind: activate, region: r}}
`

// TestScenarios plays the stories of testdata/scenarios. "program" takes the
// section of a program and begins a run of it; "step" takes an input a line:
//
//	[@TIME] begin | tick | cancel [WHY]
//	[@TIME] epoch SYNCHRONIZER N
//	[@TIME] PREDICATE true|false|unknown [epoch=N] [term=N]
//	[@TIME] done|failed INSTANCE[.ATTEMPT] [RESULT or WHY]
//	[@TIME] joined NODE [CORES] [LABEL...] [threads=BLOCK...] | left NODE
//
// A TIME is in ms; without one the clock stands still. "blocks" lists what has
// begun and not ended. "timeline" draws the blocks, a column a step: [ started,
// = runs, ] done, x failed or lost, c cancelled, ~ told to end.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		t.Helper()
		s := &story{}
		datadriven.RunTest(t, path, s.command)
	})
}

type story struct {
	compiled *program.Compiled
	run      *program.Run
	out      program.Output
	now      clocksync.Instant
	decision uint64
	rows     []*row
	columns  int
}

// row is a block of the timeline.
type row struct {
	id    program.ID
	label string
	cells []byte
	live  byte // what the next cells are, 0: none
}

func (s *story) command(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	switch d.Cmd {
	case "program":
		*s = story{}
		file, err := configfile.ParseProgram("test", []byte(header+"program:\n  name: test\n"+indented(d.Input)))
		if err != nil {
			return err.Error()
		}
		s.compiled, s.run = file.Plan, program.NewRun(file.Plan)
		if d.HasArg("nodes") {
			var n int
			d.ScanArgs(t, "nodes", &n)
			for i := range n {
				node := program.Node{Name: "n" + strconv.Itoa(i+1), Cores: 1}
				for _, b := range file.Program.Blocks {
					if b.Threads > 0 {
						node.Threaded = append(node.Threaded, b.Name)
					}
				}
				s.step(&program.Input{Kind: program.InJoined, Node: node})
			}
		}
		return ""
	case "step":
		var b strings.Builder
		for line := range strings.Lines(d.Input) {
			in, ok := s.parse(strings.Fields(line))
			if !ok {
				d.Fatalf(t, "no input: %s", line)
			}
			fmt.Fprintf(&b, "> %s\n", strings.TrimSpace(line))
			b.WriteString(s.step(in))
		}
		return b.String()
	case "blocks":
		var b strings.Builder
		for _, x := range s.run.Blocks() {
			fmt.Fprintf(&b, "%s %s node=%s stopping=%t\n", x.Block, s.compiled.Info(x.Construct).Name, x.Node, x.Stopping)
		}
		return b.String()
	case "timeline":
		return s.timeline()
	}
	d.Fatalf(t, "no command %s", d.Cmd)
	return ""
}

func indented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("  " + line)
	}
	return b.String() + "\n"
}

func id(text string) program.ID {
	instance, attempt, ok := strings.Cut(text, ".")
	i, _ := strconv.ParseUint(instance, 10, 64)
	a := uint64(1)
	if ok {
		a, _ = strconv.ParseUint(attempt, 10, 32)
	}
	return program.ID{Instance: i, Attempt: uint32(a)}
}

func (s *story) decide(sync string, words []string) control.Decision {
	s.decision++
	d := control.Decision{Synchronizer: sync, Term: 1, Epoch: 1, Number: s.decision}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		n, _ := strconv.ParseUint(value, 10, 64)
		switch key {
		case "epoch":
			d.Epoch = n
		case "term":
			d.Term = n
		}
	}
	return d
}

func (s *story) parse(words []string) (*program.Input, bool) {
	if at, ok := strings.CutPrefix(words[0], "@"); ok {
		ms, _ := strconv.Atoi(at)
		s.now, words = clocksync.Instant(ms)*1_000_000, words[1:]
	}
	rest := words[1:]
	in := &program.Input{}
	switch words[0] {
	case "tick":
	case "begin":
		in.Kind = program.InBegin
	case "cancel":
		in.Kind, in.Reason = program.InCancel, strings.Join(rest, " ")
	case "done":
		in.Kind, in.Block = program.InDone, id(rest[0])
		in.Result, in.Decision = strings.Join(rest[1:], " "), s.decide("s", nil)
	case "failed":
		in.Kind, in.Block, in.Reason = program.InFailed, id(rest[0]), strings.Join(rest[1:], " ")
	case "epoch":
		in.Kind, in.Decision = program.InEpoch, s.decide(rest[0], []string{"epoch=" + rest[1]})
	case "joined":
		in.Kind, in.Node = program.InJoined, program.Node{Name: rest[0], Cores: 1}
		for _, w := range rest[1:] {
			if n, err := strconv.Atoi(w); err == nil {
				in.Node.Cores = n
			} else if block, ok := strings.CutPrefix(w, "threads="); ok {
				in.Node.Threaded = append(in.Node.Threaded, block)
			} else {
				in.Node.Labels = append(in.Node.Labels, w)
			}
		}
	case "left":
		in.Kind, in.Node.Name = program.InLeft, rest[0]
	default:
		truth := slices.Index([]string{"unknown", "false", "true"}, rest[0])
		if truth < 0 {
			return nil, false
		}
		in.Kind, in.Predicate = program.InVerdict, words[0]
		in.Truth = []predicates.Truth{predicates.Unknown, predicates.False, predicates.True}[truth]
		sync, _, _ := strings.Cut(words[0], ".")
		in.Decision = s.decide(sync, rest[1:])
	}
	return in, true
}

func (s *story) step(in *program.Input) string {
	s.run.Step(s.now, in, &s.out)
	var b strings.Builder
	for i := range s.out.Actions {
		a := &s.out.Actions[i]
		fmt.Fprintln(&b, "  "+describe(s.compiled, a))
		s.draw(a)
	}
	if s.out.Wake.Finite() {
		fmt.Fprintf(&b, "  wake at %d ms\n", int64(s.out.Wake)/1_000_000)
	}
	s.columns++
	for _, r := range s.rows {
		if len(r.cells) < s.columns && r.live != 0 {
			r.cells = append(r.cells, r.live)
		}
	}
	return b.String()
}

// describe gives an action as a line.
func describe(compiled *program.Compiled, a *program.Action) string {
	what := ""
	if a.Construct >= 0 && a.Kind != program.ActRefuse {
		info := compiled.Info(a.Construct)
		words := []string{info.Kind.String()}
		if info.Name != "" {
			words = append(words, " "+info.Name)
		}
		for _, r := range a.Replicas {
			words = append(words, fmt.Sprintf("[%d]", r))
		}
		what = strings.Join(words, "")
	}
	block := ""
	if a.Block.Instance > 0 {
		block = " as " + a.Block.String()
	}
	reason := ""
	if a.Reason != "" {
		reason = ": " + a.Reason
	}
	switch a.Kind {
	case program.ActStart:
		if a.Input != "" {
			reason = " with " + a.Input
		}
		return "start " + what + block + " on " + a.Node + reason
	case program.ActCancel:
		return "cancel " + what + block + " on " + a.Node + reason
	case program.ActPass:
		by := ""
		if a.Predicate != "" {
			by = fmt.Sprintf(" branch %d by %s", a.Branch, a.Predicate)
			if a.Iteration > 0 {
				by = fmt.Sprintf(" iteration %d by %s", a.Iteration, a.Predicate)
			}
		}
		return "pass " + what + by + " (" + a.Decision.String() + ")"
	case program.ActSignal:
		return "signal " + a.Predicate + " to " + what + block + " on " + a.Node + " (" + a.Decision.String() + ")"
	case program.ActEnd:
		return "end " + what + block + ": " + a.Outcome.String() + reason
	case program.ActFinish:
		if a.Result != "" {
			reason += ": result " + a.Result
		}
		return "finish: " + a.Outcome.String() + reason
	}
	return "refuse" + reason
}

// draw notes what an action does to the timeline.
func (s *story) draw(a *program.Action) {
	find := func() *row {
		for _, r := range slices.Backward(s.rows) {
			if r.id.Instance == a.Block.Instance && r.live != 0 {
				return r
			}
		}
		return nil
	}
	mark := func(r *row, cell, live byte) {
		if r == nil {
			return
		}
		for len(r.cells) < s.columns {
			r.cells = append(r.cells, ' ')
		}
		r.cells, r.live = append(r.cells[:s.columns], cell), live
	}
	switch a.Kind {
	case program.ActStart:
		if old := find(); old != nil {
			mark(old, 'x', 0)
		}
		r := &row{id: a.Block, label: s.compiled.Info(a.Construct).Name + " " + a.Block.String() + " " + a.Node}
		s.rows = append(s.rows, r)
		mark(r, '[', '=')
	case program.ActCancel:
		mark(find(), '~', '~')
	case program.ActEnd:
		if r := find(); r != nil && a.Block.Instance > 0 {
			mark(r, map[program.Outcome]byte{program.Done: ']', program.Failed: 'x', program.Canceled: 'c'}[a.Outcome], 0)
		}
	}
}

func (s *story) timeline() string {
	width := 0
	for _, r := range s.rows {
		width = max(width, len(r.label))
	}
	var b strings.Builder
	for _, r := range s.rows {
		fmt.Fprintf(&b, "%-*s |%s\n", width, r.label, strings.TrimRight(string(r.cells), " "))
	}
	return b.String()
}
