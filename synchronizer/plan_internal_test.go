package synchronizer

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/balance"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
)

// TestWatchedPlan: the watchers' view of a plan fits into one message, however large it is and
// however long its names are; the event in the process has all of it.
func TestWatchedPlan(t *testing.T) {
	strategy, err := balance.New(balance.Default())
	if err != nil {
		t.Fatal(err)
	}
	s := balance.State{Nodes: []balance.Node{{Name: "slow", Power: 1, Share: 1}}}
	for i := range 80 {
		s.Nodes = append(s.Nodes, balance.Node{Name: strings.Repeat("n", 60) + strconv.Itoa(i), Power: 2, Share: 1})
	}
	for i := range 400 {
		s.Loads = append(s.Loads, balance.Load{Name: strings.Repeat("l", 250) + strconv.Itoa(i), Node: "slow", Weight: 1 + float64(i%7)})
	}
	plan := monitor.Plan{Decision: control.Decision{Synchronizer: "g", Epoch: 1, Number: 1}, Epoch: 1, Index: 2, Plan: strategy.Plan(0, &s)}
	moves := plan.Status().Moves
	if len(moves) != len(plan.Plan.Moves) || len(moves) <= maxPlanned {
		t.Fatalf("%d moves of %d", len(moves), len(plan.Plan.Moves))
	}
	told := linesOf(plan)
	line, err := json.Marshal(&told[0])
	if err != nil || len(told) != 1 || len(line) > wire.PartBytes {
		t.Fatalf("%d lines, %d bytes, %v", len(told), len(line), err)
	}
	if b := told[0].Body.(*monitor.PlanLine); b.MovesLeftOut != len(moves)-maxPlanned || b.NodesLeftOut != 81-maxPlanned || len(b.Moves) != maxPlanned {
		t.Errorf("left out: %d moves, %d nodes", b.MovesLeftOut, b.NodesLeftOut)
	}
}
