package agentcore

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
)

// TestPast: the result of a look-up holds the true time of every event, reported or not, and
// does not go back.
func TestPast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Past
		var monotone clocksync.Monotone
		const off = 1_000_000 // True time minus reading.
		mono := clocksync.Instant(0)
		for range rapid.IntRange(0, 2*pastLimit).Draw(t, "stamps") {
			mono += clocksync.Instant(rapid.IntRange(0, 9).Draw(t, "step"))
			s := clocksync.Stamp{Domain: "d", Mono: mono, Within: clocksync.Interval{
				Earliest: mono + off - clocksync.Instant(rapid.IntRange(0, 99).Draw(t, "early")),
				Latest:   mono + off + clocksync.Instant(rapid.IntRange(0, 99).Draw(t, "late")),
			}}
			if rapid.IntRange(0, 9).Draw(t, "lost") == 0 {
				s.Within.Latest = clocksync.MaxInstant
			}
			s, _ = monotone.Next(s)
			p.Add(&s)
		}
		last := clocksync.MinInstant
		for m := clocksync.Instant(-5); m < mono+5; m++ {
			w := p.Within(m)
			if !w.Contains(m+off) || w.Earliest < last {
				t.Fatalf("the event at %d lies in %v, after %v", m, w, last)
			}
			last = w.Earliest
		}
		p.Clear()
		if w := p.Within(mono); w != clocksync.Unbounded {
			t.Fatalf("%v is left of a clock that was replaced", w)
		}
	})
}
