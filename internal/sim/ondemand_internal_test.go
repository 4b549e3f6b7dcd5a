package sim

import (
	"testing"

	"github.com/gopegasus/pegasus/internal/testcount"
)

// TestOnDemand: no promise is broken, under any fault, where members are asked for evidence on demand.
// The predicates are of kinds that allow it.
func TestOnDemand(t *testing.T) {
	o := Options{Faults: AllFaults, Seed: 1, Trials: testcount.Of(t, "TRIALS", 200) / 2, Level: level(t, `
synchronizers:
  gsync:
    members: {group: g, count: 2}
    silence: {after: 600ms, then: drop}
    state: {on: bool, n: int}
    predicates:
      all-on:
        when: all(members, .on)
        signal: {kind: activate, region: r}
      steady:
        when: all(members, .on) and any(members, .n > 100)
        for: 20ms
        signal: {kind: activate, region: r, name: all-on}
      few:
        when: len(filter(members, .on)) <= 1
        every: true
      far:
        when: all(members, .online) and sum(members, .n) >= 300
`)}
	fired := map[string]int{}
	for i := range o.Trials {
		spec := o.spec(o.Seed+uint64(i), nil)
		spec.onDemand = true
		one := newTrial(spec)
		one.runTrial()
		for _, b := range one.breaches {
			t.Errorf("seed %d: %c %s", one.seed, b.judge, b.text)
		}
		for name := range one.Fired {
			fired[name]++
		}
	}
	for _, r := range o.Level.Rules {
		if fired[r.Name] < o.Trials/20 {
			t.Errorf("%s has fired in %d of %d trials", r.Name, fired[r.Name], o.Trials)
		}
	}
}
