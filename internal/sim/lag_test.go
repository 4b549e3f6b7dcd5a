package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/synccore"
)

// TestDecisionsKeepUp: with one message in five lost, the states that decisions rest on
// are over for no longer than what is missing is asked for, and a member for its evidence.
func TestDecisionsKeepUp(t *testing.T) {
	for _, pause := range []time.Duration{5 * time.Millisecond, 20 * time.Millisecond, 200 * time.Millisecond} {
		t.Run(pause.String(), func(t *testing.T) {
			ages, resends, told := lagging(t, pause)
			if len(ages) < 100 {
				t.Fatalf("%d decisions", len(ages))
			}
			slices.Sort(ages)
			half, most, worst := ages[len(ages)/2], ages[len(ages)*99/100], ages[len(ages)-1]
			t.Logf("%d decisions on states that were over for %v, 99 %%: %v, worst: %v; %d resends, %d reports told", len(ages), half, most, worst, resends, told)
			if half > 200*time.Millisecond || most > time.Second || worst > 2*time.Second { // A question is lost five times in 3,000.
				t.Errorf("decisions rest on states that were over for %v, %v and %v", half, most, worst)
			}
		})
	}
}

// lagging returns how long the oldest state of each decision was over when it was made.
func lagging(t *testing.T, pause time.Duration) (ages []time.Duration, resends int, told uint64) {
	t.Helper()
	w := New(1)
	root := w.NewHost("root", HostSpec{})
	plans, err := configfile.Parse("sim.yaml", []byte(allHere))
	if err != nil {
		t.Fatal(err)
	}
	g := NewGroup(root, plans[0], "")
	members := map[string]*Member{}
	for _, name := range []string{"a", "b", "c", "d"} {
		link := func() *Link { return w.NewLink(LinkSpec{Delay: 300 * time.Microsecond, Loss: 0.2}) }
		m := g.Join(name, root, nil, link(), link())
		members[name] = m
		var again func()
		again = func() {
			m.Change()
			root.After(w.Exponential(pause)+time.Microsecond, again)
		}
		root.After(time.Second, again)
	}
	g.Observe = func(out *synccore.Output) {
		resends += len(out.Resends)
		for i := range out.Verdicts {
			v := &out.Verdicts[i]
			over := clocksync.MaxInstant
			for _, p := range v.Witness {
				over = min(over, members[p.Name].Held[p.Row[0].Int()-1].To)
			}
			if v.Fired {
				ages = append(ages, max(0, w.Now().Sub(over)))
			}
		}
	}
	w.Run(clocksync.Instant(time.Minute))
	for _, m := range members {
		told += m.core.Stats().Resent
	}
	return ages, resends, told
}
