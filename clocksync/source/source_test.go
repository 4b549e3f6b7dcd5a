package source_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/clocksync/source"
)

func fixed(tb testing.TB, bound time.Duration) clocksync.Clock {
	tb.Helper()
	c, err := source.Fixed(bound)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func clocks(tb testing.TB) map[string]clocksync.Clock {
	tb.Helper()
	return map[string]clocksync.Clock{
		"system": source.System(),
		"fixed":  fixed(tb, 5*time.Millisecond),
		"own":    source.OwnDomain(fixed(tb, time.Millisecond)),
	}
}

func TestStampsNeverGoBack(t *testing.T) {
	for name, clock := range clocks(t) {
		t.Run(name, func(t *testing.T) {
			var readers sync.WaitGroup
			for range 4 {
				readers.Go(func() {
					last := clock.Now()
					for range 20_000 {
						s := clock.Now()
						if s.Mono < last.Mono || s.Within.Earliest < last.Within.Earliest || s.Within.Latest < last.Within.Latest {
							t.Errorf("%v after %v", s, last)
							return
						}
						if s.Domain != clock.Domain() || !s.Within.Valid() {
							t.Errorf("%v of domain %q", s, clock.Domain())
							return
						}
						last = s
					}
				})
			}
			readers.Wait()
		})
	}
}

func TestQuality(t *testing.T) {
	for name, want := range map[string]clocksync.Quality{
		"system": {Source: "system"},
		"fixed":  {Source: "fixed", Assumed: true, Timeline: clocksync.UTC, Status: clocksync.Synchronized, Expires: clocksync.MaxInstant},
		"own":    {Source: "fixed", Assumed: true, Timeline: clocksync.UTC, Status: clocksync.Synchronized, Expires: clocksync.MaxInstant},
	} {
		if got := clocks(t)[name].Quality(); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

func TestFixedHoldsTheWallClock(t *testing.T) {
	const bound = time.Second
	clock := fixed(t, bound)
	before := clocksync.Instant(time.Now().UnixNano())
	s := clock.Now()
	after := clocksync.Instant(time.Now().UnixNano())
	if s.Within.Earliest < before.Add(-bound) || s.Within.Earliest > after.Add(-bound) {
		t.Errorf("earliest %v, wall clock between %v and %v", s.Within.Earliest, before, after)
	}
	if s.Within.Latest < before.Add(bound) || s.Within.Width() < 2*bound {
		t.Errorf("latest %v, width %v, wall clock between %v and %v", s.Within.Latest, s.Within.Width(), before, after)
	}
}

func TestFixedRefusesBounds(t *testing.T) {
	for bound, want := range map[time.Duration]string{
		0:                      "source: fixed bound 0s: it must be above 0; use the system clock where no bound is known",
		-time.Second:           "source: fixed bound -1s: it must be above 0; use the system clock where no bound is known",
		time.Hour + 1:          "source: fixed bound 1h0m0.000000001s: it must be at most 1h0m0s",
		time.Duration(1) << 62: "source: fixed bound 1281023h53m38.427387904s: it must be at most 1h0m0s",
	} {
		if _, err := source.Fixed(bound); err == nil || err.Error() != want {
			t.Errorf("Fixed(%d) = %v, want %s", bound, err, want)
		}
	}
}

func TestOwnDomainIsAnotherDomain(t *testing.T) {
	shared := source.System()
	own, again := source.OwnDomain(shared), source.OwnDomain(shared)
	if own.Domain() == shared.Domain() || own.Domain() != again.Domain() {
		t.Errorf("domains %q, own %q and %q", shared.Domain(), own.Domain(), again.Domain())
	}
	if !strings.HasPrefix(string(own.Domain()), string(shared.Domain())) {
		t.Errorf("%q does not show whose readings it has: %q", own.Domain(), shared.Domain())
	}
	before, s, after := shared.Now(), own.Now(), shared.Now()
	if s.Mono < before.Mono || s.Mono > after.Mono {
		t.Errorf("reading %v outside %v to %v", s.Mono, before.Mono, after.Mono)
	}
}

func TestDomainFitsAFrame(t *testing.T) {
	const limit = 255
	for name, clock := range clocks(t) {
		if n := len(clock.Domain()); n == 0 || n > limit {
			t.Errorf("%s: domain %q has %d bytes", name, clock.Domain(), n)
		}
	}
}

func TestMonotonicFollowsTheBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, wall := source.Monotonic(), source.WallNano()
		time.Sleep(time.Hour)
		if d := source.Monotonic().Sub(before); d != time.Hour {
			t.Errorf("Monotonic advanced by %v", d)
		}
		if d := time.Duration(source.WallNano() - wall); d != time.Hour {
			t.Errorf("WallNano advanced by %v", d)
		}
	})
}

func BenchmarkNow(b *testing.B) {
	for _, name := range []string{"system", "fixed", "own"} {
		clock := clocks(b)[name]
		b.Run("clock="+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				clock.Now()
			}
		})
	}
}

func BenchmarkMonotonic(b *testing.B) {
	for b.Loop() {
		source.Monotonic()
	}
}

func TestStampsAllocateNothing(t *testing.T) {
	for name, clock := range clocks(t) {
		if allocs := testing.AllocsPerRun(100, func() { clock.Now() }); allocs != 0 {
			t.Errorf("%s: a stamp allocates %v times", name, allocs)
		}
	}
}
