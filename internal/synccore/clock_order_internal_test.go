package synccore

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
)

// TestClockOrder: whatever two processes of a domain measured, and in whatever order
// their stamps arrive, what comes out holds true time and does not go back from
// one to any later one, also where the first was alone for a while.
func TestClockOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		const off = 1000 // True time minus reading.
		var d clockOrder
		alone := rapid.IntRange(0, 2*firstLimit).Draw(t, "alone")
		var processes [2]clocksync.Monotone
		var all []clocksync.Stamp
		read := [2]clocksync.Instant{0, 0}
		for i := range alone + 200 {
			p := 0
			if i >= alone {
				p = r.IntN(2)
			}
			if i == alone {
				d.begin()
				read[1] = max(0, read[0]-50)
			}
			read[p] += clocksync.Instant(1 + r.IntN(10))
			s, _ := processes[p].Next(clocksync.Stamp{Domain: "d", Mono: read[p], Within: clocksync.Interval{
				Earliest: read[p] + off - clocksync.Instant(r.IntN(100)), Latest: read[p] + off + clocksync.Instant(r.IntN(100)),
			}})
			s, ok := d.orderStamp(s)
			if !ok && alone <= firstLimit {
				t.Fatalf("stamp %v is refused, and nothing was forgotten", s)
			}
			if ok {
				all = append(all, s)
			}
		}
		for _, a := range all {
			if !a.Within.Contains(a.Mono + off) {
				t.Fatalf("%v does not hold %d", a, a.Mono+off)
			}
			for _, b := range all {
				if a.Mono < b.Mono && (a.Within.Earliest > b.Within.Earliest || a.Within.Latest > b.Within.Latest) {
					t.Fatalf("%v goes back to %v", a, b)
				}
			}
		}
	})
}
