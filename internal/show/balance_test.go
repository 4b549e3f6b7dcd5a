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
