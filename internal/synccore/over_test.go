package synccore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// TestOver: a signal is over if a state of the witness was known to have ended at the decision, and if its target can
// read that.
func TestOver(t *testing.T) {
	const text = `
synchronizers:
  gsync:
    members: {group: g, count: 2}
    state: {n: int}
    predicates:
      both:
        when: all(members, .n > 0)
        signal: {kind: activate, region: r}
`
	for name, c := range map[string]struct {
		before, after []wire.Report // the reports of b before a shows that its state holds, and those with its evidence
		want          string
	}{
		"both states hold":               {want: "a false, b false"},
		"the end is known":               {before: []wire.Report{reportOf(3, 30, 0)}, want: "a true, b false"},
		"the end waits behind a gap":     {before: []wire.Report{reportOf(4, 35, 0)}, want: "a true, b false"},
		"the end comes after the signal": {after: []wire.Report{reportOf(3, 30, 0)}, want: "a false, b false"},
	} {
		core := synccore.New(compile(t, text), synccore.Options{Term: 1})
		var out synccore.Output
		var sent []string
		now := clocksync.Instant(0)
		step := func(in synccore.Input) {
			now++
			core.Step(now, &in, &out)
			if len(out.Rejected) > 0 {
				t.Fatalf("%s: %+v", name, out.Rejected)
			}
			for _, a := range out.Signals {
				for i := range a.Msg.Signals {
					sent = append(sent, fmt.Sprintf("%s %t", a.Msg.Signals[i].Target, a.Msg.Signals[i].Over))
				}
			}
		}
		batch := func(member string, evidence wire.Evidence, reports ...wire.Report) {
			step(synccore.Input{Kind: synccore.InBatch, From: member, Batch: &wire.Batch{
				Member: member, Incarnation: 1, Reports: reports, Regions: []wire.Region{{Name: "r", Entry: 5}}, Evidence: evidence,
			}})
		}
		for _, member := range []string{"a", "b"} {
			step(synccore.Input{Kind: synccore.InHello, From: member, Hello: &wire.Hello{Member: member, Incarnation: 1, Domain: "host", Over: member == "a"}})
		}
		batch("a", wire.Evidence{}, reportOf(1, 10, 0))
		batch("b", wire.Evidence{}, reportOf(1, 10, 0))
		batch("a", wire.Evidence{}, reportOf(2, 20, 1))
		batch("b", wire.Evidence{}, append([]wire.Report{reportOf(2, 22, 1)}, c.before...)...)
		batch("b", wire.Evidence{Seq: 2, At: atHost(28)})
		if len(sent) > 0 {
			t.Errorf("%s: sent without evidence of a: %v", name, sent)
		}
		batch("a", wire.Evidence{Seq: 2, At: atHost(40)})
		batch("b", wire.Evidence{}, c.after...)
		slices.Sort(sent)
		if got := strings.Join(sent, ", "); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func reportOf(seq uint64, mono clocksync.Instant, n int64) wire.Report {
	return wire.Report{Seq: seq, At: atHost(mono), Row: []scgs.Value{scgs.IntValue(n)}}
}

func atHost(mono clocksync.Instant) clocksync.Stamp {
	return clocksync.Stamp{Domain: "host", Mono: mono, Within: clocksync.Unbounded}
}
