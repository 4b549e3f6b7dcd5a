package source

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
)

// TestFixedHoldsTheTruth runs the clock on a wall clock that is off by up to the
// bound and wanders, in a process that is held up between any two readings.
func TestFixedHoldsTheTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const bound = 1000
		truth, ahead := clocksync.Instant(1e18), clocksync.Instant(rapid.IntRange(-1e9, 1e9).Draw(t, "ahead"))
		pass := func() { truth += clocksync.Instant(rapid.IntRange(0, 5000).Draw(t, "pass")) }
		clock := &fixedClock{
			domain: "d",
			bound:  bound,
			mono:   func() clocksync.Instant { pass(); return truth - ahead },
			wall: func() int64 {
				pass()
				return int64(truth) + rapid.Int64Range(-bound, bound).Draw(t, "off")
			},
		}
		for range 10 {
			s := clock.Now()
			// The stamp's reading is the last thing read, and truth has not moved since.
			if s.Mono != truth-ahead || !s.Within.Contains(truth) {
				t.Fatalf("%v does not hold %v", s, truth)
			}
		}
	})
}

func TestFixedStaysWhenTheWallClockIsSetBack(t *testing.T) {
	wall := int64(5 * time.Hour)
	mono := clocksync.Instant(0)
	clock := &fixedClock{
		bound: time.Millisecond,
		mono:  func() clocksync.Instant { mono++; return mono },
		wall:  func() int64 { return wall },
	}
	before := clock.Now()
	wall -= int64(time.Hour)
	after := clock.Now()
	if after.Within != before.Within || after.Mono <= before.Mono {
		t.Errorf("%v became %v", before, after)
	}
}

func TestFixedPanicsWhereTheMonotonicClockIsNone(t *testing.T) {
	mono := clocksync.Instant(10)
	clock := &fixedClock{mono: func() clocksync.Instant { return mono }, wall: func() int64 { return 0 }}
	clock.Now()
	mono--
	defer func() {
		if recover() == nil {
			t.Error("a clock that runs backwards goes unnoticed")
		}
	}()
	clock.Now()
}
