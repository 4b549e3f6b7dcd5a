package show

import (
	"testing"

	"github.com/gopegasus/pegasus/monitor"
)

// TestBalanceTexts: what status and why tell of a section balance.
func TestBalanceTexts(t *testing.T) {
	plan := planned(1)
	last := plan.Status()
	b := monitor.BalanceStatus{
		Strategy: "pegasus", Looks: 9, Quiet: 7, Plans: 2, Moves: 1, Flights: 1, Last: &last,
		UnderWay: []monitor.FlightStatus{{Load: "1", From: "w1", To: "w2", Weight: 2, Decision: "gsync/2/9", Ago: 0.25, Phase: "sent"}},
	}
	const want = `pegasus: 9 looks, 7 in balance, 2 plans, 1 move; 1 load under way; last plan: imbalance: availability 2 of w2 is more than 1.5 x 0.25 of w1

LOAD  FROM  TO  WEIGHT  DECISION   SINCE
1     w1    w2  2       gsync/2/9  250ms  sent

last plan, on global state 41 of epoch 2: longest queue 6s, with 1 move 4s
MEMBER  CLASS        INDEX  AVAILABLE  LOADS  WORK  QUEUE  THEN
w1      overloaded   0.25   1          3      6     6s     4s
w2      underloaded  2      2          0      0     0s     1s
w3      left alone: nothing is known of its state
move 1 (2) from w1 to w2: rank 0 is the least acceptable of 3 (attraction 0, deviation 0), quality 0.5 the highest acceptable of 1 (attraction 0, availability 1); w1 6s -> 4s, w2 0s -> 1s
refused on w3: bad node: nothing is known of its state
`
	if got := balanceDetails(&b); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// TestRefusedOrders: what is told of objects that their members did not move, and of the moves before.
func TestRefusedOrders(t *testing.T) {
	last, moved := monitor.PlanStatus{Index: 9, Epoch: 2, Refused: []monitor.PlanRefusal{{Load: "part/1", From: "a", Reason: "declined", Detail: "pinned"}}}, monitor.PlanStatus{
		Index: 7, Epoch: 2, Moves: []monitor.PlanMove{{Load: "part/2", From: "a", To: "b", Weight: 2, Why: "a 6s -> 4s, b 0s -> 2s"}},
	}
	const want = `greedy: 9 looks, 0 in balance, 2 plans, 3 moves, 1 of them refused; last plan: ` + `

last plan, on global state 9 of epoch 2: longest queue without end, with 0 moves without end
MEMBER  CLASS  INDEX  AVAILABLE  LOADS  WORK  QUEUE  THEN
refused part/1 on a: declined: pinned

last plan with moves, on global state 7 of epoch 2: longest queue without end, with 1 move without end
MEMBER  CLASS  INDEX  AVAILABLE  LOADS  WORK  QUEUE  THEN
move part/2 (2) from a to b: a 6s -> 4s, b 0s -> 2s
`
	b := monitor.BalanceStatus{Strategy: "greedy", Looks: 9, Plans: 2, Moves: 3, Refused: 1, Last: &last, Moved: &moved}
	if got := balanceDetails(&b); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
