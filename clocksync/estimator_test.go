package clocksync_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
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

// TestAContradictionWithThePast is a wall clock set back by 3 s whose daemon
// claims 10 ms before and after.
func TestAContradictionWithThePast(t *testing.T) {
	e := estimator(t, clocksync.Config{})
	e.Observe(clocksync.Observation{Mono: 100 * second, Boot: 100 * second, Wall: 1000 * second})
	before, after := word("daemon", 100*second, 900*second-10*ms, 900*second+10*ms), word("daemon", 102*second, 897*second-10*ms, 897*second+10*ms)
	before.Wall, after.Wall = true, true
	add(t, e, before)
	wantOffset(t, e.Bound(101*second), clocksync.Synchronized, before.Offset.Widen(50_003))
	if c := e.Observe(clocksync.Observation{Mono: 101*second + 500*ms, Boot: 101*second + 500*ms, Wall: 998*second + 500*ms}); c != clocksync.Stepped {
		t.Fatalf("the step is seen as %v", c)
	}
	wantOffset(t, e.Bound(101*second+500*ms), clocksync.Unknown, clocksync.Unbounded)
	add(t, e, after)
	b := e.Bound(102 * second)
	wantOffset(t, b, clocksync.Untrusted, clocksync.Unbounded)
	if b.Tainted != 101*second {
		t.Errorf("tainted since %v, want the last good bound at %v", b.Tainted, 101*second)
	}
	r := e.Report(102 * second)
	want := clocksync.Taint{From: 101 * second, Noticed: 102 * second, To: clocksync.MaxInstant, Outliers: []string{"ntp/daemon"}, Past: true}
	if len(r.Taints) != 1 || fmt.Sprint(r.Taints[0]) != fmt.Sprint(want) || r.Contradictions != 1 || r.Steps != 1 {
		t.Errorf("%+v, want %+v", r, want)
	}

	// Trust comes back after 8 samples that agree.
	for i := range clocksync.Instant(8) {
		wantOffset(t, e.Bound((103+i)*second), clocksync.Untrusted, clocksync.Unbounded)
		again := word("daemon", (103+i)*second, 897*second-10*ms, 897*second+10*ms)
		again.Wall = true
		add(t, e, again)
	}
	b = e.Bound(110 * second)
	wantOffset(t, b, clocksync.Synchronized, interval(897*second-10*ms, 897*second+10*ms))
	if got := e.Report(110 * second).Taints[0].To; got != 110*second || b.Tainted != clocksync.MaxInstant || b.Within(109*second) != clocksync.Unbounded {
		t.Errorf("the taint ended at %v; the bound is %+v", got, b)
	}
}

func TestAStepInsideTheBound(t *testing.T) {
	e := estimator(t, clocksync.Config{})
	e.Observe(clocksync.Observation{Mono: 100 * second, Boot: 100 * second, Wall: 1000 * second})
	before, after := word("daemon", 100*second, 895*second, 905*second), word("daemon", 102*second, 892*second, 902*second)
	before.Wall, after.Wall = true, true
	add(t, e, before)
	e.Bound(100 * second)
	e.Observe(clocksync.Observation{Mono: 101 * second, Boot: 101 * second, Wall: 998 * second})
	add(t, e, after)
	wantOffset(t, e.Bound(102*second), clocksync.Synchronized, interval(895*second-100_006, 902*second))
}

func TestAStepIsNothingToOtherSources(t *testing.T) {
	e := estimator(t, clocksync.Config{})
	e.Observe(clocksync.Observation{Mono: second, Boot: second, Wall: second})
	add(t, e, word("a", 2*second, -5, 5))
	e.Observe(clocksync.Observation{Mono: 3 * second, Boot: 3 * second, Wall: 99 * second})
	if b := e.Bound(3 * second); b.Quality.Status != clocksync.Synchronized {
		t.Errorf("%+v", b)
	}
}

func TestASuspendVoidsAll(t *testing.T) {
	e := estimator(t, clocksync.Config{})
	e.Observe(clocksync.Observation{Mono: 10 * second, Boot: 10 * second, Wall: 10 * second})
	add(t, e, word("a", 11*second, -5, 5))
	e.Bound(11 * second)
	if c := e.Observe(clocksync.Observation{Mono: 12 * second, Boot: 99 * second, Wall: 99 * second}); c != clocksync.Suspended {
		t.Fatalf("seen as %v", c)
	}
	wantOffset(t, e.Bound(12*second), clocksync.Unknown, clocksync.Unbounded)
	straddles := word("a", 12*second+1, -5, 5)
	if r := e.Add(straddles); r != clocksync.Void {
		t.Errorf("an exchange that began before the suspend is %v", r)
	}
	add(t, e, word("a", 13*second, 87*second, 87*second+9))
	b := e.Bound(14 * second)
	wantOffset(t, b, clocksync.Synchronized, interval(87*second, 87*second+9).Widen(50_003))
	if b.Within(14*second-1) != clocksync.Unbounded || b.Tainted != clocksync.MaxInstant {
		t.Errorf("%+v", b)
	}
	if r := e.Report(14 * second); r.Suspends != 1 || r.Refused[clocksync.Void] != 1 || r.Contradictions != 0 {
		t.Errorf("%+v", r)
	}
}

func TestReasons(t *testing.T) {
	e := estimator(t, clocksync.Config{})
	good := word("a", 10*second, -5, 5)
	add(t, e, good)
	change := func(f func(*clocksync.Sample)) clocksync.Sample {
		s := word("a", 11*second, -5, 5)
		f(&s)
		return s
	}
	for name, c := range map[string]struct {
		sample clocksync.Sample
		want   clocksync.Reason
	}{
		"again":             {good, clocksync.Outdated},
		"no source":         {change(func(s *clocksync.Sample) { s.Source = "" }), clocksync.Malformed},
		"no server":         {change(func(s *clocksync.Sample) { s.Server = "" }), clocksync.Malformed},
		"no timeline":       {change(func(s *clocksync.Sample) { s.Timeline = "" }), clocksync.Malformed},
		"no interval":       {change(func(s *clocksync.Sample) { s.Offset = interval(5, 4) }), clocksync.Malformed},
		"infinite instant":  {change(func(s *clocksync.Sample) { s.Offset = clocksync.Exactly(clocksync.MaxInstant) }), clocksync.Malformed},
		"before it began":   {change(func(s *clocksync.Sample) { s.From = s.At + 1 }), clocksync.Malformed},
		"never measured":    {change(func(s *clocksync.Sample) { s.From = clocksync.MinInstant }), clocksync.Malformed},
		"negative lifetime": {change(func(s *clocksync.Sample) { s.Lasts = -1 }), clocksync.Malformed},
		"negative drift":    {change(func(s *clocksync.Sample) { s.Drift = -1 }), clocksync.Malformed},
		"unknown leap":      {change(func(s *clocksync.Sample) { s.Leap = 4 }), clocksync.Malformed},
		"smeared":           {change(func(s *clocksync.Sample) { s.Timeline = clocksync.SmearedUTC }), clocksync.OtherTimeline},
		"unsynchronized":    {change(func(s *clocksync.Sample) { s.Leap = clocksync.LeapUnsynchronized }), clocksync.Unsynchronized},
	} {
		if got := e.Add(c.sample); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	wantOffset(t, e.Bound(10*second), clocksync.Synchronized, interval(-5, 5))
	for i := range clocksync.MaxServers - 1 {
		add(t, e, word(fmt.Sprintf("b%d", i), 11*second, -5, 5))
	}
	if got := e.Add(word("c", 11*second, -5, 5)); got != clocksync.TooMany {
		t.Errorf("one server more than fit is %v", got)
	}
	if got := e.Report(11 * second).Refused; got[clocksync.Malformed] != 10 || got[clocksync.TooMany] != 1 || got[clocksync.Taken] != clocksync.MaxServers {
		t.Errorf("counted %v", got)
	}
}

func TestRoomForNewServers(t *testing.T) {
	e := estimator(t, clocksync.Config{})
	for i := range 10 * clocksync.MaxServers {
		s := word(fmt.Sprintf("s%d", i), clocksync.Instant(i+10)*second, -5, 5)
		s.Lasts = time.Minute
		add(t, e, s)
	}
	if n := len(e.Report(9999 * second).Servers); n > clocksync.MaxServers {
		t.Errorf("%d servers are kept", n)
	}
}

func TestWhoContradictsItselfIsWrongForAWhile(t *testing.T) {
	e := estimator(t, clocksync.Config{Faults: 1})
	for i := range clocksync.Instant(10) {
		at := (10 + i) * second
		liar := word("c", at, 6*ms, 8*ms)
		if i == 0 {
			liar.Offset = interval(-9*ms, -7*ms)
		}
		add(t, e, word("a", at, -10*ms, 7*ms), word("b", at, -8*ms, 5*ms), liar)
		b := e.Bound(at)
		r := e.Report(at)
		// Before its second word and from its ninth on, c and a may be right and b wrong.
		want := map[bool]clocksync.Interval{true: interval(-8*ms, 5*ms), false: interval(-9*ms, 5*ms)}[i > 0]
		if i >= 8 {
			want = interval(-8*ms, 5*ms) // But the offset cannot have jumped there.
		}
		got := b.OffsetAt(at)
		if got.Earliest.Sub(want.Earliest).Abs() > 1e6 || got.Latest.Sub(want.Latest).Abs() > 1e6 {
			t.Errorf("after %d words %v, want %v", i+1, got, want)
		}
		if wrong := r.Servers[2].Standing == clocksync.Outvoted; wrong != (i > 0) {
			t.Errorf("after %d words c is %v", i+1, r.Servers[2].Standing)
		}
		if i == 9 && r.Servers[2].Contradicted != 1 {
			t.Errorf("%+v", r.Servers[2])
		}
	}
}

func TestReport(t *testing.T) {
	e := estimator(t, clocksync.Config{Faults: 1})
	fixed := word("operator", 12*second, -50*ms, 50*ms)
	fixed.Source, fixed.Assumed = "fixed", true
	short := word("d", 10*second, 0, 1)
	short.Lasts = time.Second
	add(t, e, word("b", 10*second, -5*ms, 5*ms), word("b", 11*second, -7*ms, 4*ms), word("c", 11*second, 99*ms, 100*ms), short, fixed)
	b := e.Bound(12 * second)
	if q := b.Quality; q.Source != "fixed+ntp" || !q.Assumed || q.Unverified || q.Timeline != clocksync.UTC {
		t.Errorf("%+v", q)
	}
	r := e.Report(20 * second)
	var lines []string
	for _, s := range r.Servers {
		lines = append(lines, fmt.Sprintf("%s/%s %v kept %d best %v", s.Source, s.Server, s.Standing, s.Kept, time.Duration(s.Best.At)))
	}
	want := []string{
		"fixed/operator agreeing kept 1 best 12s",
		"ntp/b agreeing kept 2 best 10s",
		"ntp/c outvoted kept 1 best 11s",
		"ntp/d silent kept 0 best 0s",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("servers:\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	if age, ok := r.Age(); age != 8*time.Second || !ok || r.Counted != 3 || r.Needed != 2 {
		t.Errorf("age %v %v, counted %d, needed %d", age, ok, r.Counted, r.Needed)
	}
	if r.Offset != b.OffsetAt(20*second) {
		t.Errorf("%v is not the bound %v", r.Offset, b)
	}
	if _, ok := estimator(t, clocksync.Config{}).Report(0).Age(); ok {
		t.Error("there is an age without samples")
	}
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
				for _, s := range e.Report(instant.Draw(t, "now")).Servers {
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
	for _, s := range e.Report(reading).Servers {
		fmt.Println(s.Server, s.Standing, s.Offset)
	}
	// Output:
	// synchronized [100004999600,100005000901]
	// [101004949597,101005050904]
	// time1 agreeing [4999100,5000900]
	// time2 agreeing [4999600,5001200]
	// time3 outvoted [6999900,7000100]
}
