package synccore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// TestGoPredicateFires: a predicate in Go fires by the rules of the configuration.
// The one member's x says what the Judge does: 1 true, 0 false, -1 unknown.
func TestGoPredicateFires(t *testing.T) {
	plans, err := configfile.Parse("test.yaml", []byte(`
synchronizers:
  gsync:
    members: {group: g}
    state: {x: int}
    memory: {n: {type: int, initial: 0}}
    predicates:
      middle: {when: "true", every: true}
`))
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	judge := func(g monitor.GlobalState) (predicates.Truth, string) {
		name, host, online := g.Member(0)
		seen = append(seen, fmt.Sprintf("%d/%d %s@%s %t %v of %d, n=%v", g.Epoch, g.Index, name, host, online, g.Value(0, "x"), g.Len(), g.Memory("n")))
		switch g.Value(0, "x").Int() {
		case 1:
			return predicates.True, ""
		case 0:
			return predicates.False, ""
		}
		return predicates.Unknown, ""
	}
	again := func(monitor.GlobalState) (predicates.Truth, string) { return predicates.True, "" }
	plan, err := plans[0].With([]plan.GoPredicate{
		{Name: "edge", Judge: judge, Predicate: config.Predicate{Priority: 2, Set: nil}},
		{Name: "reset", Judge: judge, Predicate: config.Predicate{Priority: 1, Until: "any(members, .x < 0)"}},
		{Name: "held", Judge: judge, Predicate: config.Predicate{For: 50}},
		{Name: "rare", Judge: again, Predicate: config.Predicate{Priority: -1, Every: true, Cooldown: time.Hour}},
	})
	if err != nil {
		t.Fatal(err)
	}
	core := synccore.New(plan, synccore.Options{Term: 1})
	var out synccore.Output
	var fired []string
	seq := uint64(0)
	step := func(in synccore.Input) {
		core.Step(0, &in, &out)
		for _, v := range out.Verdicts {
			if v.Fired {
				fired = append(fired, fmt.Sprintf("%s at %d", v.Predicate, seq))
			} else if v.Truth == predicates.Unknown {
				fired = append(fired, fmt.Sprintf("%s unknown at %d: %s", v.Predicate, seq, v.Reason))
			}
		}
	}
	step(synccore.Input{Kind: synccore.InHello, From: "w", Hello: &wire.Hello{Member: "w", Incarnation: 1, Host: "box", Domain: "d"}})
	for _, x := range []int64{1, -1, 1, 0, 1} {
		seq++
		at := clocksync.Stamp{Domain: "d", Mono: clocksync.Instant(100 * seq), Within: clocksync.Unbounded}
		b := &wire.Batch{Member: "w", Incarnation: 1, Reports: []wire.Report{{Seq: seq, At: at, Row: []scgs.Value{scgs.IntValue(x)}}}}
		b.Evidence = wire.Evidence{Seq: seq, At: at}
		b.Evidence.At.Mono += 60
		step(synccore.Input{Kind: synccore.InBatch, From: "w", Batch: b})
	}
	want := []string{
		"edge at 1", "reset at 1", "middle at 1", "rare at 1", "held at 1",
		"edge unknown at 2: the program gives no reason", "reset unknown at 2: the program gives no reason",
		"held unknown at 2: the program gives no reason", "middle at 2",
		"reset at 3", "middle at 3",
		"middle at 4",
		"edge at 5", "middle at 5", "held at 5",
	}
	if diff := cmp.Diff(want, fired); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if want := "1/1 w@box true 1 of 1, n=0"; seen[0] != want {
		t.Errorf("the Judge saw %s, want %s", seen[0], want)
	}
	if e, ok := core.Explain(0, "reset"); !ok || e.When != "a function of the program" || len(e.Parts) != 0 || e.Missing[0].Kind != "armed" {
		t.Errorf("of a predicate in Go is told %+v", e)
	}
	if e, _ := core.Explain(0, "rare"); e.Missing[0].Kind != "cooldown" || e.Missing[0].Text != "its cooldown of 1h0m0s lasts 1h0m0s more" {
		t.Errorf("of one that cools is told %+v", e.Missing)
	}
	if len(plans[0].Predicates()) != 1 || len(plan.Predicates()) != 5 {
		t.Errorf("the plan has %v, and with more %v", plans[0].Predicates(), plan.Predicates())
	}
}
