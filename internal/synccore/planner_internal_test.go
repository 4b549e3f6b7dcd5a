package synccore

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/balance"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/outbox"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/scgs"
)

// TestStrategies: every strategy has its counters.
func TestStrategies(t *testing.T) {
	if len(balance.Names) != strategies {
		t.Errorf("there are counters of %d strategies, and these are %v", strategies, balance.Names)
	}
}

// TestOrdersRefused: where too many signals wait no order goes out. Then its loads are
// not under way, and the plan says so.
func TestOrdersRefused(t *testing.T) {
	plans, err := configfile.Parse("c.yaml", []byte(`synchronizers:
  g:
    members: {group: g, count: 2}
    state: {tasks: {list: int}}
    balance: {loads: .tasks, region: r}
`))
	if err != nil {
		t.Fatal(err)
	}
	c := New(plans[0], Options{Term: 1, Reference: "host"})
	var out Output
	for _, name := range []string{"a", "b"} {
		c.Step(1, &Input{Kind: InHello, From: name, Hello: &wire.Hello{Member: name, Incarnation: 1, Host: "box", Domain: "host"}}, &out)
	}
	for i := range uint64(outbox.Limit) {
		s := &control.Signal{Decision: control.Decision{Number: i}, Target: "a", Region: "other", Entry: 1, TTL: time.Hour}
		c.postSignal(outbox.Letter{Owner: outbox.Rule, Incarnation: 1, Signal: s}, &out)
	}
	var told []monitor.Plan
	tasks := map[string][]scgs.Value{"a": {scgs.IntValue(1), scgs.IntValue(2)}}
	for _, name := range []string{"a", "b"} {
		stamp := func(mono clocksync.Instant) clocksync.Stamp {
			return clocksync.Stamp{Domain: "host", Mono: mono, Within: clocksync.Unbounded}
		}
		c.Step(3, &Input{Kind: InBatch, From: name, Batch: &wire.Batch{
			Member: name, Incarnation: 1, Regions: []wire.Region{{Name: "r", Entry: 1, Since: 1}},
			Reports:  []wire.Report{{Seq: 1, At: stamp(2), Row: []scgs.Value{scgs.ListValue(scgs.Int, tasks[name]...)}}},
			Evidence: wire.Evidence{Seq: 1, At: stamp(3)},
		}}, &out)
		told = append(told, slices.Clone(out.Plans)...)
	}
	if len(told) != 1 {
		t.Fatalf("%+v", told)
	}
	p := &told[0].Plan
	if len(p.Moves) != 0 || c.planner.Status(3).Flights != 0 || c.planner.Status(3).Moves != 0 || c.Counts().Balance[0].Moves != 0 ||
		!strings.Contains(p.String(), "refused 1 on a to b: unsent: too many signals wait for their fate: it is left to a later plan\n") {
		t.Errorf("%v\n%+v", p, c.planner.Status(3))
	}
}
