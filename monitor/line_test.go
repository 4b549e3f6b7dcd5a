package monitor_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

var (
	decision = control.Decision{Synchronizer: "g", Term: 9, Epoch: 2, Number: 17}
	block    = program.ID{Instance: 4, Attempt: 1}
	fields   = scgs.Schema{{Name: "idle", Type: scgs.Bool}, {Name: "n", Type: scgs.Int}}
	row      = []scgs.Value{scgs.BoolValue(true), scgs.IntValue(1 << 60)}
)

// lines are events, with the text and the JSON of each.
var lines = []struct {
	event      monitor.Event
	text, json string
}{
	{monitor.Epoch{}, "too few members, nothing is decided", `"epoch":0,"event":"epoch","joined":[],"members":[]`},
	{
		monitor.Verdict{Predicate: "p", Truth: predicates.Unknown, Reason: "w1 is unknown", Epoch: 2, Index: 3},
		"p is unknown: w1 is unknown",
		`"epoch":2,"event":"verdict","partial":false,"predicate":"p","reason":"w1 is unknown","state":3`,
	},
	{
		monitor.Verdict{
			Predicate: "p", Truth: predicates.True, Fired: true, Decision: decision, Epoch: 2, Index: 3, Span: scgs.Span{HasCore: true, CoreFrom: 1, CoreTo: 1001}, Bound: time.Millisecond,
			Witness: []monitor.Part{{Name: "w1", Fields: fields, Row: row}, {Name: "w2", State: scgs.Part{Unknown: true}}},
		},
		"p fired (decision g/2/17) on w1 (idle=true n=1152921504606846976), w2 (unknown); held 1µs by clocks within 1ms",
		`"bound_seconds":0.001,"bound_sources":"","decision":"g/2/17","epoch":2,"event":"fired","held_seconds":0.000001,"modality":"inst","partial":false,"predicate":"p","same_clock":false,"state":3`,
	},
	{
		monitor.Fate{Signal: &control.Signal{Decision: decision, Name: "s", Predicate: "p", Kind: control.Cancel, Target: "w1", Region: "r"}, Fate: control.Refused, Detail: "no", Group: "h"},
		"signal s (cancel region r, decision g/2/17) to h/w1: refused (no)",
		`"decision":"g/2/17","detail":"no","event":"signal","fate":"refused","group":"h","kind":"cancel","predicate":"p","region":"r","signal":"s"`,
	},
	{ // Of a cancellation for want of control, as a member tells it.
		monitor.Fate{Signal: &control.Signal{Decision: control.Decision{Synchronizer: "g", Term: 3}, Name: "control-loss", Predicate: "control-loss", Kind: control.Cancel, Target: "w1", Region: "r"}, Fate: control.Applied, Detail: "the region was without control for 3s"},
		"signal control-loss (cancel region r, no control) to w1: applied (the region was without control for 3s)",
		`"decision":"no control","detail":"the region was without control for 3s","event":"signal","fate":"applied","kind":"cancel","predicate":"control-loss","region":"r","signal":"control-loss"`,
	},
	{
		monitor.Clock{Name: "w1", Quality: clocksync.Quality{Status: clocksync.Unknown}},
		"clock of w1 is unknown; nothing is certain between it and other hosts",
		`"assumed":false,"event":"clock","member":"w1","source":"","status":"unknown"`,
	},
	{monitor.Rejection{From: "w9", Detail: "one too many"}, "refused w9: one too many", `"event":"refused","from":"w9","reason":"one too many"`},
	{monitor.Reload{Config: "c.yaml"}, "reloaded c.yaml: nothing is different", `"accepted":true,"changes":[],"configuration":"c.yaml","event":"reload"`},
	{
		monitor.Plan{Epoch: 2, Index: 3},
		"no load moves (): ",
		`"decision":"","epoch":2,"event":"plan","left_out":0,"longest_after_seconds":0,"longest_before_seconds":0,"moves":[],"nodes":[],"partial":false,"refused":[],"state":3,"strategy":""`,
	},
	{
		monitor.ProgramEvent{Kind: monitor.ProgramStart, Path: "body.do", Construct: "do", Name: "b", Replicas: []int32{1}, Block: block, Run: 5, Processor: "n1-1"},
		"start do b[1] (" + block.String() + ") on n1-1",
		`"block":"` + block.String() + `","construct":"do","event":"start","name":"b","path":"body.do","processor":"n1-1","replicas":[1],"run":5`,
	},
	{
		monitor.ProgramEvent{Kind: monitor.ProgramPass, Construct: "if", Predicate: "p", Decision: decision},
		"passed if by p, branch 0 (decision g/2/17)",
		`"branch":0,"construct":"if","decision":"g/2/17","event":"pass","predicate":"p"`,
	},
	{
		monitor.ProgramEvent{Kind: monitor.ProgramSignal, Construct: "do", Predicate: "p", Decision: decision, Block: block, Processor: "n1-1"},
		"p has signalled to do (" + block.String() + ") on n1-1 (decision g/2/17)", `"event":"signalled"`,
	},
	{
		monitor.ProgramEvent{Kind: monitor.ProgramPass, Construct: "until", Name: "rounds", Predicate: "p", Branch: control.Otherwise, Iteration: 2, Decision: decision},
		"until rounds: iteration 2 begins, p is false (decision g/2/17)",
		`"branch":-1,"construct":"until","decision":"g/2/17","event":"pass","iteration":2,"name":"rounds","predicate":"p"`,
	},
	{
		monitor.ProgramEvent{Kind: monitor.ProgramPass, Construct: "while", Predicate: "p", Iteration: 1, Decision: decision},
		"while: iteration 1 begins, p is true (decision g/2/17)", `"iteration":1`,
	},
	{monitor.ProgramEvent{Kind: monitor.ProgramPass, Construct: "par"}, "passed par", `"branch":0,"construct":"par","event":"pass"`},
	{monitor.ProgramEvent{Kind: monitor.ProgramEnd, Construct: "par", Outcome: program.Failed, Reason: "why"}, "par is failed: why", `"construct":"par","event":"end","outcome":"failed","reason":"why"`},
	{monitor.ProgramEvent{Kind: monitor.ProgramFinish, Outcome: program.Done, Result: "[1]"}, "the program is done: [1]", `"event":"finish","outcome":"done","result":"[1]"`},
	{monitor.ProgramEvent{Kind: monitor.ProgramRefuse, Reason: "why"}, "the program's interpreter refuses why", `"event":"program-refused","reason":"why"`},
}

// TestLines: the text and the JSON of events, and that a decoded line says and encodes
// the same.
func TestLines(t *testing.T) {
	for _, c := range lines {
		line := c.event.Line()
		line.Time, line.Synchronizer = time.Unix(1, 0), "g"
		if line.String() != c.text {
			t.Errorf("%T: %s\nwant %s", c.event, line.String(), c.text)
		}
		text, err := json.Marshal(&line)
		if err != nil || !strings.Contains(string(text), c.json) || !strings.Contains(string(text), `"synchronizer":"g"`) {
			t.Errorf("%T: %s, %v\nwant %s", c.event, text, err, c.json)
		}
		back, again := decode(t, string(text))
		if back.String() != c.text || back.Event != line.Event || back.Synchronizer != "g" || !back.Time.Equal(line.Time) || again != string(text) {
			t.Errorf("%s\ncame back as %q\n%s", text, back.String(), again)
		}
	}
}

func decode(t *testing.T, text string) (l *monitor.Line, again string) {
	t.Helper()
	l = &monitor.Line{}
	if err := json.Unmarshal([]byte(text), l); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	b, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	return l, string(b)
}

// TestLinesOfOthers: what only watchers are told, what a run alone tells, and what a
// newer synchronizer may.
func TestLinesOfOthers(t *testing.T) {
	for text, want := range map[string]string{
		`{"event":"lost","member":"w1","reason":"left"}`:                    "lost member w1: left",
		`{"event":"skipped","lines":1}`:                                     "1 event left out: too many at once",
		`{"event":"reload","accepted":false,"reason":"why"}`:                "reload refused, the old configuration is kept: why",
		`{"event":"finish","outcome":"done","result_bytes":5000}`:           "the program is done: its result has 5000 bytes",
		`{"event":"fired"}`:                                                 " fired (decision ) on ; held, for less than the clocks' bound of 0s",
		`{"event":"plan","moves":[{"load":"a"}],"moves_left_out":9}`:        "10 moves (, decision ): ; longest queue without end, then without end: a from  to  and 9 more",
		`{"event":"verdict","predicate":"p","truth":"true","suppressed":2}`: "p is true; its cooldown keeps it from firing",
		`{"b":1,"event":"new","a":[1e3]}`:                                   "new",
		`{"event":"fired","witness":[{"member":"a","state":{"b":1,"a":2}}],"witness_left_out":9,"predicate":"p","decision":"g/1/1","same_clock":true}`: "p fired (decision g/1/1) on a (b=1 a=2) and 9 more; held 0s by the same clock",
	} {
		if l, again := decode(t, text); l.String() != want || again != text {
			t.Errorf("%s: %q, and %s\nwant %q", text, l.String(), again, want)
		}
	}
	for text, want := range map[string]string{
		`{`:                             "unexpected end of JSON input",
		`{"event":""}`:                  "the line has no event",
		`{"event":"epoch","epoch":"x"}`: "json: cannot unmarshal string into Go struct field Epoch.epoch of type uint64",
	} {
		if err := json.Unmarshal([]byte(text), &monitor.Line{}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestLineWithoutBody: its own keys are all that it has.
func TestLineWithoutBody(t *testing.T) {
	text, err := json.Marshal(&monitor.Line{Event: "ready", Synchronizer: "s", Time: time.Unix(0, 0)})
	if want := `{"event":"ready","synchronizer":"s","time":"1970-01-01T00:00:00Z"}`; err != nil || string(text) != want {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
}

func TestSeconds(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 999: "999ns", 1234567: "1.23ms", 12345678901: "12.35s", 71 * time.Minute: "1h11m0s",
	} {
		if got := monitor.Seconds(d.Seconds()); got != want {
			t.Errorf("%d: got %s, want %s", d, got, want)
		}
	}
}

// FuzzLine: whatever a run tells, it is refused, or has a text and is read again.
func FuzzLine(f *testing.F) {
	for _, c := range lines {
		line := c.event.Line()
		text, err := json.Marshal(&line)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add(`{"event":"fired","witness":[{"state":null}],"held_seconds":1e300}`)
	f.Add(`{"event":"epoch","epoch":-1}`)
	f.Add(`{"event":"pass","decision":null,"branch":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		var l monitor.Line
		if json.Unmarshal([]byte(text), &l) != nil {
			return
		}
		if l.Event == "" || l.Body == nil && l.String() != l.Event {
			t.Fatalf("%s is %q", text, l.String())
		}
		if _, again := decode(t, text); again == "" {
			t.Fatalf("%s is not read again", text)
		}
		_ = l.String()
	})
}
