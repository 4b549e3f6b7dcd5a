package synccore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
)

// TestReloadInWorlds goes over to another configuration and back while signals are
// under way on a bad network. The checkers of the world find whether one was
// applied twice or has no fate, and whether a decision was wrong; and the journal
// replays.
func TestReloadInWorlds(t *testing.T) {
	changed := strings.NewReplacer(
		"when: all(members, .on)\n        signal", "when: all(members, .on)\n        priority: 3\n        signal",
		"for: 20ms", "for: 30ms",
		"after: 1s, then: drop", "after: 900ms, then: drop",
		"count: 2}", "count: 3, max: 10}",
	).Replace(worldConfig)
	before, _, _ := strings.Cut(changed, "      two-on:")
	_, after, _ := strings.Cut(changed, "      steady:")
	changed = before + "      steady:" + after
	reloads := 0
	for s := range uint64(1 + worlds(t)/4) {
		w := newWorld(t, 2000+s)
		w.record.on = true
		plans := make([]*plan.Level, 2)
		for i, config := range []string{worldConfig, changed} {
			compiled, err := configfile.Parse("world.yaml", []byte(config))
			if err != nil {
				t.Fatal(err)
			}
			plans[i] = compiled[0]
		}
		next := 0
		var turn func()
		turn = func() {
			next = 1 - next
			w.step(synccore.Input{Kind: synccore.InLevel, Level: plans[next]})
			if len(w.out.Reloads) != 1 || len(w.out.Reloads[0].Changes) != 5 {
				t.Errorf("seed %d: %+v; want one reload with five changes, and have rejected %v", 2000+s, w.out.Reloads, w.out.Rejected)
			}
			reloads++
			if w.now.Sub(0) < worldEnds-4*time.Second || next == 1 {
				w.after(w.between(time.Millisecond, 400*time.Millisecond), turn)
			}
		}
		w.after(50*time.Millisecond, turn)
		w.run()
		replay(t, w.record.text)
		if t.Failed() {
			t.Fatalf("seed %d", 2000+s)
		}
	}
	if reloads < 30*(worlds(t)/4) {
		t.Errorf("%d reloads in %d worlds", reloads, worlds(t))
	}
}
