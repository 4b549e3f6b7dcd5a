package synccore

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// drawLevel draws a thread-level synchronizer whose predicates read and set
// what they can.
func drawLevel(t *rapid.T) *plan.Level {
	var text strings.Builder
	text.WriteString(`
synchronizers:
  gsync:
    members: {group: g}
    state: {n: int}
    predicates:
      go:
        when: "true"
        signal: {kind: activate, region: work, data: {limit: "count(members, .n > 0)"}}
  tsync:
    parent: gsync
    members: {threads: {min: 1, max: 3}}
    state: {on: bool, n: int}
    process: {queue: int}
    memory: {k: {type: int, initial: 1}, b: bool}
    summary: {n: "sum(members, .n)"}
    predicates:
`)
	for i := range rapid.IntRange(1, 6).Draw(t, "predicates") {
		when := rapid.SampledFrom([]string{
			"all(members, .on)", "any(members, .n > memory.k)", "sum(members, .n) > memory.k", "memory.k % 2 == 0", "memory.b",
			"process.queue > 1", "from_parent.go.limit > memory.k", "from_parent.go.limit > 1 and any(members, .on)",
			"max(map(members, .n)) > 1 or memory.b", "all(members, .online)", "len(members) > 1", "true", "let m = mean(map(members, .n)); count(members, .n > m) == 1",
		}).Draw(t, "when")
		fmt.Fprintf(&text, "      p%d:\n        when: %q\n        priority: %d\n", i, when, rapid.IntRange(0, 2).Draw(t, "priority"))
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			text.WriteString("        every: true\n")
		case 1:
			text.WriteString("        for: 3ms\n")
		}
		if set := rapid.SampledFrom([]string{"", "{k: memory.k + 1}", "{k: \"sum(members, .n)\"}", "{b: \"any(members, .on)\"}"}).Draw(t, "set"); set != "" {
			fmt.Fprintf(&text, "        set: %s\n", set)
		}
		if rapid.Bool().Draw(t, "signals") {
			text.WriteString("        signal: {kind: activate, region: work, to: \"filter(members, .on)\", data: {k: memory.k}}\n")
		}
	}
	plans, err := configfile.Parse("level.yaml", []byte(text.String()))
	if err != nil {
		t.Fatalf("%v\n%s", err, text.String())
	}
	return plans.Get("tsync")
}

// threads are the members as the machines know them.
type threads struct {
	now, mono clocksync.Instant
	seq       [3]uint64 // 0: not there
	lives     [3]uint64
}

func (th *threads) stamp() clocksync.Stamp {
	th.mono += clocksync.Instant(time.Millisecond)
	return clocksync.Stamp{Domain: "host", Mono: th.mono, Within: clocksync.Unbounded}
}

// input draws the next input, and returns a function that makes it: each
// machine has its own.
func (th *threads) input(t *rapid.T) func() *Input {
	th.now = th.now.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "ms")) * time.Millisecond)
	i := rapid.IntRange(0, 2).Draw(t, "thread")
	name := fmt.Sprintf("t%d", i)
	at := th.stamp()
	value := scgs.IntValue(rapid.Int64Range(0, 3).Draw(t, "value"))
	if rapid.IntRange(0, 9).Draw(t, "missing") == 0 {
		value = scgs.Value{}
	}
	on := scgs.BoolValue(rapid.Bool().Draw(t, "on"))
	kind := rapid.IntRange(0, 11).Draw(t, "kind")
	switch {
	case th.lives[i] == 0, th.seq[i] == 0 && kind < 6:
		th.lives[i]++
		th.seq[i] = 1
		life := th.lives[i]
		return func() *Input {
			return &Input{Kind: InHello, From: name, Hello: &wire.Hello{Member: name, Incarnation: life, Domain: "host"}}
		}
	case kind == 0:
		life, seq := th.lives[i], th.seq[i]
		th.seq[i] = 0
		return func() *Input {
			return &Input{Kind: InBatch, From: name, Batch: &wire.Batch{
				Member: name, Incarnation: life, Leaving: true, Reports: []wire.Report{{Seq: seq, End: true, At: at}},
			}}
		}
	case kind == 1:
		return func() *Input { return &Input{Kind: InProcess, At: at, Row: []scgs.Value{value}} }
	case kind == 2:
		return func() *Input {
			return &Input{Kind: InParent, Signal: &control.Signal{
				Name: "go", Kind: control.Activate, Decision: control.Decision{Synchronizer: "gsync", Epoch: 1, Number: 1},
				Data: []control.Datum{{Name: "limit", Value: value}},
			}}
		}
	case kind == 3:
		return func() *Input { return &Input{Kind: InTick} }
	case kind < 7 || th.seq[i] == 0:
		return func() *Input { return &Input{Kind: InEvidence, At: at} }
	}
	life, seq := th.lives[i], th.seq[i]
	th.seq[i]++
	return func() *Input {
		return &Input{Kind: InBatch, From: name, Batch: &wire.Batch{
			Member: name, Incarnation: life, Regions: []wire.Region{{Name: "work", Entry: 1, Since: 1}},
			Reports: []wire.Report{{Seq: seq, At: at, Row: []scgs.Value{on, value}}},
		}}
	}
}

// judged is a level with rules of its own, which may be changed.
func judged(level *plan.Level) *plan.Level {
	own := *level
	own.Rules = nil
	for _, r := range level.Rules {
		one := *r
		own.Rules = append(own.Rules, &one)
	}
	return &own
}

// TestOnlyWhatChanged runs beside the machine another machine that judges every predicate on
// every global state: all that they put out is the same.
func TestOnlyWhatChanged(t *testing.T) {
	fired, verdicts, epochs := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		plan := drawLevel(t)
		opt := Options{Term: 1, Local: true}
		some, all := New(plan, opt), New(judged(plan), opt)
		for _, r := range all.plan.Rules {
			r.Judge = func(monitor.GlobalState) (predicates.Truth, string) {
				v := r.When.Eval(all.scope)
				return v.Truth, v.Reason
			}
		}
		var th threads
		var got, want Output
		for range rapid.IntRange(10, 80).Draw(t, "steps") {
			input := th.input(t)
			some.Step(th.now, input(), &got)
			all.Step(th.now, input(), &want)
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(scgs.Value{})); diff != "" {
				t.Fatalf("all judged (-) and only what changed (+):\n%s", diff)
			}
			for _, v := range got.Verdicts {
				verdicts++
				if v.Fired {
					fired++
				}
			}
			epochs += len(got.Epochs)
		}
	})
	if fired == 0 || verdicts == fired || epochs == 0 {
		t.Errorf("%d verdicts, %d fired, in %d epochs", verdicts, fired, epochs)
	}
}

// TestUnread runs beside the machine of threads one that keeps letters, makes verdicts, and
// goes the general way: the signals, the summary and all else that is done are the same,
// and what nobody reads is not made.
func TestUnread(t *testing.T) {
	signals := 0
	rapid.Check(t, func(t *rapid.T) {
		plan := drawLevel(t)
		brief, full := New(plan, Options{Term: 1, Local: true, Once: true, Unread: true}), New(plan, Options{Term: 1, Local: true})
		full.General()
		var th threads
		var got, want Output
		step := func(a, b *Input) {
			brief.Step(th.now, a, &got)
			full.Step(th.now, b, &want)
			if len(got.Verdicts) > 0 || len(got.Fates) > 0 && got.Fates[0].Fate != control.NoSuchEntry {
				t.Fatalf("verdicts %+v, fates %+v", got.Verdicts, got.Fates)
			}
			if got.Wake < want.Wake { // It may be later: no letter is due.
				t.Fatalf("the next step is due at %v, and at %v in the general way", got.Wake, want.Wake)
			}
			fates, verdicts := want.Fates, want.Verdicts
			want.Verdicts, want.Fates, want.Wake = got.Verdicts, got.Fates, got.Wake
			diff := cmp.Diff(want, got, cmp.AllowUnexported(scgs.Value{}), cmpopts.EquateEmpty())
			want.Fates, want.Verdicts = fates, verdicts
			if diff != "" {
				t.Fatalf("in the general way (-) and in the short one (+):\n%s", diff)
			}
			if a, b := full.Counts(), brief.Counts(); a != b || full.decisions != brief.decisions {
				t.Fatalf("the counts are %+v with %d decisions, and %+v with %d in the general way", b, brief.decisions, a, full.decisions)
			}
		}
		for range rapid.IntRange(10, 80).Draw(t, "steps") {
			input := th.input(t)
			step(input(), input())
			for _, f := range slices.Clone(got.Signals) {
				signals += len(f.Msg.Signals)
				ack := wire.Ack{Member: f.To, Incarnation: f.Msg.Incarnation}
				for _, s := range f.Msg.Signals {
					ack.Answers = append(ack.Answers, wire.Answer{Decision: s.Decision, Name: s.Name, Target: s.Target, Fate: control.Applied})
				}
				step(&Input{Kind: InTick}, &Input{Kind: InAck, From: f.To, Ack: &ack})
			}
		}
	})
	if signals == 0 {
		t.Error("no signals")
	}
}
