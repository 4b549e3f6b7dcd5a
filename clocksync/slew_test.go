package clocksync_test

import (
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// TestASlew looks at the clocks every 250 ms, with the slack of a busy machine,
// while the domain's clock runs faster than the other by what each phase says. Each
// may be off by 50 ppm.
func TestASlew(t *testing.T) {
	const slack = 20 * time.Microsecond
	e := estimator(t, clocksync.Config{})
	seen := clocksync.Observation{Mono: 100 * second, Raw: 50 * second, Boot: 100 * second, Wall: clocksync.MinInstant, Slack: slack}
	e.Observe(seen)
	slewing, changes := false, uint64(0)
	for _, phase := range []struct {
		ppm     clocksync.Instant
		noticed int // at this look, from 1; 0: never
		status  clocksync.Status
	}{
		{0, 0, clocksync.Synchronized},
		{90, 0, clocksync.Synchronized},
		{500, 1, clocksync.Untrusted},
		{0, 4, clocksync.Synchronized}, // Over after a second.
		{-150, 4, clocksync.Untrusted}, // Too slow to be seen within less.
		{-600, 0, clocksync.Untrusted}, // Continues.
		{90_000, 0, clocksync.Untrusted},
		{10, 4, clocksync.Synchronized},
	} {
		for look := 1; look <= 40; look++ {
			seen.Mono += 250 * ms
			seen.Boot += 250 * ms
			seen.Raw += 250*ms - phase.ppm*250
			want := clocksync.Unchanged
			if look == phase.noticed {
				want = clocksync.Slewed
				slewing = !slewing
				changes++
			}
			if got := e.Observe(seen); got != want {
				t.Fatalf("%d ppm, look %d: %v, want %v", phase.ppm, look, got, want)
			}
			// The samples began before the look.
			refused := slewing || look == phase.noticed
			if got := e.Add(word("a", seen.Mono, 6*second, 8*second)); refused != (got == clocksync.Void) || !refused && got != clocksync.Taken {
				t.Fatalf("%d ppm, look %d: a sample is %v", phase.ppm, look, got)
			}
			if b := e.Bound(seen.Mono); slewing && b.Within(seen.Mono) != clocksync.Unbounded {
				t.Fatalf("%d ppm, look %d: a bound of %v", phase.ppm, look, b.Within(seen.Mono))
			}
		}
		if got := e.Bound(seen.Mono).Quality.Status; got != phase.status {
			t.Errorf("%d ppm: %v, want %v", phase.ppm, got, phase.status)
		}
	}
	r := e.Diagnostics(seen.Mono)
	if want := changes / 2; r.Slews != want || r.Contradictions != want || len(r.Taints) != 2 || !r.Taints[1].Slewed || r.Taints[1].To == clocksync.MaxInstant {
		t.Errorf("%d slews, %d contradictions, taints %+v", r.Slews, r.Contradictions, r.Taints)
	}
}

// TestASlewWithoutTheOtherClock cannot be told, nor one during a suspend.
func TestASlewWithoutTheOtherClock(t *testing.T) {
	e := estimator(t, clocksync.Config{})
	at := func(mono, boot, raw clocksync.Instant) clocksync.Observation {
		return clocksync.Observation{Mono: mono, Boot: boot, Raw: raw, Wall: clocksync.MinInstant}
	}
	for i, o := range []clocksync.Observation{
		at(10*second, 10*second, 0), at(20*second, 20*second, 9*second), at(30*second, 30*second, 0), at(40*second, 40*second, 50*second),
	} {
		if c := e.Observe(o); c != clocksync.Unchanged {
			t.Errorf("observation %d: %v", i, c)
		}
	}
	if c := e.Observe(at(50*second, 90*second, 70*second)); c != clocksync.Suspended {
		t.Errorf("%v, want suspended", c)
	}
	if c := e.Observe(at(60*second, 100*second, 80*second)); c != clocksync.Unchanged || e.Diagnostics(60*second).Slews != 0 {
		t.Errorf("%v after a suspend", c)
	}
}
