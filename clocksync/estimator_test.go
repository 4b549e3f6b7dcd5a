package clocksync_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
)

const ms = clocksync.Instant(time.Millisecond)

func estimator(t *testing.T, c clocksync.Config) *clocksync.Estimator {
	t.Helper()
	if c.Timeline == "" {
		c.Timeline = clocksync.UTC
	}
	e, err := clocksync.NewEstimator(c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// word is a sample of a server at a reading: the offset lies between the two.
func word(server string, at, earliest, latest clocksync.Instant) clocksync.Sample {
	return clocksync.Sample{
		Source: "ntp", Server: server, Timeline: clocksync.UTC,
		From: at - ms, At: at, Offset: interval(earliest, latest),
	}
}

func add(t *testing.T, e *clocksync.Estimator, samples ...clocksync.Sample) {
	t.Helper()
	for _, s := range samples {
		if r := e.Add(s); r != clocksync.Taken {
			t.Fatalf("%+v refused: %v", s, r)
		}
	}
}

func wantOffset(t *testing.T, b clocksync.Bound, status clocksync.Status, want clocksync.Interval) {
	t.Helper()
	got := b.OffsetAt(b.At)
	if want.Latest.Finite() {
		want.Latest++ // The granularity.
	}
	if b.Quality.Status != status || got != want {
		t.Errorf("%v %v, want %v %v", b.Quality.Status, got, status, want)
	}
}

func TestConfigErrors(t *testing.T) {
	for want, c := range map[string]clocksync.Config{
		"clocksync: no timeline: name utc, utc-smeared or the root synchronizer": {},
		"clocksync: faults -1: it must be from 0 to 32":                          {Timeline: clocksync.UTC, Faults: -1},
		"clocksync: drift 100001 ppm: it must be from 0 to 100000":               {Timeline: clocksync.UTC, Drift: clocksync.MaxDrift + 1},
		"clocksync: granularity 0s, limit -1ns, stale 0s: none may be below 0":   {Timeline: clocksync.UTC, Limit: -1},
		"clocksync: granularity -1ns, limit 1s, stale 1m0s: none may be below 0": {Timeline: clocksync.UTC, Granularity: -1, Limit: time.Second, Stale: time.Minute},
		"clocksync: faults 33: it must be from 0 to 32":                          {Timeline: clocksync.UTC, Faults: 33},
		"clocksync: granularity 0s, limit 0s, stale -1ns: none may be below 0":   {Timeline: clocksync.UTC, Stale: -1},
	} {
		if _, err := clocksync.NewEstimator(c); err == nil || err.Error() != want {
			t.Errorf("%+v: %v, want %s", c, err, want)
		}
	}
}

func TestFusion(t *testing.T) {
	all := clocksync.Unbounded
	w := func(server string, earliest, latest clocksync.Instant) clocksync.Sample {
		return word(server, 10*second, earliest, latest)
	}
	for name, c := range map[string]struct {
		faults  int
		samples []clocksync.Sample
		status  clocksync.Status
		want    clocksync.Interval
	}{
		"nobody":                          {0, nil, clocksync.Unknown, all},
		"one":                             {0, []clocksync.Sample{w("a", 5, 9)}, clocksync.Synchronized, interval(5, 9)},
		"one that may be wrong":           {1, []clocksync.Sample{w("a", 5, 9)}, clocksync.Unknown, all},
		"two that may not be wrong":       {0, []clocksync.Sample{w("a", 5, 9), w("b", 7, 12)}, clocksync.Synchronized, interval(7, 9)},
		"two that contradict each other":  {0, []clocksync.Sample{w("a", 5, 9), w("b", 10, 12)}, clocksync.Untrusted, all},
		"two of which one may be wrong":   {1, []clocksync.Sample{w("a", 5, 9), w("b", 20, 30)}, clocksync.Synchronized, interval(5, 30)},
		"three of which one is wrong":     {1, []clocksync.Sample{w("a", 5, 9), w("b", 7, 12), w("c", 100, 101)}, clocksync.Synchronized, interval(7, 9)},
		"just beside the truth":           {1, []clocksync.Sample{w("a", 5, 15), w("b", 7, 18), w("c", 12, 13)}, clocksync.Synchronized, interval(7, 15)},
		"three that contradict":           {1, []clocksync.Sample{w("a", 5, 6), w("b", 7, 8), w("c", 9, 10)}, clocksync.Untrusted, all},
		"one end only":                    {0, []clocksync.Sample{w("a", 5, clocksync.MaxInstant)}, clocksync.Degraded, interval(5, clocksync.MaxInstant)},
		"one end each":                    {0, []clocksync.Sample{w("a", 5, clocksync.MaxInstant), w("b", clocksync.MinInstant, 9)}, clocksync.Synchronized, interval(5, 9)},
		"nothing said":                    {0, []clocksync.Sample{w("a", clocksync.MinInstant, clocksync.MaxInstant)}, clocksync.Unknown, all},
		"far more agree than are needed":  {1, []clocksync.Sample{w("a", 1, 9), w("b", 2, 8), w("c", 3, 7), w("d", 4, 6)}, clocksync.Synchronized, interval(3, 7)},
		"two parts, of which one is true": {1, []clocksync.Sample{w("a", 0, 10), w("b", 0, 2), w("c", 8, 10)}, clocksync.Synchronized, interval(0, 10)},
	} {
		t.Run(name, func(t *testing.T) {
			e := estimator(t, clocksync.Config{Faults: c.faults})
			add(t, e, c.samples...)
			wantOffset(t, e.Bound(10*second), c.status, c.want)
		})
	}
}

func TestABoundGrowsAndIsRenewed(t *testing.T) {
	e := estimator(t, clocksync.Config{Limit: 2 * time.Millisecond, Stale: time.Minute})
	add(t, e, word("a", 10*second, -ms, ms))
	b := e.Bound(10 * second)
	// 1 ms more at 50 ppm is 20 s less 1 ms.
	if want := 30*second - ms; b.Quality.Status != clocksync.Synchronized || b.Quality.Expires.Sub(want).Abs() > time.Microsecond {
		t.Errorf("%+v, want it to expire at %v", b.Quality, want)
	}
	if got := e.Bound(b.Quality.Expires).Quality.Status; got != clocksync.Synchronized {
		t.Errorf("%v when it expires", got)
	}
	if got := e.Bound(b.Quality.Expires + 1).Quality; got.Status != clocksync.Degraded || got.Expires != clocksync.MaxInstant {
		t.Errorf("%+v after it expired", got)
	}
	add(t, e, word("a", 40*second, -3*ms, ms/2))
	b = e.Bound(40 * second)
	wantOffset(t, b, clocksync.Synchronized, interval(-ms-1_500_076, ms/2)) // The old sample gives the earliest end.
	if want := 40*second + 10*second; b.Quality.Expires.Sub(want).Abs() > 2*time.Millisecond {
		t.Errorf("it expires at %v, want %v", b.Quality.Expires, want)
	}
}

func TestABoundThatNobodyRenewsIsDegraded(t *testing.T) {
	e := estimator(t, clocksync.Config{Faults: 1, Stale: time.Minute})
	add(t, e, word("a", 10*second, -5, 5), word("b", 20*second, -5, 5), word("c", 30*second, -5, 5))
	// One of three may be wrong, so two must have been heard: until b is too old.
	if q := e.Bound(30 * second).Quality; q.Status != clocksync.Synchronized || q.Expires != 80*second {
		t.Errorf("%+v", q)
	}
	if q := e.Bound(80*second + 1).Quality; q.Status != clocksync.Degraded {
		t.Errorf("%+v", q)
	}
}

func TestASampleThatEnds(t *testing.T) {
	e := estimator(t, clocksync.Config{})
	s := word("a", 10*second, -5, 5)
	s.Lasts = 5 * time.Second
	add(t, e, s)
	b := e.Bound(10 * second)
	if b.Until != 15*second || b.Within(15*second+1) != clocksync.Unbounded || b.Quality.Expires != 15*second {
		t.Errorf("%+v", b)
	}
	wantOffset(t, e.Bound(15*second+1), clocksync.Unknown, clocksync.Unbounded)
}

// TestAnythingIsSurvived hands in all sorts of samples, observations and
// readings in any order.
func TestAnythingIsSurvived(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, err := clocksync.NewEstimator(clocksync.Config{Timeline: clocksync.UTC, Faults: rapid.IntRange(0, 3).Draw(t, "faults")})
		if err != nil {
			t.Fatal(err)
		}
		instant := rapid.OneOf(
			rapid.Map(rapid.Int64(), func(i int64) clocksync.Instant { return clocksync.Instant(i) }),
			rapid.Map(rapid.Int64Range(-100, 100), func(i int64) clocksync.Instant { return clocksync.Instant(i) * second }),
			rapid.SampledFrom([]clocksync.Instant{clocksync.MinInstant, clocksync.MaxInstant, 0}))
		for range rapid.IntRange(1, 40).Draw(t, "n") {
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				e.Observe(clocksync.Observation{
					Mono: instant.Draw(t, "mono"), Boot: instant.Draw(t, "boot"), Wall: instant.Draw(t, "wall"),
					Raw:   instant.Draw(t, "raw"),
					Slack: time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "slack")),
				})
			case 1:
				b := e.Bound(instant.Draw(t, "now"))
				for range 3 {
					if w := b.Within(instant.Draw(t, "m")); !w.Valid() {
						t.Fatalf("%+v gives %v", b, w)
					}
				}
			case 2:
				for _, s := range e.Diagnostics(instant.Draw(t, "now")).Servers {
					if s.Kept > 8 {
						t.Fatalf("%+v", s)
					}
				}
			default:
				e.Add(clocksync.Sample{
					Source: "s", Server: rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "server"), Timeline: clocksync.UTC,
					From: instant.Draw(t, "from"), At: instant.Draw(t, "at"), Offset: interval(instant.Draw(t, "earliest"), instant.Draw(t, "latest")),
					Lasts: time.Duration(rapid.Int64Range(0, 1e11).Draw(t, "lasts")), Drift: rapid.Float64Range(0, 1e5).Draw(t, "drift"),
					Leap: clocksync.Leap(rapid.IntRange(0, 3).Draw(t, "leap")), Wall: rapid.Bool().Draw(t, "wall"),
				})
			}
		}
	})
}

func BenchmarkEstimatorBound(b *testing.B) {
	for _, n := range []int{1, 7, 64} {
		b.Run(fmt.Sprintf("servers=%d", n), func(b *testing.B) {
			e, err := clocksync.NewEstimator(clocksync.Config{Timeline: clocksync.UTC, Faults: (n - 1) / 2})
			if err != nil {
				b.Fatal(err)
			}
			for i := range n * 8 {
				e.Add(word(strconv.Itoa(i%n), clocksync.Instant(i+10)*second, -clocksync.Instant(i)*ms, clocksync.Instant(i)*ms+ms))
			}
			b.ReportAllocs()
			now := clocksync.Instant(n*8+10) * second
			for b.Loop() {
				now += 1000
				if q := e.Bound(now).Quality; q.Status == clocksync.Untrusted {
					b.Fatal(q)
				}
			}
		})
	}
}

func ExampleEstimator() {
	e, err := clocksync.NewEstimator(clocksync.Config{Timeline: clocksync.UTC, Faults: 1})
	if err != nil {
		panic(err)
	}
	const reading = 100 * clocksync.Instant(time.Second)
	for server, offset := range map[string]clocksync.Interval{ // reference minus reading
		"time1": clocksync.Around(5_000_000, 900),
		"time2": clocksync.Around(5_000_400, 800),
		"time3": clocksync.Around(7_000_000, 100), // wrong
	} {
		e.Add(clocksync.Sample{
			Source: "ntp", Server: server, Timeline: clocksync.UTC,
			From: reading - 2000, At: reading, Offset: offset,
		})
	}
	line := e.Bound(reading)
	fmt.Println(line.Quality.Status, line.Within(reading))
	fmt.Println(line.Within(reading.Add(time.Second))) // 50 ppm of drift
	for _, s := range e.Diagnostics(reading).Servers {
		fmt.Println(s.Server, s.Standing, s.Offset)
	}
	// Output:
	// synchronized [100004999600,100005000901]
	// [101004949597,101005050904]
	// time1 agreeing [4999100,5000900]
	// time2 agreeing [4999600,5001200]
	// time3 outvoted [6999900,7000100]
}
