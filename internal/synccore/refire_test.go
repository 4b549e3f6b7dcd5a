package synccore_test

import (
	"slices"
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

const steadily = `
synchronizers:
  gsync:
    members: {group: g, count: 1}
    state: {on: bool}
    memory: {n: {type: int, initial: 0}, m: {type: int, initial: 0}}
    predicates:
      on: {when: "any(members, .on)", set: {n: memory.n + 1}, signal: {kind: activate, region: r}}
      set: {when: "any(members, .on)", set: {m: memory.m + 1}}
      two: {modality: atleast, when: "count(members, .on) >= 2", signal: {kind: activate, region: r}}
`

// TestNewcomersAfterTakeover: a machine that has followed another one, from wherever on, tells
// newcomers alone of a predicate that stays true, and one that begins with what the other one had
// in mind tells all.
func TestNewcomersAfterTakeover(t *testing.T) {
	hello := func(name string) synccore.Input {
		return synccore.Input{Kind: synccore.InHello, From: name, Hello: &wire.Hello{Member: name, Incarnation: 1, Host: "box", Domain: "d"}}
	}
	batch := func(name string, first bool, alive clocksync.Instant) synccore.Input {
		stamp := func(at clocksync.Instant) clocksync.Stamp {
			return clocksync.Stamp{Domain: "d", Mono: at, Within: clocksync.Unbounded}
		}
		b := &wire.Batch{Member: name, Incarnation: 1, Evidence: wire.Evidence{Seq: 1, At: stamp(alive)}}
		if first {
			b.Reports = []wire.Report{{Seq: 1, At: stamp(alive - 1), Row: []scgs.Value{scgs.BoolValue(name == "a")}}}
		}
		return synccore.Input{Kind: synccore.InBatch, From: name, Batch: b}
	}
	before := []synccore.Input{
		hello("a"), batch("a", true, 11), hello("b"), batch("b", true, 21), batch("a", false, 30), batch("b", false, 30),
		hello("c"), batch("c", true, 41), batch("a", false, 50), batch("b", false, 50), batch("c", false, 50),
	}
	after := []synccore.Input{
		hello("d"), batch("d", true, 61), batch("a", false, 70), batch("b", false, 70), batch("c", false, 70), batch("d", false, 70),
	}
	for from := 1; from < len(before); from++ {
		core := synccore.New(compile(t, steadily), synccore.Options{Term: 1})
		f := &follower{t: t, of: func() *synccore.Core { return core }}
		var out synccore.Output
		now := clocksync.Instant(0)
		for i := range before {
			now++
			core.Step(now, &before[i], &out)
			switch {
			case i == from:
				f.attach(now)
			case i > from:
				f.follow(now, &before[i], core.MadeAlone(&out))
			}
		}
		if f.core.Sum() != core.Sum() {
			t.Fatalf("followed since %d, it stands elsewhere", from)
		}
		told := func(inputs ...synccore.Input) (names []string) {
			for i := range inputs {
				now++
				f.step(now, &inputs[i])
				for _, fate := range f.out.Fates {
					names = append(names, fate.Signal.Target)
				}
			}
			slices.Sort(names)
			return names
		}
		if names := told(synccore.Input{Kind: synccore.InTerm, Term: 2}); len(names) > 0 {
			t.Errorf("followed since %d, the takeover tells %v", from, names)
		}
		if names := told(after...); !slices.Equal(names, []string{"d"}) {
			t.Errorf("followed since %d, told are %v, want d", from, names)
		}
		for _, v := range f.core.Status(now).Memory {
			if v.Value != int64(1) {
				t.Errorf("followed since %d, %s is %v, want 1: it is set once", from, v.Name, v.Value)
			}
		}
		kept := f.core.Kept()
		f.core = synccore.New(f.core.Level(), synccore.Options{Term: 3})
		if names := told(append([]synccore.Input{{Kind: synccore.InKept, Kept: kept}}, before[:6]...)...); !slices.Equal(names, []string{"a", "b"}) {
			t.Errorf("another machine tells %v, want a and b", names)
		}
	}
}
