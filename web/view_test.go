package web

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/monitor"
)

// sample is a status with all that a view tells.
func sample() *monitor.Status {
	return &monitor.Status{
		Synchronizer: "g", Group: "workers", Tenant: "blue", Awaited: 3, Leader: `process 7 on "host"`, Standbys: []string{`process 8 on "host", warm`},
		State: &monitor.StateStatus{Epoch: 2, Index: 5, InForce: true, Held: 1.5, Partial: true},
		Members: []monitor.MemberStatus{
			{Name: "w1", Standing: monitor.Ready, Heard: 0.01},
			{
				Name: "w2", Host: "h", Standing: monitor.InEpoch, Silent: true, Heard: 4, Clock: monitor.ClockStatus{Status: "synchronized", Source: "ntp", Bound: new(0.001)},
				State: monitor.Values{{Name: "load", Value: json.Number("9007199254740993")}},
			},
			{Name: "w3", Standing: monitor.InEpoch, Gap: 2, Behind: 3, Gaps: 1, Lost: 9},
			{Name: "w4", Standing: monitor.NoState, Heard: 1},
			{Name: "w5", Standing: monitor.InEpoch, Unknown: true, Heard: 1},
			{Name: "w6", Standing: monitor.Leaving, Heard: 1},
			{Name: "w7", Standing: monitor.Gone, Why: "left", Silent: true},
			{Name: "w8", Standing: monitor.InEpoch, State: monitor.Values{{Name: "load", Value: nil}}},
		},
		Predicates: []monitor.PredicateStatus{
			{Name: "<img src=x onerror=alert(1)>\"'\u2028\n\x00", Truth: "true", Since: new(1.5), Decision: "g/1/2", Ago: 3, Fired: 2, Notes: []string{"no region"}},
			{Name: "held", Truth: "true", Since: new(1.0), Armed: true, Hold: &monitor.Hold{Certain: 0.5, Wanted: 2}},
			{Name: "new", Truth: "unknown"},
			{Name: "no", Truth: "false", Since: new(1.0), Armed: true, Decision: "g/1/3", Ago: 1},
			{Name: "lost", Truth: "unknown", Reason: "a report is lost", Since: new(1.0), Armed: true},
			{Name: "yes", Truth: "true", Since: new(1.0), Armed: true},
		},
	}
}

// TestStatusView has each text.
func TestStatusView(t *testing.T) {
	v := newStatusView(sample(), 7*time.Second)
	if want := "global state 5 of epoch 2: in force, certainly held for 1.5s; the state of some member is unknown"; v.State != want {
		t.Errorf("%s\nwant %s", v.State, want)
	}
	wants := []string{
		"the group has 5 of the 3 members that it waits for (w1, w2, w3, w5, w8); this page has seen that for 7s",
		"w2: silent for 4s", "w3: a report is missing, and asked for since 2s", "w4: it has joined and has no state; heard 1s ago",
		"w5: nothing is known of its state; heard 1s ago", "w6: it is gone, and the epoch with it is not over; heard 1s ago",
	}
	if !slices.Equal(v.Waits, wants) {
		t.Errorf("waits:\n%s\nwant\n%s", strings.Join(v.Waits, "\n"), strings.Join(wants, "\n"))
	}
	var order []string
	for _, m := range v.Members {
		order = append(order, m.Name)
	}
	if got := strings.Join(order, " "); got != "w1 w2 w3 w4 w5 w6 w7 w8" || v.Members[7].Trouble || v.Members[7].State != "load=unknown" {
		t.Errorf("members: %s, %+v", got, v.Members[7])
	}
	var waits []string
	for _, p := range v.Predicates {
		waits = append(waits, p.Waits)
	}
	want := []string{"its reset, since it has fired; no region", "its hold time: certain for 500ms of 2s", "its first verdict in this epoch", "its condition", "a report is lost", ""}
	if !slices.Equal(waits, want) {
		t.Errorf("predicates wait for %q\nwant %q", waits, want)
	}
	if len(v.Decisions) != 2 || v.Decisions[0].ID != "g/1/3" || v.Decisions[1].Ago != "3s ago" {
		t.Errorf("decisions: %+v", v.Decisions)
	}
	over := newStatusView(&monitor.Status{Epoch: 1, State: &monitor.StateStatus{Epoch: 1, Index: 1}}, 0)
	if over.State != "global state 1 of epoch 1: over, and the next one is not certain yet" || len(over.Waits) > 0 || over.Leader != "its only process" {
		t.Errorf("%+v", over)
	}
	for _, view := range []any{over, newWhyView(&monitor.Explanation{Last: &monitor.LastDecision{}})} { // The scripts take lists.
		if text, err := json.Marshal(view); err != nil || strings.Contains(string(text), "null") {
			t.Errorf("%v: %s", err, text)
		}
	}
	large := &monitor.Status{}
	for i := range 3000 {
		large.Members = append(large.Members, monitor.MemberStatus{Name: strconv.Itoa(i), Silent: i == 2999, Standing: monitor.InEpoch})
		large.Predicates = append(large.Predicates, monitor.PredicateStatus{Name: strconv.Itoa(i), Decision: "d", Ago: float64(i)})
	}
	v = newStatusView(large, 0)
	if len(v.Members) != 500 || v.MembersMore != 2500 || v.Members[0].Name != "2999" || len(v.Predicates) != 1000 || v.PredicatesMore != 2000 || len(v.Decisions) != 10 {
		t.Errorf("%d and %d members, %d and %d predicates, %d decisions", len(v.Members), v.MembersMore, len(v.Predicates), v.PredicatesMore, len(v.Decisions))
	}
}

// explanation has a tree, and no decision.
func explanation() *monitor.Explanation {
	p := sample().Predicates[0]
	p.Truth, p.Since = "unknown", new(2.0)
	return &monitor.Explanation{
		Synchronizer: "g", PredicateStatus: p, For: 1, When: "all(members, .load > 1)",
		Parts: []monitor.Condition{
			{Text: "all(members, .load > 1)", Reason: "w3 is unknown"},
			{
				Depth: 1, Text: ".load > 1", Low: json.Number("1"), High: json.Number("3"), Reason: "a report is lost",
				True: &monitor.Some{Count: 2, Names: []string{"w1", "w2"}}, False: &monitor.Some{}, Unknown: &monitor.Some{Count: 1, Names: []string{"w3"}},
			},
		},
		Missing: []monitor.Missing{{Kind: "silent", Member: "w1", Text: "w1 is silent", Since: new(4.0)}, {Kind: "condition", Text: "it is not true"}},
	}
}

// TestWhyView has the parts of an explanation.
func TestWhyView(t *testing.T) {
	v := newWhyView(explanation())
	if v.Parts[0].Value != "unknown" || v.Parts[1].Value != "1 to 3" || v.Parts[1].For != "2: w1, w2" || v.Parts[1].Against != "" || v.Missing[0].Since != "4s" || v.Missing[1].Since != "" || v.Last != nil {
		t.Errorf("%+v", v)
	}
	e := explanation()
	e.Last = &monitor.LastDecision{
		ID: "g/1/2", Ago: 2, Epoch: 1, Index: 4, Partial: true, Held: 0.1, SameClock: true, LeftOut: 3,
		Witness: []monitor.WitnessState{{Member: "w1", State: monitor.Values{{Name: "busy", Value: true}}}, {Member: "w2", Unknown: true}},
	}
	v = newWhyView(&monitor.Explanation{Groups: []monitor.Explanation{*e, *e}})
	l := v.Groups[1].Last
	if l.Text != "on global state 4 of epoch 1; held 100ms by the same clock; the state of some member was unknown" || l.Witness[0].State != "busy=true" || l.Witness[1].State != "unknown" || l.LeftOut != 3 {
		t.Errorf("%+v", l)
	}
	e.Last.Inherited = true
	if l := newWhyView(e).Last; l.Text != "another process made this decision, and its witness is not known here" || len(l.Witness) > 0 {
		t.Errorf("%+v", l)
	}
}

// TestPlaceEvent: each kind of event has its lane.
func TestPlaceEvent(t *testing.T) {
	for _, c := range []struct {
		body monitor.Body
		want string
	}{
		{&monitor.VerdictLine{Predicate: "p", Truth: "unknown"}, "predicate p|unknown|false|false"},
		{&monitor.VerdictLine{Predicate: "p", Truth: "true", Firing: &monitor.Firing{}}, "predicate p|true|true|false"},
		{&monitor.Epoch{Epoch: 3}, "epoch|3|false|true"},
		{&monitor.Epoch{}, "epoch|none|false|true"},
		{&monitor.SignalLine{Target: "w1"}, "member w1||true|false"},
		{&monitor.SignalLine{Target: "w1", Group: "other"}, "member other/w1||true|false"},
		{&monitor.Dropped{Name: "w2"}, "member w2||true|false"},
		{&monitor.ClockLine{Member: "w3"}, "member w3||true|false"},
		{&monitor.PlanLine{}, "balance||true|false"},
		{&monitor.ProgramLine{}, "program||true|false"},
		{&monitor.Skipped{Lines: 3}, "messages||true|true"},
		{&monitor.Rejection{}, "messages||true|false"},
		{&monitor.Reload{}, "messages||true|false"},
		{nil, "messages||true|false"},
	} {
		lane, state, mark, ends := placeEvent(&monitor.Line{Body: c.body})
		if got := fmt.Sprint(lane, "|", state, "|", mark, "|", ends); got != c.want {
			t.Errorf("%T: %s, want %s", c.body, got, c.want)
		}
	}
}

// TestApp runs the scripts of the page on values of this package.
func TestApp(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node")
	}
	v := newStatusView(sample(), 7*time.Second)
	v.Time, v.WaitsMore = 1_700_000_000_000, 1
	var text []byte
	for _, view := range []any{v, newWhyView(explanation())} {
		line, err := json.Marshal(view)
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, line...), '\n')
	}
	file := filepath.Join(t.TempDir(), "views")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), node, "testdata/app_test.mjs", "page/app.js", file).CombinedOutput()
	if err != nil || string(out) != "ok\n" {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestProgramAndBalanceView: what runs where, with counts of replicas, what it waits for, and the last plan.
func TestProgramAndBalanceView(t *testing.T) {
	s := sample()
	runs := []monitor.RunStatus{{Phase: "starting", Processor: "n9"}}
	for i := range 6 {
		runs = append(runs, monitor.RunStatus{Phase: "running", Processor: "n" + strconv.Itoa(i)})
	}
	s.Program = &monitor.ProgramStatus{
		Name: "p", Outcome: "failed", Reason: "a block", LeftOut: 3, WaitsMore: 2,
		Blocks: []monitor.BlockStatus{{Path: "body.do", Name: "b", RunCounts: monitor.RunCounts{Starts: 9, Done: 1, Failed: 1, Twice: 1}, Runs: runs}},
		Waits:  []monitor.WaitStatus{{Path: "body", Name: "join", Replica: "1.0", For: "a node"}},
	}
	s.Balance = &monitor.BalanceStatus{Strategy: "greedy", Looks: 4, Quiet: 3, Plans: 1, Moves: 1, Flights: 2, Last: &monitor.PlanStatus{
		Verdict: "b has too much", Moves: []monitor.PlanMove{{Load: "l", From: "b", To: "a", Why: "it is the heaviest"}}, Refused: []monitor.PlanRefusal{{From: "c", Detail: "it is unknown"}}, LeftOut: 5,
	}}
	s.Params, s.Memory = []monitor.ParamStatus{{Name: "limit", Value: "5", Default: "1", Set: true}}, monitor.Values{{Name: "rounds", Value: json.Number("3")}}
	s.Denied, s.Shed = []monitor.DeniedStatus{{Subject: "a.>", Ago: 2}}, []monitor.ShedStatus{{From: "w1", Full: 2, Old: 1}}
	v := newStatusView(s, 0)
	text, err := json.Marshal([]any{v.Program, v.Balance, v.Facts})
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"name":"p","outcome":"failed: a block","blocks":[{"name":"b","starts":"9","done":"1","ended":"1 failed, 1 perhaps run twice",` +
		`"runs":"6 running on n0, n1, n2, n3, and 2 more; 1 starting on n9","path":"body.do"}],"blocks_more":3,"waits":[{"name":"join[1.0]","for":"a node","path":"body"}],"waits_more":2},` +
		`{"text":"strategy greedy: 4 looks, 3 of them in balance, 1 plans, 1 moves; last plan: b has too much","moves":[{"load":"l","from":"b","to":"a","why":"it is the heaviest"}],` +
		`"refused":[{"load":"c","detail":"it is unknown"}],"refused_more":5,"under_way":"2 loads are under way"},` +
		`["memory: rounds=3","parameter limit = 5, set; it was 1","the NATS server refuses to subscribe to \"a.\u003e\", last 2s ago","3 messages of w1 were shed unread"]]`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

// TestPairs: the tests that prove a decision, the closest first; those of possibly compare the other ends.
func TestPairs(t *testing.T) {
	const ms = clocksync.Instant(1_000_000)
	d := &monitor.LastDecision{Modality: "inst", Witness: []monitor.WitnessState{
		{Member: "a", Start: monitor.Range{From: -3 * ms, To: -1 * ms}, End: monitor.Range{From: 2 * ms, To: 5 * ms}},
		{Member: "b", Start: monitor.Range{From: 0, To: 0}, End: monitor.Range{From: 9 * ms, To: clocksync.MaxInstant}, Open: true},
		{Member: "c", Unknown: true},
	}}
	v := newLastView(d)
	want := []pairView{
		{Began: "b", Ended: "a", Start: "0s", End: "2ms", Margin: "2ms", margin: 2e6},
		{Began: "a", Ended: "b", Start: "-1ms", End: "9ms, not over then", Margin: "10ms", margin: 10e6},
	}
	if !slices.Equal(v.Pairs, want) || v.More != 0 {
		t.Errorf("%+v\nwant %+v", v.Pairs, want)
	}
	if w := v.Witness; w[0].Began != "-3ms to -1ms" || w[0].Ended != "2ms to 5ms" || w[1].Ended != "not over then; seen until 9ms to not known until when" || w[2].State != "unknown" || w[2].Began != "" {
		t.Errorf("%+v", w)
	}
	d.Modality = "possibly"
	if v = newLastView(d); v.Pairs[0].Began != "b" || v.Pairs[0].End != "5ms" || v.Pairs[1].Margin != "without end" {
		t.Errorf("%+v", v.Pairs)
	}
	for i := range 30 {
		d.Witness = append(d.Witness, monitor.WitnessState{Member: strconv.Itoa(i), End: monitor.Range{From: ms, To: ms}})
	}
	if v = newLastView(d); len(v.Pairs) != maxPairs || v.More != 32*31-maxPairs {
		t.Errorf("%d pairs, and %d more", len(v.Pairs), v.More)
	}
}

// TestPlacesOfPrograms: where each construct of a drawing stands, with replicas counted, and what an executor's status without
// a drawing leaves out.
func TestPlacesOfPrograms(t *testing.T) {
	at := func(seconds float64, attempt uint32) []monitor.RunStatus {
		return []monitor.RunStatus{{Phase: "running", Processor: "n1", Seconds: seconds, Attempt: attempt}}
	}
	p := &monitor.ProgramStatus{
		Name: "p", Outcome: "running", Drawing: &monitor.ProgramDrawing{Width: 10, Height: 20, Vertices: []monitor.ProgramVertex{{Shape: "block", Path: "a"}}},
		Blocks: []monitor.BlockStatus{
			{Path: "a", RunCounts: monitor.RunCounts{Starts: 2, Done: 1}, Runs: []monitor.RunStatus{{Phase: "running", Processor: "n1"}}},
			{Path: "b", RunCounts: monitor.RunCounts{Starts: 2, Done: 1, Failed: 1}},
			{Path: "c", RunCounts: monitor.RunCounts{Starts: 1, Done: 1}},
			{Path: "d", RunCounts: monitor.RunCounts{Starts: 1, Lost: 1}},
			{Path: "e", RunCounts: monitor.RunCounts{Starts: 1}},
			{Path: "g", RunCounts: monitor.RunCounts{Starts: 4, Done: 2}, Mean: 0.0123456, Longest: 3725.2, Runs: append(at(2.9, 2), at(0.5, 1)...)},
			{Path: "h", RunCounts: monitor.RunCounts{Starts: 2, Done: 1}, Mean: 1.5, Longest: 1.5, Runs: at(7200, 1)},
		},
		Waits: []monitor.WaitStatus{{Path: "a", For: "a node"}, {Path: "a", For: "a node"}, {Path: "f", For: "gsync.good"}},
	}
	want := map[string]placeView{
		"a": {"running", "2 started: 1 running on n1, 1 done; 2 replicas wait, the first one for a node"},
		"b": {"failed", "2 started: 1 done, 1 failed"},
		"c": {"done", "1 started: 1 done"},
		"d": {"lost", "1 started: 1 lost"},
		"e": {"", "1 started: none has ended"},
		"f": {"waiting", "waits for gsync.good"},
		"g": {"running", "4 started: 2 running on n1 (attempt 2), n1, the longest for 2 s, 2 done in 0.0123 s on average and 1h2m5s at most"},
		"h": {"running", "2 started: 1 running on n1 for 2h0m0s, 1 done in 1.5 s"},
	}
	if got := newProgramView(p).Places; !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	p.Drawing = nil
	if v := newProgramView(p); v.Places != nil || v.Drawing != nil || len(v.Blocks) != 7 {
		t.Errorf("%+v", v)
	}
}
