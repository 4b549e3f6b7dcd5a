package synccore_test

import (
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// TestHoldsGoOnAfterTakeover: whenever another machine comes to follow, a hold time that a join or
// a leave does not end ends at the same instant in both, as does one that begins with them.
func TestHoldsGoOnAfterTakeover(t *testing.T) {
	levels, err := configfile.Parse("test.yaml", []byte(`
synchronizers:
  gsync:
    members: {group: g, count: 2, min: 1}
    state: {on: bool}
    memory: {joined: {type: bool, initial: false}}
    predicates:
      on: {when: "any(members, .on)", for: 100ns}
      many: {when: "len(members) > 2", set: {joined: "true"}}
      after: {when: "memory.joined", for: 50ns}
      alone: {when: "len(members) < 3 and memory.joined", for: 40ns}
`))
	if err != nil {
		t.Fatal(err)
	}
	hello := func(name string) synccore.Input {
		return synccore.Input{Kind: synccore.InHello, From: name, Hello: &wire.Hello{Member: name, Incarnation: 1, Host: "box", Domain: "d"}}
	}
	batch := func(name string, first bool, alive clocksync.Instant, leaves bool) synccore.Input {
		stamp := func(at clocksync.Instant) clocksync.Stamp {
			return clocksync.Stamp{Domain: "d", Mono: at, Within: clocksync.Unbounded}
		}
		b := &wire.Batch{Member: name, Incarnation: 1, Evidence: wire.Evidence{Seq: 1, At: stamp(alive)}, Leaving: leaves}
		if first {
			b.Reports = []wire.Report{{Seq: 1, At: stamp(alive - 1), Row: []scgs.Value{scgs.BoolValue(name == "a")}}}
		}
		return synccore.Input{Kind: synccore.InBatch, From: name, Batch: b}
	}
	inputs := []synccore.Input{
		hello("a"), hello("b"), hello("c"),
		batch("a", true, 11, false), batch("b", true, 11, false), batch("a", false, 20, false),
		batch("c", true, 31, false), // An epoch without a global state, up to the evidence of a and b.
		batch("a", false, 40, false), batch("b", false, 40, false), batch("c", false, 41, false),
		batch("c", false, 60, true),
		batch("a", false, 89, false), batch("b", false, 89, false), batch("b", false, 90, false), batch("a", false, 90, false),
		batch("a", false, 99, false), batch("b", false, 99, false), batch("b", false, 100, false), batch("a", false, 100, false),
		batch("a", false, 109, false), batch("b", false, 109, false), batch("b", false, 110, false), batch("a", false, 110, false),
	}
	run := func(from int) (fired map[string]int) {
		fired = map[string]int{}
		core := synccore.New(levels[0], synccore.Options{Term: 1})
		f := &follower{t: t, of: func() *synccore.Core { return core }}
		var out synccore.Output
		for i := range inputs {
			now := clocksync.Instant(i + 1)
			in := inputs[i]
			core.Step(now, &in, &out)
			verdicts := out.Verdicts
			switch {
			case i == from:
				f.attach(now)
			case i > from:
				f.follow(now, &in, core.MadeAlone(&out))
				verdicts = f.out.Verdicts
				if f.core.Sum() != core.Sum() {
					t.Fatalf("followed since %d, it stands elsewhere after input %d", from, i)
				}
			}
			for _, v := range verdicts {
				if v.Fired {
					fired[v.Predicate] = i
				}
			}
		}
		return fired
	}
	want := map[string]int{"on": 22, "many": 8, "after": 14, "alone": 18}
	for from := 3; from <= len(inputs); from++ {
		got := run(from)
		for name, at := range want {
			if got[name] != at {
				t.Errorf("followed since %d: %s fires at input %d, want %d", from, name, got[name], at)
			}
		}
	}
}
