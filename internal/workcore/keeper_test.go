package workcore

import (
	"testing"

	"github.com/gopegasus/pegasus/balance/local"
)

// TestVoidRunsAgain: a task that its own member runs when a phase ends void is stopped, and runs again.
func TestVoidRunsAgain(t *testing.T) {
	strategy, err := local.New(local.Config{})
	if err != nil {
		t.Fatal(err)
	}
	m, out := NewMember(Options{Self: ann, Slots: 1, Strategy: strategy, Account: NewRecovery(Limits{}).Own(ann, false)}), &Output{}
	runs, stops := 0, 0
	step := func(in *Input) {
		for more := true; more; more = m.Release(out) {
			if in != nil {
				m.Step(1, in, out)
				in = nil
			}
			runs, stops = runs+len(out.Runs), stops+len(out.Stops)
			m.durable.reach(ann.Name, m.Ticket())
		}
	}
	step(&Input{Kind: InRoster, Roster: []Peer{ann}})
	step(put("a"))
	step(&Input{Kind: InEnd, Phase: 1, Void: true})
	step(returned(Failed, "stopped"))
	if runs != 2 || stops != 1 {
		t.Errorf("%d runs and %d stops", runs, stops)
	}
}
