package sim

import (
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// TestASlewBeyondTheDrift: stamps are true until a daemon slews the clock of the
// host by more than it may drift; then there is no bound from the next look until
// it is over, and after that the stamps are true again.
func TestASlewBeyondTheDrift(t *testing.T) {
	for _, slew := range []int64{-5_000_000, 500_000, 50_000_000} { // In parts per billion.
		w := New(1)
		h := w.NewHost("h", HostSpec{Mono: 1000 * second, Rate: 100_000})
		k, err := NewKeeper(h, clocksync.Config{Timeline: clocksync.UTC, Drift: 200}, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		link := func() *Link {
			return w.NewLink(LinkSpec{Delay: 100 * time.Microsecond, Burst: time.Millisecond, Backlog: 0})
		}
		k.Ask("server", w.NewTimeServer(time.Millisecond), link(), link())
		bounded := 0
		run := func(until clocksync.Instant, check func(clocksync.Stamp)) {
			bounded = 0
			for w.Now() < until {
				w.Run(w.Now().Add(10 * time.Millisecond))
				s := k.Read()
				if s.Within.Bounded() {
					bounded++
				}
				check(s)
			}
		}
		truth := func(s clocksync.Stamp) {
			if !s.Within.Contains(w.Now()) {
				t.Fatalf("slew %d: at %v a stamp of %v", slew, w.Now(), s)
			}
		}
		run(60*second, truth)
		if bounded < 5800 {
			t.Errorf("slew %d: %d of 6000 stamps have a bound before", slew, bounded)
		}
		h.Slew(slew)
		run(61*second+100*clocksync.Instant(time.Millisecond), func(clocksync.Stamp) {})
		run(120*second, func(s clocksync.Stamp) {
			if q := k.Quality(); s.Within != clocksync.Unbounded || q.Status != clocksync.Untrusted {
				t.Fatalf("slew %d: at %v a stamp of %v, %+v", slew, w.Now(), s, q)
			}
		})
		h.Slew(0)
		run(180*second, truth)
		if r := k.Diagnostics(); bounded < 4500 || r.Slews != 1 || r.Contradictions != 1 {
			t.Errorf("slew %d: %d of 6000 stamps have a bound after; %+v", slew, bounded, r)
		}
	}
}
