package worksim

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/workcore"
)

func TestLine(t *testing.T) {
	s := load(t, os.Getenv("SCEN"))
	var next clocksync.Instant
	kinds := [5]int{}
	refused := 0
	r, err := run(s, nil, func(f *workcore.Frame, n *node) bool {
		w := n.world
		switch {
		case f.Demand != nil:
			kinds[0]++
		case f.Parcel != nil:
			if kinds[1]++; len(f.Parcel.Leases) == 0 {
				refused++
			}
		case f.Step != nil:
			kinds[2]++
		case f.Verdict != nil:
			kinds[3]++
		default:
			kinds[4]++
		}
		if w.Now() >= next {
			next = w.Now().Add(100 * time.Millisecond)
			busy, queued, nodes, most, who, loads := 0, 0, 0, 0, 0, 0
			open := 0
			for _, n := range w.nodes {
				for i := range n.slots {
					if n.slots[i].runs && !n.slots[i].waits {
						busy++
					}
				}
				q := n.out.Told.Queued
				open += n.out.Told.Open
				if q > 0 {
					nodes++
				}
				if queued += q; q > most {
					most, who = q, n.place
				}
				_ = loads
			}
			fmt.Printf("%5d: busy %d queued %d on %d most %d at %d, open %d, left %d; demands %d parcels %d refused %d steps %d verdicts %d holds %d\n", w.Now().Sub(0)/time.Millisecond, busy, queued, nodes, most, who, open, w.left, kinds[0], kinds[1], refused, kinds[2], kinds[3], kinds[4])
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.4f", r.Efficiency)
}
