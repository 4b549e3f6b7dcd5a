package workplan_test

import (
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/workplan"
)

// TestAdviceWithoutFigures: by idle members alone the key record is asked for, and only if much is lost.
func TestAdviceWithoutFigures(t *testing.T) {
	w := config.DefaultWork()
	run := func(idle float64) *workplan.Recorded {
		return &workplan.Recorded{Members: map[string][]workplan.Sample{
			"a": {{At: 0, Idle: false}, {At: 10, Idle: true}},
			"b": {{At: 0, Idle: false}, {At: 10 - idle, Idle: true}, {At: 10, Gone: true}},
		}}
	}
	got := workplan.Advise(&w, run(8))
	if len(got) != 1 || got[0].Key != "" || got[0].Lost != 0.4 || !strings.Contains(got[0].Change, "record: true") ||
		got[0].Reason != "while some member had work, 40% of the others' time passed without any, and members told no figures" {
		t.Errorf("%+v", got)
	}
	if got := workplan.Advise(&w, run(2)); len(got) > 0 {
		t.Errorf("%+v, want nothing", got)
	}
	if got := workplan.Advise(&w, &workplan.Recorded{}); len(got) > 0 {
		t.Errorf("%+v of no members", got)
	}
}

// TestAdviceOnStrategies: tasks that wait beside free slots name the strategy; tasks that all run, and too few tasks, do not.
func TestAdviceOnStrategies(t *testing.T) {
	for _, c := range []struct {
		strategy      string
		queued, other int // at one member, and running at the other
		moved         int
		key, change   string
	}{
		{"receiver", 50, 0, 0, "strategy", "from: activity"},
		{"receiver", 50, 0, 7, "strategy", "a lower again or longest"},
		{"links", 50, 0, 7, "strategy.links", "a link from a to b"},
		{"chunk", 50, 0, 7, "strategy.cut", "cut: fac2"},
		{"receiver", 50, 1, 7, "", ""},
		{"receiver", 0, 0, 0, "", ""},
	} {
		w := config.DefaultWork()
		w.Strategy.Kind, w.Strategy.Cut = c.strategy, "gss"
		got := workplan.Advise(&w, &workplan.Recorded{Figures: true, Members: map[string][]workplan.Sample{
			"a": {{At: 0, Queued: c.queued, Running: 1, Slots: 1}, {At: 9, Idle: true, Slots: 1}},
			"b": {{At: 0, Idle: c.other == 0, Running: c.other, Slots: 1}, {At: 9, Idle: true, Slots: 1, Moved: c.moved}},
		}})
		switch {
		case c.key == "" && len(got) > 0:
			t.Errorf("%+v: %+v, want nothing", c, got)
		case c.key != "" && (len(got) != 1 || got[0].Key != c.key || !strings.HasPrefix(got[0].Change, c.change) || got[0].Lost != 0.5):
			t.Errorf("%+v: %+v", c, got)
		}
	}
}
