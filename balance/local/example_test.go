package local_test

import (
	"fmt"
	"time"

	"github.com/gopegasus/pegasus/balance/local"
	"github.com/gopegasus/pegasus/clocksync"
)

// Threshold is a strategy that this package does not have: a member with fewer than
// Low tasks asks each neighbour with more than High for the difference.
type Threshold struct{ Low, High int }

const pause = 100 * time.Millisecond // after a refusal

func (s Threshold) Look(now clocksync.Instant, v *local.View, to []local.Demand) ([]local.Demand, clocksync.Instant) {
	if v.Waiting >= s.Low {
		return to, clocksync.MaxInstant // The next change of the view is early enough.
	}
	for i := range v.Neighbours {
		n := &v.Neighbours[i]
		if may, _ := n.MayAsk(now, pause, pause); may && n.Load > float64(s.High) {
			to = append(to, local.Demand{Member: n.Name, Tasks: s.Low - v.Waiting})
		}
	}
	return to, now.Add(pause)
}

func (s Threshold) Answer(_ clocksync.Instant, v *local.View, d local.Demand) local.Share {
	return local.Share{Tasks: min(d.Tasks, max(0, v.Waiting-s.High))}
}

// A strategy of a third party, driven by hand for one demand.
func Example() {
	var strategy local.Local = Threshold{Low: 4, High: 10}
	now := clocksync.Instant(0)
	poor := local.View{Waiting: 1, Neighbours: []local.Neighbour{{Name: "rich", Load: 12}, {Name: "modest", Load: 7}}}
	rich := local.View{Waiting: 12, Neighbours: []local.Neighbour{{Name: "poor", Load: 1}}}

	demands, again := strategy.Look(now, &poor, nil)
	for _, d := range demands {
		fmt.Println("poor asks", d.Member, "for", d.Tasks)
		d.Member = "poor" // At the other member a demand has the name of who asks.
		fmt.Println("rich gives", strategy.Answer(now, &rich, d).Tasks)
	}
	fmt.Println("poor looks again after", again.Sub(now))
	// Output:
	// poor asks rich for 3
	// rich gives 2
	// poor looks again after 100ms
}
