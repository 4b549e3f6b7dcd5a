package clocksync_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
)

const second = clocksync.Instant(time.Second)

func interval(a, b clocksync.Instant) clocksync.Interval {
	return clocksync.Interval{Earliest: a, Latest: b}
}

func TestBoundWithin(t *testing.T) {
	b := clocksync.Bound{
		From: 5 * second, Until: 30 * second, At: 10 * second,
		Offset: interval(100, 300), Drift: 50,
	}
	half := clocksync.Bound{Until: clocksync.MaxInstant, At: second, Offset: interval(7, clocksync.MaxInstant), Drift: 50}
	for _, c := range []struct {
		bound *clocksync.Bound
		m     clocksync.Instant
		want  clocksync.Interval
	}{
		{&b, 10 * second, interval(10*second+100, 10*second+300)},
		// 10 s at 50 ppm are 500 us, and 25 ns since a clock at 1-r misses r/(1-r).
		{&b, 20 * second, interval(20*second+100-500_026, 20*second+300+500_026)},
		{&b, 5 * second, interval(5*second+100-250_013, 5*second+300+250_013)},
		{&b, 5*second - 1, clocksync.Unbounded},
		{&b, 30*second + 1, clocksync.Unbounded},
		{&half, second, interval(second+7, clocksync.MaxInstant)},
		{&clocksync.Bound{}, second, clocksync.Unbounded},
	} {
		if got := c.bound.Within(c.m); got != c.want {
			t.Errorf("Within(%v) = %v, want %v", c.m, got, c.want)
		}
	}
}

// TestBoundFollowsTheClock lets a clock run at any rate within the drift, both
// ways from the sample.
func TestBoundFollowsTheClock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		drift := rapid.Float64Range(0, clocksync.MaxDrift).Draw(t, "drift")
		rate := 1 + drift*1e-6*rapid.SampledFrom([]float64{-1, -0.5, 0, 1}).Draw(t, "part")
		passed := rapid.Int64Range(-int64(time.Hour), int64(time.Hour)).Draw(t, "passed")
		at := clocksync.Instant(rapid.Int64Range(0, int64(1000*time.Hour)).Draw(t, "at"))
		k := clocksync.Instant(rapid.Int64Range(-1e18, 1e18).Draw(t, "offset"))
		b := clocksync.Bound{From: clocksync.MinInstant, Until: clocksync.MaxInstant, At: at, Offset: clocksync.Exactly(k), Drift: drift}
		m := at.Add(time.Duration(passed))
		truth := at + k + clocksync.Instant(float64(passed)/rate)
		const float = 2 // The truth here is rounded.
		if got := b.Within(m); truth < got.Earliest-float || truth > got.Latest+float {
			t.Fatalf("Within(%v) = %v misses %v", m, got, truth)
		}
	})
}

func TestBoundIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := clocksync.Bound{
			From: clocksync.MinInstant, Until: clocksync.MaxInstant, At: clocksync.Instant(rapid.Int64Range(0, 1e15).Draw(t, "at")),
			Offset: interval(-5, 5), Drift: rapid.Float64Range(0, clocksync.MaxDrift).Draw(t, "drift"),
		}
		m := clocksync.Instant(rapid.Int64Range(0, 1e15).Draw(t, "m"))
		n := m + clocksync.Instant(rapid.Int64Range(0, 1000).Draw(t, "step"))
		if x, y := b.Within(m), b.Within(n); x.Earliest > y.Earliest || x.Latest > y.Latest {
			t.Fatalf("%v at %v, then %v at %v", x, m, y, n)
		}
	})
}

func TestExchange(t *testing.T) {
	for name, c := range map[string]struct {
		x    clocksync.Exchange
		want clocksync.Interval
		ok   bool
	}{
		"symmetric":       {clocksync.Exchange{Sent: 1000, Arrived: 5020, Departed: 5030, Received: 1050}, interval(3980, 4021), true},
		"at once":         {clocksync.Exchange{Sent: 1000, Arrived: 5000, Departed: 5000, Received: 1000}, interval(4000, 4000), true},
		"drifting":        {clocksync.Exchange{Sent: 0, Arrived: 5000 * second, Departed: 5000 * second, Received: second}, interval(4999*second, 5000*second+100_011), true},
		"less than no":    {clocksync.Exchange{Sent: 1000, Arrived: 5000, Departed: 5100, Received: 1050}, clocksync.Unbounded, false},
		"received before": {clocksync.Exchange{Sent: 1000, Arrived: 5000, Departed: 5000, Received: 999}, clocksync.Unbounded, false},
		"departed before": {clocksync.Exchange{Sent: 1000, Arrived: 5000, Departed: 4999, Received: 1050}, clocksync.Unbounded, false},
	} {
		if got, ok := c.x.Offset(100); got != c.want || ok != c.ok {
			t.Errorf("%s: %v, %v, want %v, %v", name, got, ok, c.want, c.ok)
		}
	}
}

func TestObservationChange(t *testing.T) {
	const none = clocksync.MinInstant
	at := func(mono, boot, wall clocksync.Instant) clocksync.Observation {
		return clocksync.Observation{Mono: mono, Boot: boot, Wall: wall}
	}
	slow := at(20*second, 20*second+50_000, 120*second+50_000)
	slow.Slack = 50 * time.Microsecond
	for name, c := range map[string]struct {
		before, after clocksync.Observation
		want          clocksync.Change
	}{
		"nothing":                   {at(10*second, 10*second, 100*second), at(20*second, 20*second, 110*second), clocksync.Unchanged},
		"slewed":                    {at(10*second, 10*second, 100*second), at(20*second, 20*second, 110*second+9_000_000), clocksync.Unchanged},
		"forward":                   {at(10*second, 10*second, 100*second), at(20*second, 20*second, 113*second), clocksync.Stepped},
		"back":                      {at(10*second, 10*second, 100*second), at(20*second, 20*second, 107*second), clocksync.Stepped},
		"asleep":                    {at(10*second, 10*second, 100*second), at(20*second, 23*second, 113*second), clocksync.Suspended},
		"asleep for a moment":       {at(10*second, 10*second, 100*second), at(20*second, 20*second+1, 110*second), clocksync.Suspended},
		"asleep, wall not yet set":  {at(10*second, 10*second, 100*second), at(20*second, 23*second, 110*second), clocksync.Suspended},
		"held up between readings":  {at(10*second, 10*second, 110*second), slow, clocksync.Unchanged},
		"forward, no boot clock":    {at(10*second, none, 100*second), at(20*second, none, 113*second), clocksync.Suspended},
		"forward, boot read once":   {at(10*second, 10*second, 100*second), at(20*second, none, 113*second), clocksync.Suspended},
		"back, no boot clock":       {at(10*second, none, 100*second), at(20*second, none, 107*second), clocksync.Stepped},
		"wall clock not read":       {at(10*second, 10*second, none), at(20*second, 20*second, 113*second), clocksync.Unchanged},
		"asleep, only wall is read": {at(10*second, none, 100*second), at(10*second+1000, none, 100*second+200_000_000), clocksync.Suspended},
	} {
		if got := c.after.Change(c.before); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func BenchmarkBoundWithin(b *testing.B) {
	e, err := clocksync.NewEstimator(clocksync.Config{Timeline: clocksync.UTC})
	if err != nil {
		b.Fatal(err)
	}
	e.Add(word("a", 10*second, 100, 300))
	line := e.Bound(10 * second)
	b.ReportAllocs()
	m := 10 * second
	for b.Loop() {
		m += 1000
		if w := line.Within(m); w.Earliest > w.Latest {
			b.Fatal(w)
		}
	}
}

func BenchmarkObservationChange(b *testing.B) {
	seen := clocksync.Observation{Mono: second, Boot: second, Wall: second}
	b.ReportAllocs()
	o := clocksync.Observation{Mono: second, Boot: clocksync.MinInstant, Wall: second}
	for b.Loop() {
		o.Mono, o.Wall = o.Mono+1000, o.Wall+1000
		if o.Change(seen) != clocksync.Unchanged {
			b.Fatal(o)
		}
	}
}

func ExampleExchange() {
	// The request was on its way for 3 ms, the reply for 1 ms; nobody knows.
	ms := clocksync.Instant(time.Millisecond)
	x := clocksync.Exchange{Sent: 100 * ms, Arrived: 7103 * ms, Departed: 7104 * ms, Received: 105 * ms}
	offset, ok := x.Offset(50)
	fmt.Println(offset, ok, x.RoundTrip()) // truly 7000 ms
	// Output: [6999000000,7003000251] true 4ms
}
