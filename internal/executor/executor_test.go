package executor_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/executor"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/scgs"
)

const (
	ms = clocksync.Instant(time.Millisecond)
	id = 7 // of the execution
)

// site carries out one block, which is tried twice, on the processors that it shows.
type site struct {
	plan.Executor
	shown     map[string]plan.Processor
	decisions uint64
	out       plan.ExecutorOutput
	sent      *control.Signal // the newest
}

func (s *site) Processor(name string) (plan.Processor, bool) {
	p, ok := s.shown[name]
	return p, ok
}

func (s *site) Decision() control.Decision {
	s.decisions++
	return control.Decision{Number: s.decisions}
}

func (s *site) Pending(control.Decision, string) bool { return true }

func newSite(t *testing.T) *site {
	t.Helper()
	file, err := configfile.ParseProgram("p.yaml", []byte(`synchronizers:
  s:
    members: {group: g, count: 1}
    state: {x: {type: int, default: 0}}
program: {name: test, blocks: {work: {output: int}}, body: {name: it, do: work, retry: 1}, result: it.result}
`))
	if err != nil {
		t.Fatal(err)
	}
	return &site{Executor: executor.Program{Compiled: file.Plan}.Begin("s", id), shown: map[string]plan.Processor{}}
}

// shows is a global state in which a processor of a process has a run in a phase.
func (s *site) shows(name string, incarnation uint64, phase string, run int64) {
	row := []scgs.Value{scgs.IntValue(0)}
	for _, f := range wire.ProcessorSchema() {
		row = append(row, f.Default)
	}
	row[1], row[2], row[3], row[4], row[5] = scgs.EnumValue(phase), scgs.StringValue("work"), scgs.IntValue(id), scgs.IntValue(run), scgs.StringValue(name[:1])
	s.shown[name] = plan.Processor{Incarnation: incarnation, Row: row, Seq: 5, Obeys: true, Regions: []wire.Region{{Name: wire.ProcessorRegion, Entry: 1}, {Name: "work", Entry: 2}}}
	s.Moved(name, incarnation)
}

// told is what it has sent and told since it was last asked.
func (s *site) told() string {
	var all []string
	for _, e := range s.out.Events {
		kinds := []string{"", "start", "cancel", "pass", "signal", "end", "lost", "finish", "refuse", "fail", "twice"}
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %d %s %s%s", kinds[e.Kind], e.Run, e.Processor, e.Result, e.Reason)))
	}
	for _, g := range s.out.Signals {
		s.sent = g
		all = append(all, fmt.Sprintf("%s->%s %d", g.Name, g.Target, g.Lookup(wire.DatumRun).Int()))
	}
	s.out = plan.ExecutorOutput{}
	return strings.Join(all, "; ")
}

func (s *site) advance(now clocksync.Instant) string {
	s.Advance(now, s, &s.out)
	return s.told()
}

// runs is a site whose first run is seen to run on a; b is idle.
func runs(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	s.shows("a", 1, wire.PhaseIdle, 0)
	want(t, "start", s.advance(0), "start 1 a; start->a 1")
	s.Settled(0, s.sent, control.Applied)
	s.shows("a", 1, wire.PhaseRunning, 1)
	s.shows("b", 1, wire.PhaseIdle, 0)
	want(t, "running", s.advance(ms), "")
	return s
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// TestEnd: a run ends when a state shows its end and its body is there, whichever comes
// first; bodies of other runs, processors and executions are refused, and copies ignored.
func TestEnd(t *testing.T) {
	s := runs(t)
	for refused, from := range map[string]struct {
		name string
		body plan.Body
	}{
		`run 1 was not started on "b"`:              {"b", plan.Body{Program: id, Run: 1}},
		`run 2 was not started on "a"`:              {"a", plan.Body{Program: id, Run: 2}},
		"it is of another execution of the program": {"a", plan.Body{Program: id + 1, Run: 1}},
	} {
		if isNew, why := s.Take(from.name, &from.body, &s.out); isNew || why != refused {
			t.Errorf("%t, %q, want %q", isNew, why, refused)
		}
	}
	s.shows("a", 1, wire.PhaseDone, 1)
	want(t, "no body yet", s.advance(2*ms), "")
	body := &plan.Body{Program: id, Run: 1, Kind: wire.BodyResult, Text: "5"}
	for _, first := range []bool{true, false} {
		if isNew, why := s.Take("a", body, &s.out); isNew != first || why != "" {
			t.Errorf("new %t, refused %q", isNew, why)
		}
	}
	s.Moved("a", 1)
	want(t, "end", s.advance(3*ms), "end 0; finish 0  5")
	if isNew, why := s.Take("a", body, &s.out); isNew || why != "run 1 has ended" {
		t.Errorf("a body of a run that has ended: %t, %q", isNew, why)
	}
	s.Restart(4*ms, true, control.Decision{}, 0, plan.HoldKnown, 4*ms, &s.out)
	want(t, "told once more", s.told(), "finish 0  5")
}

// TestFails: a failed run is tried again once, and the reason is told.
func TestFails(t *testing.T) {
	s := runs(t)
	s.Take("a", &plan.Body{Program: id, Run: 1, Kind: wire.BodyFailure, Text: "why"}, &s.out)
	s.shows("a", 1, wire.PhaseFailed, 1)
	want(t, "again", s.advance(2*ms), "fail 1 a why; start 2 b; start->b 2")
}

// TestTimes: a status says which attempt a run is and how long ago it was requested, and how long runs with a result took. The
// time in which nobody led does not count.
func TestTimes(t *testing.T) {
	s := runs(t)
	s.shows("a", 1, wire.PhaseFailed, 1)
	s.Take("a", &plan.Body{Program: id, Run: 1, Kind: wire.BodyFailure, Text: "broken"}, &s.out)
	s.advance(500 * ms)
	r := s.Status(1500 * ms).Blocks[0]
	if len(r.Runs) != 1 || r.Runs[0].Attempt != 2 || r.Runs[0].Seconds != 1 || r.Mean != 0 || r.Longest != 0 {
		t.Errorf("%+v", r)
	}
	s.Restart(61500*ms, true, control.Decision{}, 0, plan.HoldKnown, 1500*ms, &s.out)
	if r := s.Status(61500 * ms).Blocks[0].Runs; len(r) != 1 || r[0].Seconds != 1 {
		t.Errorf("after a minute without a leader: %+v", r)
	}
	s = runs(t)
	s.shows("a", 1, wire.PhaseDone, 1)
	s.Take("a", &plan.Body{Program: id, Run: 1, Kind: wire.BodyResult, Text: "5"}, &s.out)
	s.advance(2500 * ms)
	if r := s.Status(9000 * ms).Blocks[0]; r.Done != 1 || r.Mean != 2.5 || r.Longest != 2.5 || len(r.Runs) != 0 {
		t.Errorf("%+v", r)
	}
}

// TestStartAgain: a start that had no effect is sent again, after a while.
func TestStartAgain(t *testing.T) {
	for _, fate := range []control.Fate{control.Expired, control.Unconfirmed} {
		s := newSite(t)
		s.shows("a", 1, wire.PhaseIdle, 0)
		s.advance(0)
		want(t, "under way", s.advance(ms), "")
		s.Settled(ms, s.sent, fate)
		want(t, "too early", s.advance(250*ms), "")
		if wake := s.Wake(250 * ms); wake != 251*ms {
			t.Errorf("%v: it wakes at %v", fate, wake)
		}
		want(t, fate.String(), s.advance(251*ms), "start->a 1")
	}
}

// TestLost: the run of a processor that leaves is lost, and begins on another one, but on
// none of the same node, which may be gone as well. What a processor still runs of it is
// told to end.
func TestLost(t *testing.T) {
	s := runs(t)
	s.shows("a2", 1, wire.PhaseIdle, 0)
	s.advance(ms)
	s.Left(2*ms, time.Second, []monitor.Dropped{{Name: "a", Reason: "silent"}}, &s.out)
	want(t, "lost", s.told(), "lost 1 a silent; start 2 b")
	want(t, "elsewhere", s.advance(2*ms), "start->b 2")
	s.shows("a", 1, wire.PhaseRunning, 1)
	want(t, "stray", s.advance(3*ms), "twice 1 a its processor has gone on with it; cancel->a 0")
	if wake := s.Wake(4 * ms); wake != 1002*ms {
		t.Errorf("it wakes at %v", wake)
	}
}

// TestCancel: what runs is told to end, by the entry of its block, and is waited for; what
// was not begun ends at once.
func TestCancel(t *testing.T) {
	s := runs(t)
	s.Cancel(2*ms, "enough", &s.out)
	want(t, "cancelled", s.told(), "cancel 1 a enough")
	want(t, "told", s.advance(2*ms), "cancel->a 1")
	if s.sent.Entry != 2 || s.sent.Kind != control.Cancel {
		t.Errorf("%+v", s.sent)
	}
	s.shows("a", 1, wire.PhaseCanceled, 1)
	want(t, "gone", s.advance(3*ms), "end 0  enough; finish 0  enough")
	s = newSite(t)
	s.shows("a", 1, wire.PhaseIdle, 0)
	s.advance(0)
	s.Cancel(0, "enough", &s.out)
	s.told()
	want(t, "its start is under way", s.advance(ms), "")
	s.Settled(ms, s.sent, control.Expired)
	want(t, "never arrived", s.advance(2*ms), "end 0  enough; finish 0  enough")
	s = newSite(t)
	s.Cancel(0, "enough", &s.out)
	want(t, "not begun", s.told(), "end 0  enough; finish 0  enough")
}

// TestRestart: after a restart a run continues where it is still shown. It is lost with its
// process, or if that does not come back within the silence.
func TestRestart(t *testing.T) {
	for name, c := range map[string]struct {
		incarnation uint64
		phase       string
		run         int64
		want        string
	}{
		"still runs": {1, wire.PhaseRunning, 1, ""},
		"ended":      {2, wire.PhaseIdle, 0, "lost 1 a its process has ended; start 2 b; start->b 2"},
	} {
		s := runs(t)
		s.Restart(2*ms, true, control.Decision{}, 0, plan.HoldKnown, 2*ms, &s.out)
		s.shows("a", c.incarnation, c.phase, c.run)
		held, then := c.want, ""
		if at := strings.LastIndex(c.want, ";"); at >= 0 {
			held, then = c.want[:at], c.want[at+2:]
		}
		want(t, name, s.advance(3*ms), held)
		s.shows("b", 1, wire.PhaseIdle, 0)
		want(t, name+", and all have come back", s.advance(4*ms), then)
	}
	s := runs(t)
	s.Restart(0, true, control.Decision{}, 0, plan.HoldKnown, 0, &s.out)
	for _, at := range []clocksync.Instant{1000 * ms, 1001 * ms, 3000 * ms} {
		if resume := s.Overdue(at, time.Second, &s.out); resume != (at == 1001*ms) {
			t.Errorf("at %v it resumes: %t", at, resume)
		}
	}
	want(t, "overdue", s.told(), "lost 1 a it did not come back after the restart")
}

// TestRestartWithoutTail: the journal has lost its tail, and the nodes have not. What they were
// started with since has a number that is given to no other run, is told to end, and does not
// keep them from what is started now.
func TestRestartWithoutTail(t *testing.T) {
	const first = 1<<32 + 1
	for name, c := range map[string]struct {
		phase string
		run   int64
		want  []string
	}{
		"another one runs": {wire.PhaseRunning, 9, []string{"twice 9 a the record has no such run; cancel->a 0", "fail 1 a the journal lacks what was started on the processor after it; it may run twice; start->a 4294967297"}},
		"another one ran":  {wire.PhaseDone, 9, []string{"", "fail 1 a the journal lacks what was started on the processor after it; it may run twice; start->a 4294967297"}},
	} {
		s := newSite(t)
		s.shows("a", 1, wire.PhaseIdle, 0)
		want(t, "start", s.advance(0), "start 1 a; start->a 1")
		s.Restart(2*ms, true, control.Decision{}, 1<<32, plan.HoldKnown, 2*ms, &s.out)
		s.shows("a", 1, c.phase, c.run)
		got := s.advance(3 * ms)
		if c.phase == wire.PhaseRunning {
			want(t, name, got, c.want[0])
			s.shows("a", 1, wire.PhaseCanceled, c.run)
			got = s.advance(4 * ms)
		}
		want(t, name, got, c.want[1])
		s.Settled(5*ms, s.sent, control.Applied)
		s.shows("a", 1, wire.PhaseRunning, first)
		want(t, name, s.advance(6*ms), "")
		if isNew, why := s.Take("a", &plan.Body{Program: id, Run: 9, Kind: wire.BodyResult, Text: "1"}, &s.out); isNew || why != "run 9 has ended" && why != `run 9 on "a" was given up: it may have run twice` {
			t.Errorf("%s: what the other one has come to: %t, %q", name, isNew, why)
		}
		s.Take("a", &plan.Body{Program: id, Run: first, Kind: wire.BodyResult, Text: "5"}, &s.out)
		s.shows("a", 1, wire.PhaseDone, first)
		want(t, name, s.advance(7*ms), "end 0; finish 0  5")
	}
	s := runs(t)
	s.Restart(2*ms, true, control.Decision{}, 1<<32, plan.HoldKnown, 2*ms, &s.out)
	s.shows("a", 1, wire.PhaseRunning, 9)
	want(t, "a run that was seen", s.advance(3*ms), "lost 1 a its processor has gone on to another run, which the journal lacks; it may run twice; start 4294967297 b; twice 9 a the record has no such run; cancel->a 0")
	s.shows("b", 1, wire.PhaseIdle, 0)
	want(t, "and begins elsewhere once all obey", s.advance(4*ms), "start->b 4294967297")
	s = runs(t)
	s.Restart(2*ms, true, control.Decision{}, 1<<32, plan.HoldKnown, 2*ms, &s.out)
	s.shows("a", 1, wire.PhaseDone, 1)
	want(t, "its body may come", s.advance(3*ms), "")
	s.Overdue(2000*ms, time.Second, &s.out)
	want(t, "its body was taken", s.advance(2000*ms), "fail 1 a what it has come to was handed over before the restart, and the journal lacks it; it may run twice; start->a 4294967297")
}

// TestNumbersRise: a restart whose numbers would begin too low takes higher ones.
func TestNumbersRise(t *testing.T) {
	s := runs(t)
	for i, base := range []uint64{8 << 32, 1 << 32, 1 << 32} {
		s.Restart(clocksync.Instant(i)*ms, true, control.Decision{}, base, plan.HoldKnown, clocksync.Instant(i)*ms, &s.out)
	}
	s.shows("a", 2, wire.PhaseIdle, 0)
	s.shows("b", 1, wire.PhaseIdle, 0)
	want(t, "after three restarts", s.advance(9*ms), fmt.Sprintf("lost 1 a its process has ended; start %[1]d b; start->b %[1]d", 10<<32+1))
}

// TestAStartThatDoesNotShow: a run fails that its processor has taken and does not show, once
// that was heard for long enough, and is tried again like any other that has failed.
func TestAStartThatDoesNotShow(t *testing.T) {
	begin := func() *site {
		s := newSite(t)
		s.shows("a", 1, wire.PhaseIdle, 0)
		want(t, "start", s.advance(0), "start 1 a; start->a 1")
		s.Settled(ms, s.sent, control.Applied)
		s.shows("b", 1, wire.PhaseIdle, 0)
		want(t, "in time", s.advance(2*ms), "")
		return s
	}
	heard := func(s *site, newest bool, at clocksync.Instant) {
		p := s.shown["a"]
		p.Newest, p.Heard = newest, at
		s.shown["a"] = p
	}
	s := begin()
	if wake := s.Wake(3 * ms); wake != 5001*ms {
		t.Errorf("it wakes at %v", wake)
	}
	heard(s, true, 4000*ms)
	want(t, "too early", s.advance(5000*ms), "")
	const why = `fail 1 a processor "a" has taken the start, and does not show the run after 5s; it may run twice; start 2 `
	if got := s.advance(5001 * ms); !strings.HasPrefix(got, why) {
		t.Errorf("after the bound: %q, want %q", got, why)
	}
	for name, c := range map[string]struct {
		newest bool
		heard  clocksync.Instant
	}{"a newer state is under way": {false, 4000 * ms}, "it was not heard since": {true, 1 * ms}} {
		s := begin()
		heard(s, c.newest, c.heard)
		want(t, name, s.advance(6000*ms), "")
		s.shows("a", 1, wire.PhaseRunning, 1)
		want(t, name+", and it shows", s.advance(6001*ms), "")
	}
	s = begin()
	s.shows("a", 1, wire.PhaseRunning, 1)
	s.advance(10 * ms)
	s.Cancel(11*ms, "enough", &s.out)
	s.told()
	s.advance(11 * ms)
	if s.sent.Name != wire.CancelSignal {
		t.Errorf("a run that shows is cancelled at once: %+v is sent", s.sent)
	}
	s = begin()
	heard(s, true, 4000*ms)
	s.Take("a", &plan.Body{Program: id, Run: 1, Kind: wire.BodyFailure, Text: "no such field"}, &s.out)
	if got := s.advance(5001 * ms); !strings.HasPrefix(got, "fail 1 a no such field; start 2 ") {
		t.Errorf("with the reason of the processor: %q", got)
	}
}

// TestCausesOfSteps: a start or a cancellation has the cause of its step, also after a restart, when
// the last one may have arrived; another attempt, and another one of the same run, have others.
func TestCausesOfSteps(t *testing.T) {
	s := newSite(t)
	s.shows("a", 1, wire.PhaseIdle, 0)
	s.advance(0)
	first := s.sent.Cause
	if first.Source == 0 || first.Witness != 1 || first.Firing != 1 {
		t.Errorf("%+v", first)
	}
	s.Settled(ms, s.sent, control.Expired)
	s.advance(251 * ms)
	if second := s.sent.Cause; second.Source != first.Source || second.Witness != 1 || second.Firing != 2 {
		t.Errorf("the second start: %+v", second)
	}
	second := s.sent.Cause
	s.Restart(300*ms, true, control.Decision{}, 0, plan.HoldKnown, 300*ms, &s.out)
	s.shows("a", 1, wire.PhaseIdle, 0)
	s.advance(301 * ms)
	if s.sent.Cause != second {
		t.Errorf("after the restart: %+v, want %+v", s.sent.Cause, second)
	}
	s.Settled(302*ms, s.sent, control.Applied)
	s.shows("a", 1, wire.PhaseRunning, 1)
	s.advance(303 * ms)
	s.Cancel(304*ms, "enough", &s.out)
	s.told()
	s.advance(304 * ms)
	if c := s.sent.Cause; s.sent.Name != wire.CancelSignal || c.Source == first.Source || c.Witness != 1 || c.Firing != 1 {
		t.Errorf("the cancellation: %+v", s.sent)
	}
}

// TestDrawing: a status has the drawing of the program, with the paths of its constructs and their conditions, unless it is too large.
func TestDrawing(t *testing.T) {
	begin := func(body string) *monitor.ProgramStatus {
		t.Helper()
		file, err := configfile.ParseProgram("p.yaml", []byte(`synchronizers:
  s:
    members: {group: g, count: 1}
    state: {x: {type: int, default: 0}}
    predicates: {enough: {when: "any(members, .x > 3)"}}
program: {name: test, blocks: {work: {}}, body: `+body+`}
`))
		if err != nil {
			t.Fatal(err)
		}
		return executor.Program{Compiled: file.Plan}.Begin("s", id).Status(0)
	}
	d := begin(`{par: {do: work}, times: 3, join: enough}`).Drawing
	var text []string
	for _, v := range d.Vertices {
		text = append(text, strings.TrimSpace(fmt.Sprint(v.Shape, " ", v.Path, " ", v.Label, v.Conditions)))
	}
	want := "dot  [] [], bar body [PAR x3] [], bar body [JOIN or s.enough] [s.enough], block body.par [work] [], dot  [] []"
	if got := strings.Join(text, ", "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if last := d.Edges[0].Points; len(d.Edges) != 4 || len(last) < 2 || d.Width <= 0 || d.Height <= last[len(last)-1][1] {
		t.Errorf("%+v", d)
	}
	if s := begin(`{seq: [` + strings.Repeat("{do: work},\n  ", monitor.MaxDrawn) + `{do: work}]}`); s.Drawing != nil {
		t.Errorf("%d vertices are drawn", len(s.Drawing.Vertices))
	}
}
