package sim

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/internal/yamlconf"
)

// keysConfig has rules that, together with trialConfig's, use every key of a predicate. They are judged by their texts, in half
// of the trials. [TestEveryKeyIsTried] names a key that no rule uses.
const keysConfig = `
params:
  limit: {type: int, default: 102, min: 100, max: 104}
  hold: {type: duration, default: 20ms}
synchronizers:
  gsync:
    members: {group: g, count: 2}
    silence: {after: 600ms, then: drop}
    state: {on: bool, n: int, zone: {enum: [east, west]}, side: {enum: [east, west]}}
    memory: {runs: {type: int, initial: 0}}
    let: {high: .n > params.limit}
    predicates:
      ever:
        when: len(members) > 0
        every: true
      one-high:
        each: members
        when: high
        until: .n < 101
        signal: {kind: activate, region: r, expires: 2s, data: {n: member.n}}
      one-cool:
        each: members
        when: .on
        cooldown: 100ms
        signal: {kind: activate, region: r, name: alert}
      one-held:
        each: members
        when: .on
        for: params.hold
      one-once:
        each: members
        when: high and .on
        once: member
      heavy:
        by: .zone
        let: {load: "sum(members, .n)"}
        when: load > 2 * params.limit
        priority: 1
        signal: {kind: cancel, region: q, to: group, data: {zone: group}}
      still-heavy:
        by: .zone
        after: {heavy: 30ms}
        when: sum(members, .n) > 2 * params.limit
        signal: {kind: activate, region: r, name: alert, to: all}
      first-run:
        when: all(members, .on)
        once: run
        set: {runs: memory.runs + 1}
      first-epoch:
        when: any(members, .on)
        once: epoch
      wide:
        when: any(members, .n > 103)
        until: all(members, .n < 103)
        signal: {kind: activate, region: r, name: alert, to: "filter(members, high)"}
      cool:
        when: any(members, .n > 103)
        cooldown: 50ms
      each-epoch:
        when: len(members) > 1
        refire: epoch
        signal: {kind: activate, region: r, name: alert}
      several:
        modality: atleast
        when: count(members, .n > params.limit) >= 2
        signal: {kind: activate, region: r, name: alert, to: holders}
`

// keysTrial has a trial use the rules of keysConfig. A reload gives parameters other values.
func keysTrial(tb testing.TB, spec *trialSpec) {
	tb.Helper()
	spec.byText, spec.level = true, parsed(tb, keysConfig)
	spec.other = parsed(tb, strings.NewReplacer("default: 102", "default: 103", "default: 20ms", "default: 40ms").Replace(keysConfig))
	spec.rules = map[string]reference{"ever": {always: true}}
	spec.others = spec.rules
}

// ofKeys reports whether the trial of a seed uses the rules of keysConfig: every other pair of them does.
func ofKeys(seed uint64) bool { return seed%4 >= 2 }

// seeded is the trial of a seed.
func seeded(spec, keys trialSpec, seed uint64) trialSpec {
	if ofKeys(seed) {
		spec = keys
	}
	spec.seed = seed
	return spec
}

// keyMutants are mutants of machines that follow keysConfig.
var keyMutants = []mutant{
	{name: "one member has another limit", judges: "S", config: [2]string{"when: high\n        until", "when: .n >= params.limit\n        until"}},
	{name: "one member is told as another one", judges: "S", bend: func() *bent {
		before := ""
		return &bent{leaderOut: func(_ *leader, _ *synccore.Input, out *synccore.Output) {
			for i := range out.Verdicts {
				if v := &out.Verdicts[i]; v.Fired && v.Modality == plan.Each {
					name := v.Witness[0].Name
					if before != "" {
						v.Witness[0].Name = before
					}
					before = name
				}
			}
		}}
	}},
	{name: "until of one member has another limit", judges: "K", config: [2]string{"until: .n < 101", "until: .n < 111"}},
	{name: "until of all is until of any", judges: "K", config: [2]string{"until: all(", "until: any("}},
	{name: "until is forgotten", judges: "K", bend: func() *bent {
		n := 0
		return &bent{leaderIn: func(l *leader, in *synccore.Input) bool {
			if in.Kind != synccore.InTick {
				return true
			}
			if n++; n%20 == 0 { // Predicates with another text begin again.
				level := *l.t.level
				level.Rules = slices.Clone(level.Rules)
				for i, r := range level.Rules {
					rule := *r
					rule.Text += strings.Repeat(" ", n)
					level.Rules[i] = &rule
				}
				*in = synccore.Input{Kind: synccore.InLevel, Level: &level}
			}
			return true
		}}
	}},
	{name: "a threshold that was reached is forgotten", judges: "K", bend: func() *bent {
		n := 0
		return &bent{leaderIn: func(l *leader, in *synccore.Input) bool {
			if in.Kind != synccore.InTick {
				return true
			}
			if n++; n%20 == 0 {
				level := *l.t.level
				level.Rules = slices.Clone(level.Rules)
				for i, r := range level.Rules {
					if rule := *r; r.Detector.AtLeast > 1 {
						rule.Text += strings.Repeat(" ", n)
						level.Rules[i] = &rule
					}
				}
				*in = synccore.Input{Kind: synccore.InLevel, Level: &level}
			}
			return true
		}}
	}},
	{name: "behind a gap a member is as it was", judges: "S", bend: func() *bent {
		last := map[lifeKey]wire.Report{}
		return &bent{leaderIn: func(_ *leader, in *synccore.Input) bool {
			b := in.Batch
			if in.Kind != synccore.InBatch || len(b.Reports) == 0 {
				return true
			}
			key := lifeKey{b.Member, b.Incarnation}
			if r := &b.Reports[0]; last[key].Seq > 0 && r.Seq > last[key].Seq+1 {
				r.Row = last[key].Row
			}
			if r := b.Reports[len(b.Reports)-1]; r.Seq > last[key].Seq {
				r.Row = slices.Clone(r.Row)
				last[key] = r
			}
			return true
		}}
	}},
	{name: "members are in another group", judges: "S", config: [2]string{"by: .zone", "by: .side"}},
	{name: "once in a run is as often as it may", judges: "K", config: [2]string{"\n        once: run", ""}},
	{name: "once in a run is once in an epoch", judges: "K", config: [2]string{"once: run", "once: epoch"}},
	{name: "once in an epoch is as often as it may", judges: "K", config: [2]string{"\n        once: epoch", ""}},
	{name: "once for a member is as often as it may", judges: "K", config: [2]string{"\n        once: member", ""}},
	{name: "a new epoch is taken for the one before", judges: "K", bend: fates(func(out *synccore.Output) {
		for i := range out.Verdicts {
			if d := &out.Verdicts[i].Decision; d.Epoch%2 == 0 {
				d.Epoch--
			}
		}
	})},
	{name: "it waits too little after another predicate", judges: "K", config: [2]string{"{heavy: 30ms}", "{heavy: 3ms}"}},
	{name: "it waits for no other predicate", judges: "K", config: [2]string{"\n        after: {heavy: 30ms}", ""}},
	{name: "a cooldown is too short", judges: "K", config: [2]string{"cooldown: 50ms", "cooldown: 5ms"}},
	{name: "the cooldown of one member is too short", judges: "K", config: [2]string{"cooldown: 100ms", "cooldown: 10ms"}},
	{name: "a parameter has another value", judges: "S", config: [2]string{"default: 102", "default: 101"}},
	{name: "a parameter that is set keeps its value", judges: "S", bend: func() *bent {
		return &bent{leaderIn: func(_ *leader, in *synccore.Input) bool { return in.Kind != synccore.InLevel }}
	}},
	{name: "the hold time is no parameter", judges: "S", config: [2]string{"for: params.hold", "for: 2ms"}},
}

// keysOf are the keys of the predicates of a configuration, and, behind "signal.", the keys of their
// signals.
func keysOf(t *testing.T, text string) map[string]bool {
	t.Helper()
	var cfg config.Config
	doc, err := yamlconf.Decode("keys.yaml", []byte(text), &cfg)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	at := func(n yamlconf.Node, key string) yamlconf.Node {
		child, _ := n.Get(key)
		return child
	}
	for _, p := range at(at(at(doc.Root(), "synchronizers"), "gsync"), "predicates").Items() {
		for _, item := range p.Items() {
			key, _ := item.Key()
			if keys[key] = true; key != "signal" {
				continue
			}
			for _, signal := range item.Each() {
				for _, part := range signal.Items() {
					name, _ := part.Key()
					keys["signal."+name] = true
				}
			}
		}
	}
	return keys
}

// TestEveryKeyIsTried: the rules of trials use each key of a predicate and of a signal that the schema has, and parameters.
func TestEveryKeyIsTried(t *testing.T) {
	var schema struct {
		Defs map[string]struct {
			Properties map[string]any
		} `json:"$defs"`
	}
	if err := json.Unmarshal(configfile.JSONSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	tried := keysOf(t, keysConfig)
	maps.Copy(tried, keysOf(t, trialConfig))
	for prefix, of := range map[string]string{"": "predicate", "signal.": "signal"} {
		if len(schema.Defs[of].Properties) == 0 {
			t.Fatalf("the schema has no keys of a %s", of)
		}
		for _, key := range slices.Sorted(maps.Keys(schema.Defs[of].Properties)) {
			if !tried[prefix+key] {
				t.Errorf("no trial tries the key %s of a %s: add a rule with it to keysConfig, what it promises to internal/sim/trial_keys.go:judgeKeys "+
					"(or another judge), and a mutant that breaks it to keyMutants", key, of)
			}
		}
	}
	if onceRun != config.OnceRun || onceEpoch != config.OnceEpoch || onceMember != config.OnceMember {
		t.Error("judge K has other words of once than the configuration")
	}
	level := parsed(t, keysConfig)
	var read uint64
	for _, r := range level.Rules {
		read |= r.When.Uses().Params
	}
	if read == 0 || len(level.Params) == 0 || len(level.Variables) == 0 {
		t.Error("no rule reads a parameter")
	}
}
