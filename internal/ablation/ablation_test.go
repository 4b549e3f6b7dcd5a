package ablation_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gopegasus/pegasus/balance"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/ablation"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// TestRecorded judges a run of examples/pool with four members that send their states
// every 20 ms (-members 4 -tasks 16 -batch 20ms).
func TestRecorded(t *testing.T) {
	raw, err := os.ReadFile("testdata/pool.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	greedy := balance.Default()
	greedy.Strategy = balance.Greedy
	for _, c := range []struct {
		options ablation.Options
		want    []ablation.Counts
	}{
		{ablation.Options{}, []ablation.Counts{
			{View: "consistent", Views: 22, Old: 17, Plans: 9, Moves: 43, Stops: 3},
			{View: "latest", Views: 28, Torn: 9, Old: 20, Plans: 15, Moves: 82, Wrong: 4, NoGain: 4, WrongTorn: 4, Stops: 3},
		}},
		{ablation.Options{Balance: &greedy, Stop: "all(members, len(.tasks) == 0 and .rest == 0) and sum(members, .sent) == sum(members, .received)"}, []ablation.Counts{
			{View: "consistent", Views: 22, Old: 17, Plans: 17, Moves: 73, Wrong: 4, Gone: 3, NoGain: 1, Stops: 1},
			{View: "latest", Views: 28, Torn: 9, Old: 20, Plans: 23, Moves: 119, Wrong: 13, Gone: 5, NoGain: 8, WrongTorn: 10, Stops: 1},
		}},
	} {
		r, err := ablation.Run(bytes.NewReader(raw), c.options)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, r.Views); d != "" {
			t.Errorf("%s: %s", r.Strategy, d)
		}
		if r.Members != 4 || r.Loads != 64 || r.Moved == 0 || r.Differs != 0 {
			t.Errorf("%+v", r)
		}
	}
}

// tape records what a machine is told.
type tape struct {
	t      *testing.T
	core   *synccore.Core
	text   []byte
	out    synccore.Output
	digest synccore.Digest
}

func record(t *testing.T, config string) *tape {
	t.Helper()
	plans, err := synccore.Parse("c.yaml", []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	r := &tape{t: t, core: synccore.New(plans[0], synccore.Options{Term: 1, Reference: "host"})}
	h := r.core.NewHeader()
	r.text = synccore.AppendHeader(nil, &h)
	for _, name := range []string{"a", "b"} {
		r.step(1, synccore.Input{Kind: synccore.InHello, From: name, Hello: &wire.Hello{Member: name, Incarnation: 1, Host: "box", Domain: "host"}})
	}
	return r
}

func (r *tape) step(now clocksync.Instant, in synccore.Input) {
	r.t.Helper()
	text, err := r.core.AppendInput(r.text, now, &in)
	if err != nil {
		r.t.Fatal(err)
	}
	r.core.Step(now, &in, &r.out)
	r.digest.Add(&r.out)
	r.text = synccore.AppendOutput(text, &r.digest)
}

// state is a report that a member made at an instant and that came at another, with a
// sign that the state held until alive.
func (r *tape) state(now clocksync.Instant, member string, seq uint64, at, alive clocksync.Instant, rest float64, tasks ...int64) {
	r.t.Helper()
	list := make([]scgs.Value, len(tasks))
	for i, n := range tasks {
		list[i] = scgs.IntValue(n)
	}
	stamp := func(m clocksync.Instant) clocksync.Stamp {
		return clocksync.Stamp{Domain: "host", Mono: m, Within: clocksync.Unbounded}
	}
	r.step(now, synccore.Input{Kind: synccore.InBatch, From: member, Batch: &wire.Batch{
		Member: member, Incarnation: 1, Regions: []wire.Region{{Name: "r", Entry: 1, Since: 1}},
		Reports:  []wire.Report{{Seq: seq, At: stamp(at), Row: []scgs.Value{scgs.ListValue(scgs.Int, list...), scgs.FloatValue(rest)}}},
		Evidence: wire.Evidence{Seq: seq, At: stamp(alive)},
	}})
}

const twoMembers = `synchronizers:
  g:
    members: {group: g, count: 2}
    state: {tasks: {list: int}, rest: float}
`

// TestTorn has a task go from a to b. What a says comes at once, what b says comes
// late:
//
//	true time  10      20        30       40
//	a          task 7  (nothing)
//	b          (nothing)         task 7   works on it
//	           known at 12 ...   a's end is known at 21, b's states at 35 and 41
//
// From 21 to 35 the newest reports say that nobody has anything, and b has the task.
func TestTorn(t *testing.T) {
	r := record(t, twoMembers+"    balance: {loads: .tasks, rest: .rest, region: r, strategy: none}\n")
	r.state(10, "a", 1, 10, 10, 0, 7)
	r.state(12, "b", 1, 11, 12, 0)
	r.state(21, "a", 2, 20, 21, 0)
	r.state(35, "b", 2, 30, 35, 0, 7)
	r.state(41, "b", 3, 40, 41, 1)
	r.state(50, "a", 3, 49, 50, 0)
	got, err := ablation.Run(bytes.NewReader(r.text), ablation.Options{})
	if err != nil {
		t.Fatal(err)
	}
	latest := got.Views[1]
	if latest.Stops != 1 || latest.WrongStops != 1 || got.Moved != 1 || got.Views[0].Torn != 0 {
		t.Errorf("%+v", got)
	}
}

// alive is a sign of a member's state.
func (r *tape) alive(now clocksync.Instant, member string, seq uint64, at clocksync.Instant) {
	r.t.Helper()
	r.step(now, synccore.Input{Kind: synccore.InBatch, From: member, Batch: &wire.Batch{
		Member: member, Incarnation: 1, Regions: []wire.Region{{Name: "r", Entry: 1, Since: 1}},
		Evidence: wire.Evidence{Seq: seq, At: clocksync.Stamp{Domain: "host", Mono: at, Within: clocksync.Unbounded}},
	}})
}

// TestWrongMoves has a give two of four tasks to b by itself, at 20. That b has them is
// known 5 ms later, and that a has not after that. In between the newest reports have
// them twice, and two more seem to be worth a move.
func TestWrongMoves(t *testing.T) {
	r := record(t, twoMembers+"    balance: {loads: .tasks, rest: .rest, region: r, strategy: none}\n")
	r.state(10, "a", 1, 10, 10, 0, 1, 2, 3, 4)
	r.state(12, "b", 1, 11, 12, 0)
	r.alive(15, "a", 1, 14)
	r.state(5_000_023, "b", 2, 22, 5_000_023, 0, 3, 4)
	r.state(5_000_030, "a", 2, 20, 5_000_030, 0, 1, 2)
	decide := balance.Default()
	got, err := ablation.Run(bytes.NewReader(r.text), ablation.Options{Balance: &decide})
	if err != nil {
		t.Fatal(err)
	}
	want := []ablation.Counts{
		{View: "consistent", Views: 2, Plans: 1, Moves: 2},
		{View: "latest", Views: 3, Torn: 1, Old: 1, Plans: 2, Moves: 4, Wrong: 2, NoGain: 2, WrongTorn: 2},
	}
	if d := cmp.Diff(want, got.Views); d != "" {
		t.Error(d)
	}
}

// TestConditions judges ends alone, without a section balance.
func TestConditions(t *testing.T) {
	r := record(t, twoMembers)
	r.state(10, "a", 1, 10, 10, 1)
	r.state(12, "b", 1, 11, 12, 0)
	r.state(21, "a", 2, 20, 21, 0)
	r.state(35, "b", 2, 19, 35, 1)
	got, err := ablation.Run(bytes.NewReader(r.text), ablation.Options{Stop: "all(members, .rest == 0)", Work: "any(members, .rest > 0)"})
	if err != nil {
		t.Fatal(err)
	}
	if c := got.Views[0]; c.Stops != 0 || got.Strategy != balance.None {
		t.Errorf("%+v", got)
	}
	if c := got.Views[1]; c.Stops != 1 || c.WrongStops != 1 {
		t.Errorf("%+v", got)
	}
}

func TestRefusals(t *testing.T) {
	plain := record(t, twoMembers)
	plain.state(10, "a", 1, 10, 10, 1)
	two := record(t, twoMembers+"    balance: {loads: .tasks, region: r}\n")
	two.step(5, synccore.Input{Kind: synccore.InHello, From: "c", Hello: &wire.Hello{Member: "c", Incarnation: 1, Host: "other", Domain: "other"}})
	two.state(10, "a", 1, 10, 10, 1)
	two.step(11, synccore.Input{Kind: synccore.InBatch, From: "c", Batch: &wire.Batch{Member: "c", Incarnation: 1, Reports: []wire.Report{{
		Seq: 1, At: clocksync.Stamp{Domain: "other", Mono: 3, Within: clocksync.Exactly(9)}, Row: []scgs.Value{scgs.ListValue(scgs.Int), scgs.FloatValue(1)},
	}}}})
	for name, c := range map[string]struct {
		text    []byte
		options ablation.Options
		want    string
	}{
		"no section":   {plain.text, ablation.Options{Stop: "all(members, .rest == 0)"}, `the recorded configuration of "g" has no section balance: say when the work would be ended, and when there is some`},
		"two clocks":   {two.text, ablation.Options{}, "its members are stamped by several clocks"},
		"no journal":   {[]byte("{}\n"), ablation.Options{}, "line 1: the first line is no header of a journal"},
		"no condition": {two.text[:len(two.text)-1], ablation.Options{Stop: ".rest"}, "stop: "},
	} {
		if name == "no condition" {
			c.text = record(t, twoMembers+"    balance: {loads: .tasks, region: r}\n").text
		}
		if _, err := ablation.Run(bytes.NewReader(c.text), c.options); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWithdrawn: a has nothing left to do its tasks with. However many go to b, each
// is a gain.
func TestWithdrawn(t *testing.T) {
	r := record(t, twoMembers+"    balance: {loads: .tasks, share: \".rest > 0.0 ? 0.0 : 1.0\", region: r, strategy: none}\n")
	r.state(10, "a", 1, 10, 10, 1, 1, 2, 3, 4)
	r.state(12, "b", 1, 11, 12, 0)
	r.alive(15, "a", 1, 14)
	decide := balance.Default()
	got, err := ablation.Run(bytes.NewReader(r.text), ablation.Options{Balance: &decide})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range got.Views {
		if v.Moves != 4 || v.Wrong != 0 {
			t.Errorf("%+v", v)
		}
	}
}
