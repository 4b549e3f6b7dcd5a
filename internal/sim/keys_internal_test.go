package sim

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/yamlconf"
)

// keysConfig has rules that, with those of trialConfig, use every key of a predicate. They are judged by their texts, in half of
// the trials. [TestEveryKeyIsTried] names a key that no rule uses.
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

// keysOf are the keys of the predicates of a configuration, and, behind "signal.", those of their signals.
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
	level := parsed(t, keysConfig)
	var read uint64
	for _, r := range level.Rules {
		read |= r.When.Uses().Params
	}
	if read == 0 || len(level.Params) == 0 || len(level.Variables) == 0 {
		t.Error("no rule reads a parameter")
	}
}
