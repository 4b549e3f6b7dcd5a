package clocksync_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
)

func TestInstantSaturates(t *testing.T) {
	const (
		minimum = clocksync.MinInstant
		maximum = clocksync.MaxInstant
	)
	add := []struct {
		t    clocksync.Instant
		d    time.Duration
		want clocksync.Instant
	}{
		{5, 7, 12},
		{5, -7, -2},
		{maximum, -time.Hour, maximum},
		{minimum, time.Hour, minimum},
		{maximum - 1, 10, maximum},
		{minimum + 1, -10, minimum},
	}
	for _, c := range add {
		if got := c.t.Add(c.d); got != c.want {
			t.Errorf("%v.Add(%d) = %v, want %v", c.t, c.d, got, c.want)
		}
	}
	sub := []struct {
		t, u clocksync.Instant
		want time.Duration
	}{
		{12, 5, 7},
		{maximum, maximum, 0},
		{maximum, 5, math.MaxInt64},
		{5, maximum, math.MinInt64},
		{maximum - 1, minimum + 1, math.MaxInt64},
		{minimum + 1, maximum - 1, math.MinInt64},
	}
	for _, c := range sub {
		if got := c.t.Sub(c.u); got != c.want {
			t.Errorf("%v.Sub(%v) = %v, want %v", c.t, c.u, got, c.want)
		}
	}
}

func TestIntervalRelations(t *testing.T) {
	i := func(a, b clocksync.Instant) clocksync.Interval { return clocksync.Interval{Earliest: a, Latest: b} }
	tests := []struct {
		a, b             clocksync.Interval
		before, overlaps bool
	}{
		{i(0, 4), i(5, 9), true, false},
		{i(0, 5), i(5, 9), false, true}, // touching ends decide nothing
		{i(0, 7), i(5, 9), false, true},
		{i(5, 9), i(0, 4), false, false},
		{clocksync.Unbounded, i(5, 9), false, true},
	}
	for _, c := range tests {
		if got := c.a.Before(c.b); got != c.before {
			t.Errorf("%v.Before(%v) = %v", c.a, c.b, got)
		}
		if got := c.a.Overlaps(c.b); got != c.overlaps {
			t.Errorf("%v.Overlaps(%v) = %v", c.a, c.b, got)
		}
		if _, got := c.a.Intersect(c.b); got != c.overlaps {
			t.Errorf("%v.Intersect(%v) = %v", c.a, c.b, got)
		}
	}
	if got := clocksync.Around(10, 3); got != i(7, 13) {
		t.Errorf("Around(10, 3) = %v", got)
	}
	if got := i(0, 2).Hull(i(5, 6)); got != i(0, 6) || got.Width() != 6 {
		t.Errorf("Hull = %v, width %d", got, got.Width())
	}
}

// stamps draws stamps of two domains around a shared true time.
func stamps() *rapid.Generator[clocksync.Stamp] {
	return rapid.Custom(func(t *rapid.T) clocksync.Stamp {
		at := clocksync.Instant(rapid.Int64Range(-50, 50).Draw(t, "at"))
		return clocksync.Stamp{
			Domain: rapid.SampledFrom([]clocksync.Domain{"a", "b"}).Draw(t, "domain"),
			Mono:   at,
			Within: clocksync.Interval{
				Earliest: at.Add(-time.Duration(rapid.IntRange(0, 20).Draw(t, "early"))),
				Latest:   at.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "late"))),
			},
		}
	})
}

func TestCertainOrderIsTheTrueOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := stamps().Draw(t, "a"), stamps().Draw(t, "b")
		before, after := clocksync.CertainlyBefore(a, b), clocksync.CertainlyBefore(b, a)
		// The generator's readings are the true times.
		if before && a.Mono >= b.Mono || after && b.Mono >= a.Mono {
			t.Fatalf("%v and %v: certain order is not the true one", a, b)
		}
		if clocksync.PossiblyBefore(a, b) == after {
			t.Fatalf("PossiblyBefore(%v, %v) is not the negation of the certain converse", a, b)
		}
		if a.Domain == b.Domain && a.Mono < b.Mono && !before {
			t.Fatalf("%v before %v inside one domain is not certain", a, b)
		}
	})
}

func TestMonotoneKeepsStampsValidAndOrdered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m clocksync.Monotone
		last := clocksync.Stamp{Domain: "d", Mono: clocksync.MinInstant, Within: clocksync.Interval{Earliest: clocksync.MinInstant, Latest: clocksync.MinInstant}}
		at := clocksync.Instant(0)
		for range rapid.IntRange(1, 20).Draw(t, "n") {
			at += clocksync.Instant(rapid.IntRange(0, 5).Draw(t, "step"))
			s := clocksync.Stamp{Domain: "d", Mono: at, Within: clocksync.Around(at, time.Duration(rapid.IntRange(0, 9).Draw(t, "bound")))}
			if rapid.IntRange(0, 4).Draw(t, "lost") == 0 {
				s.Within.Latest = clocksync.MaxInstant
			}
			got, ok := m.Next(s)
			if !ok || !got.Within.Contains(at) {
				t.Fatalf("Next(%v) = %v, %v: lost the true time", s, got, ok)
			}
			if got.Within.Earliest < last.Within.Earliest {
				t.Fatalf("earliest went back: %v after %v", got, last)
			}
			if got.Within.Latest != clocksync.MaxInstant {
				if got.Within.Latest < last.Within.Latest {
					t.Fatalf("latest went back: %v after %v", got, last)
				}
				last.Within.Latest = got.Within.Latest
			}
			last.Within.Earliest = got.Within.Earliest
		}
	})
}

func TestMonotoneRefusesWhatRanBackwards(t *testing.T) {
	var m clocksync.Monotone
	s := clocksync.Stamp{Domain: "d", Mono: 10, Within: clocksync.Exactly(10)}
	if _, ok := m.Next(s); !ok {
		t.Fatal("first stamp refused")
	}
	for _, bad := range []clocksync.Stamp{
		{Domain: "d", Mono: 9, Within: clocksync.Exactly(10)},
		{Domain: "e", Mono: 11, Within: clocksync.Exactly(11)},
		{Domain: "d", Mono: 11, Within: clocksync.Interval{Earliest: 2, Latest: 1}},
	} {
		if _, ok := m.Next(bad); ok {
			t.Errorf("Next(%v) accepted", bad)
		}
	}
	if _, ok := m.Next(s); !ok {
		t.Error("an equal stamp was refused after refusals")
	}
}
