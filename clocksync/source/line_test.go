package source

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
)

// TestLinesHoldTheTruthAndNeverGoBack draws bounds that are honest, each for a
// time, and stamps by them in turn.
func TestLinesHoldTheTruthAndNeverGoBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := clocksync.Instant(rapid.Int64Range(1, 1e12).Draw(t, "uptime"))
		truth := m + away
		l := &line{floor: noFloor}
		last := clocksync.Interval{Earliest: clocksync.MinInstant, Latest: clocksync.MinInstant}
		for range rapid.IntRange(1, 8).Draw(t, "lines") {
			err := func(what string) time.Duration { return time.Duration(rapid.Int64Range(0, 1e6).Draw(t, what)) }
			b := clocksync.Bound{
				From: m, Until: m.Add(err("lasts")), At: m, Drift: 100,
				Offset: clocksync.Interval{Earliest: (truth - m).Add(-err("early")), Latest: (truth - m).Add(err("late"))},
			}
			if rapid.Bool().Draw(t, "unknown") {
				b.Offset = clocksync.Unbounded
			}
			next := &line{bound: b}
			next.followLine(l, m)
			l = next
			for range rapid.IntRange(0, 5).Draw(t, "stamps") {
				passed := rapid.Int64Range(0, 5e5).Draw(t, "pass")
				m += clocksync.Instant(passed)
				truth += clocksync.Instant(passed + rapid.Int64Range(-passed/20_000, passed/20_000).Draw(t, "drift"))
				changed := rapid.Bool().Draw(t, "changed")
				if changed { // The machine may have slept, and m stood still.
					truth = truth.Add(err("slept"))
				}
				w := l.intervalAt(m, changed)
				if !w.Contains(truth) {
					t.Fatalf("%v does not hold %v by %+v", w, truth, l)
				}
				if w.Earliest < last.Earliest || w.Latest < last.Latest {
					t.Fatalf("%v after %v by %+v", w, last, l)
				}
				last.Earliest = w.Earliest
				if w.Latest != clocksync.MaxInstant {
					last.Latest = w.Latest
				}
				if changed { // As the estimator does at once: nothing from before holds.
					break
				}
			}
		}
	})
}

// TestLineAfterAWrongOne cannot be true and monotone at once, so it says nothing
// until it has caught up.
func TestLineAfterAWrongOne(t *testing.T) {
	bound := func(at clocksync.Instant, offset clocksync.Instant) clocksync.Bound {
		return clocksync.Bound{From: at, Until: clocksync.MaxInstant, At: at, Offset: clocksync.Around(offset, 10)}
	}
	wrong := &line{bound: bound(0, 1000), floor: noFloor}
	right := &line{bound: bound(100, 0)}
	right.followLine(wrong, 100)
	last := wrong.intervalAt(100, false)
	for m := clocksync.Instant(100); m < 3000; m++ {
		w := right.intervalAt(m, false)
		if bounded := m >= 1100; bounded != (w.Latest != clocksync.MaxInstant) || bounded && !w.Contains(m) {
			t.Fatalf("at %v: %v", m, w)
		}
		if w.Earliest < last.Earliest || w.Latest < last.Latest && last.Latest != clocksync.MaxInstant {
			t.Fatalf("at %v: %v after %v", m, w, last)
		}
		last = w
	}
	if last != clocksync.Around(2999, 10) {
		t.Errorf("%v when it has caught up", last)
	}
}
