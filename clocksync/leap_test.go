package clocksync_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
)

// leapSecond is the one at the end of 2016.
var leapSecond = clocksync.Instant(time.Date(2017, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())

// posix is what POSIX calls the moment so long after the leap second begins: it
// repeats the second before.
func posix(t clocksync.Instant) clocksync.Instant {
	if t < 0 {
		return leapSecond + t
	}
	return leapSecond + t - second
}

// TestALeapSecond asks three servers each second around a leap second, all of
// which announce it until it is over, and reads in between. The reading is 1000 s
// when it begins.
func TestALeapSecond(t *testing.T) {
	e := estimator(t, clocksync.Config{Faults: 1})
	type stamp struct {
		t clocksync.Instant // since the leap second began
		clocksync.Interval
	}
	var stamps []stamp
	refused := 0
	for at := -20 * second; at < 20*second; at += second {
		for i, server := range []string{"a", "b", "c"} {
			s := word(server, 1000*second+at, 0, 0)
			s.Offset = clocksync.Around(posix(at)-s.At, time.Duration(i+1)*10*time.Millisecond)
			if at < 0 {
				s.Leap = clocksync.LeapInsert
			}
			if e.Add(s) != clocksync.Taken {
				refused++
			}
		}
		b := e.Bound(1000*second + at)
		for now := at; now < at+second; now += 50 * ms {
			stamps = append(stamps, stamp{now, b.Within(1000*second + now)})
		}
	}
	bounded := 0
	for i, s := range stamps {
		if !s.Contains(posix(s.t)) {
			t.Fatalf("%v after the leap second began %v misses %v", time.Duration(s.t), s.Interval, posix(s.t))
		}
		if s.Bounded() {
			bounded++
		}
		for _, earlier := range stamps[:i] {
			if s.Before(earlier.Interval) {
				t.Fatalf("%v at %v is certainly before %v at %v", s.Interval, s.t, earlier.Interval, earlier.t)
			}
		}
	}
	if missing := len(stamps) - bounded; missing < 40 || missing > 100 || refused == 0 {
		t.Errorf("%d stamps, of 20 a second, have no bound; %d samples were refused", missing, refused)
	}
	if r := e.Diagnostics(1020 * second); r.Contradictions != 0 || r.Refused[clocksync.NearLeap] == 0 {
		t.Errorf("%+v", r)
	}
}

func TestOneServerCannotAnnounceALeapSecond(t *testing.T) {
	e := estimator(t, clocksync.Config{Faults: 1})
	for _, server := range []string{"a", "b", "c"} {
		s := word(server, 1000*second, leapSecond-1005*second, leapSecond-1005*second)
		if server == "a" {
			s.Leap = clocksync.LeapInsert
		}
		add(t, e, s)
	}
	if b := e.Bound(1000 * second); b.Until != clocksync.MaxInstant {
		t.Errorf("%+v", b)
	}
	wantOffset(t, e.Bound(1010*second), clocksync.Synchronized, clocksync.Around(leapSecond-1005*second, 500_026))
}

func TestSmearedTimeHasNoLeapSeconds(t *testing.T) {
	e := estimator(t, clocksync.Config{Timeline: clocksync.SmearedUTC})
	s := word("a", 1000*second, leapSecond-1001*second, leapSecond-1001*second)
	s.Timeline, s.Leap = clocksync.SmearedUTC, clocksync.LeapInsert
	add(t, e, s)
	if b := e.Bound(1000 * second); b.Until != clocksync.MaxInstant || b.Quality.Timeline != clocksync.SmearedUTC {
		t.Errorf("%+v", b)
	}
}

func TestABoundEndsBeforeTheLeapSecond(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := clocksync.Instant(rapid.Int64Range(int64(2*second), int64(20*24*time.Hour)).Draw(t, "before"))
		half := time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "half"))
		e, err := clocksync.NewEstimator(clocksync.Config{Timeline: clocksync.UTC, Drift: rapid.Float64Range(1, 500).Draw(t, "drift")})
		if err != nil {
			t.Fatal(err)
		}
		s := word("a", 1000*second, 0, 0)
		s.Offset, s.Leap = clocksync.Around(leapSecond-before-s.At, half), clocksync.LeapDelete
		e.Add(s)
		b := e.Bound(s.At)
		if !b.Offset.Bounded() {
			if before > 2*second+clocksync.Instant(half) {
				t.Fatalf("no bound %v before the leap second", time.Duration(before))
			}
			return
		}
		last := b.Within(b.Until)
		if !last.Bounded() || last.Latest > leapSecond-second+1 || last.Latest < leapSecond-2*second {
			t.Fatalf("the last interval %v does not end 1 s before %v", last, leapSecond)
		}
	})
}
