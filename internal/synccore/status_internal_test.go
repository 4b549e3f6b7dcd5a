package synccore

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/scgs"
)

// TestKeptWitness: what is kept bounds the core as all of it does.
func TestKeptWitness(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{0, 1, maxKept, maxKept + 1, 3 * maxKept}).Draw(t, "members")
		same := rapid.Bool().Draw(t, "same clock")
		witness := make([]monitor.Part, n)
		for i := range witness {
			at := func(what string) clocksync.Stamp {
				x := clocksync.Instant(rapid.IntRange(0, 9).Draw(t, what))
				return clocksync.Stamp{Mono: x, Within: clocksync.Around(10-x, 1)}
			}
			witness[i] = monitor.Part{Name: fmt.Sprintf("%04d", i), State: scgs.Part{Start: at("start"), End: at("end")}}
		}
		core := func(all []monitor.Part) (start, end clocksync.Instant) {
			start, end = clocksync.MinInstant, clocksync.MaxInstant
			for i := range all {
				start, end = max(start, heldFrom(&all[i].State, same)), min(end, heldTo(&all[i].State, same))
			}
			return start, end
		}
		parts, out := kept(witness, same)
		s, e := core(witness)
		ks, ke := core(parts)
		if len(parts)+out != n || len(parts) > maxKept || s != ks || e != ke {
			t.Fatalf("%d kept, %d left out, core %v-%v became %v-%v", len(parts), out, s, e, ks, ke)
		}
		for i := 1; i < len(parts); i++ {
			if parts[i].Name <= parts[i-1].Name {
				t.Fatalf("%s stands after %s", parts[i].Name, parts[i-1].Name)
			}
		}
	})
}

// crowd is a core with so many members in one global state.
func crowd(b *testing.B, members int) *Core {
	b.Helper()
	plans, err := configfile.Parse("bench.yaml", fmt.Appendf(nil, `
synchronizers:
  gsync:
    members: {group: g, count: %d}
    state: {on: bool, n: int, x: float}
    predicates:
      both: {when: "all(members, .on) && sum(members, .n) > 5"}
`, members))
	if err != nil {
		b.Fatal(err)
	}
	c := New(plans[0], Options{Term: 1})
	var out Output
	for i := range members {
		name := fmt.Sprintf("m%06d", i)
		c.Step(1, &Input{Kind: InHello, From: name, Hello: &wire.Hello{Member: name, Incarnation: 1, Domain: "d", Host: "h"}}, &out)
		at := func(m clocksync.Instant) clocksync.Stamp {
			return clocksync.Stamp{Domain: "d", Mono: m, Within: clocksync.Unbounded}
		}
		batch := &wire.Batch{Member: name, Incarnation: 1, Reports: []wire.Report{{
			Seq: 1, At: at(10), Row: []scgs.Value{scgs.BoolValue(true), scgs.IntValue(1), scgs.FloatValue(0.5)},
		}}, Evidence: wire.Evidence{Seq: 1, At: at(20)}}
		c.Step(2, &Input{Kind: InBatch, From: name, Batch: batch}, &out)
	}
	if !c.states[c.ruleIndex("both")].told {
		b.Fatal("there is no global state")
	}
	return c
}

// BenchmarkStatus is how long a question holds up the owner of a core.
func BenchmarkStatus(b *testing.B) {
	for _, members := range []int{10, 1_000, 10_000} {
		b.Run(fmt.Sprintf("members=%d", members), func(b *testing.B) {
			c := crowd(b, members)
			for b.Loop() {
				if s := c.Status(3); len(s.Members) != members {
					b.Fatal(len(s.Members))
				}
			}
		})
	}
}

func BenchmarkExplain(b *testing.B) {
	for _, members := range []int{10, 1_000, 10_000} {
		b.Run(fmt.Sprintf("members=%d", members), func(b *testing.B) {
			c := crowd(b, members)
			for b.Loop() {
				if _, ok := c.Explain(3, "both"); !ok {
					b.Fatal("no such predicate")
				}
			}
		})
	}
}
