package source

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/clocksync/source/ntp"
	"github.com/gopegasus/pegasus/internal/testwait"
)

// scripted is a source that a test writes.
type scripted struct {
	servers int
	sample  func(ctx context.Context) ([]clocksync.Sample, error)
}

func (s scripted) Name() string         { return "script" }
func (s scripted) Servers() int         { return s.servers }
func (s scripted) Every() time.Duration { return shortest }

func (s scripted) Sample(ctx context.Context) ([]clocksync.Sample, error) { return s.sample(ctx) }

// measuredOf is a clock that is closed with the test.
func measuredOf(tb testing.TB, o MeasuredOptions, clocks readings, sources ...Source) *MeasuredClock {
	tb.Helper()
	c, err := measured(o, clocks, sources)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	return c
}

func bounded(c clocksync.Clock) func() bool {
	return func() bool { return c.Now().Within.Bounded() }
}

// exactly is a sample that says away, give or take.
func exactly(h readings, timeline clocksync.Timeline, offset clocksync.Interval) clocksync.Sample {
	now := h.mono()
	return clocksync.Sample{Source: "script", Server: "s", Timeline: timeline, From: now, At: now, Offset: offset}
}

func TestMeasuredHoldsTheTruthAmongLiars(t *testing.T) {
	var lie atomic.Bool
	liar := &fakeNTP{mutate: func(b []byte) []byte {
		if lie.Load() {
			putNTP(b[32:], away.Add(5*time.Second)+readRaw())
			putNTP(b[ntpTransmit:], away.Add(5*time.Second)+readRaw())
		}
		return b
	}}
	servers := []string{(&fakeNTP{}).start(t), (&fakeNTP{in: 3 * time.Millisecond}).start(t), liar.start(t)}
	s, err := NTP(ntp.Query, NTPOptions{Servers: servers, Every: shortest, Timeout: patient})
	if err != nil {
		t.Fatal(err)
	}
	c := measuredOf(t, MeasuredOptions{Timeline: clocksync.UTC}, machine, s)
	stamp := func() clocksync.Stamp {
		got := c.Now()
		if truth := got.Mono + away; !got.Within.Contains(truth) {
			t.Fatalf("%v does not hold %v", got, truth)
		}
		return got
	}
	stamp()
	for _, phase := range []bool{false, true, false} {
		lie.Store(phase)
		before := c.Diagnostics().Sources[0].Samples
		testwait.Until(t, "30 samples", func() bool { stamp(); return c.Diagnostics().Sources[0].Samples > before+30 })
	}
	if q := c.Quality(); q.Status != clocksync.Synchronized || q.Source != "ntp" || q.Timeline != clocksync.UTC || q.Assumed || q.Unverified {
		t.Errorf("%+v", q)
	}
	if w := stamp().Within.Width(); w > 20*time.Millisecond {
		t.Errorf("%v wide", w)
	}
}

// TestMeasuredNeverGoesBack stamps from several goroutines while bounds are
// swapped that differ as much as honest ones can.
func TestMeasuredNeverGoesBack(t *testing.T) {
	c := measuredOf(t, MeasuredOptions{Timeline: clocksync.UTC}, machine, scripted{1, func(context.Context) ([]clocksync.Sample, error) {
		return nil, errors.New("none")
	}})
	done := make(chan struct{})
	go func() {
		defer close(done)
		widths := []time.Duration{time.Millisecond, time.Microsecond, time.Second, 50 * time.Microsecond, -1}
		for i := range 20_000 {
			now := readRaw()
			b := clocksync.Bound{From: clocksync.MinInstant, Until: clocksync.MaxInstant, At: now, Drift: 50, Seen: machine.observeClocks(), Offset: clocksync.Unbounded}
			if w := widths[i%len(widths)]; w >= 0 {
				b.Offset = clocksync.Around(away, w)
			}
			c.mu.Lock()
			c.publishBound(b)
			c.mu.Unlock()
		}
	}()
	var all []clocksync.Stamp
	var mu sync.Mutex
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			var mine []clocksync.Stamp
			for ended := false; !ended; {
				select {
				case <-done:
					ended = true
				default:
				}
				if s := c.Now(); len(mine) < 100_000 {
					mine = append(mine, s)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, mine...)
		})
	}
	readers.Wait()
	slices.SortStableFunc(all, func(a, b clocksync.Stamp) int { return cmp.Compare(a.Mono, b.Mono) })
	var monotone clocksync.Monotone
	for i, s := range all {
		// Stamps of one reading have no order.
		if i > 0 && s.Mono == all[i-1].Mono {
			continue
		}
		if next, ok := monotone.Next(s); !ok || next != s {
			t.Fatalf("stamp %d of %d: %v becomes %v", i, len(all), s, next)
		}
		if !s.Within.Contains(s.Mono + away) {
			t.Fatalf("%v does not hold %v", s, s.Mono+away)
		}
	}
}

// TestMeasuredFeelsSleepAtOnce stamps between the end of a sleep and the next
// look at the clocks.
func TestMeasuredFeelsSleepAtOnce(t *testing.T) {
	for name, d := range map[string]struct{ wall, boot time.Duration }{
		"slept":        {time.Hour, time.Hour},
		"stepped on":   {time.Hour, 0},
		"stepped back": {-time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(readRaw)
			host := h.readings()
			var truth atomic.Int64
			truth.Store(int64(away))
			var quiet atomic.Bool
			c := measuredOf(t, MeasuredOptions{Timeline: clocksync.UTC}, host, scripted{1, func(ctx context.Context) ([]clocksync.Sample, error) {
				if quiet.Load() {
					return nil, errors.New("quiet")
				}
				return []clocksync.Sample{exactly(host, clocksync.UTC, clocksync.Around(clocksync.Instant(truth.Load()), time.Millisecond))}, nil
			}})
			testwait.Until(t, "a bound", bounded(c))
			quiet.Store(true)
			c.mu.Lock() // Nobody looks at the clocks.
			truth.Add(int64(d.boot))
			h.step(d.wall, d.boot)
			before, s := c.Now(), c.Now()
			c.mu.Unlock()
			if s.Within.Latest != clocksync.MaxInstant || s.Within.Earliest < before.Within.Earliest || s.Within.Earliest == clocksync.MinInstant {
				t.Errorf("%v after %v", s, before)
			}
			testwait.Until(t, "that it is noticed", func() bool { r := c.Diagnostics(); return r.Suspends+r.Steps > 0 })
			if s := c.Now(); d.boot > 0 && s.Within.Latest != clocksync.MaxInstant {
				t.Errorf("%v by a bound from before", s)
			}
			quiet.Store(false)
			testwait.Until(t, "a bound again", bounded(c))
			if s := c.Now(); !s.Within.Contains(s.Mono + clocksync.Instant(truth.Load())) {
				t.Errorf("%v does not hold %v", s, s.Mono+clocksync.Instant(truth.Load()))
			}
		})
	}
}

func TestMeasuredAsksAtOnceAfterAChange(t *testing.T) {
	h := newHost(readRaw)
	var polls atomic.Int64
	c := measuredOf(t, MeasuredOptions{Timeline: clocksync.UTC}, h.readings(), slow{scripted{1, func(context.Context) ([]clocksync.Sample, error) {
		polls.Add(1)
		return nil, nil
	}}})
	testwait.Until(t, "the first poll", func() bool { return polls.Load() == 1 })
	h.step(time.Hour, time.Hour)
	c.Now()
	testwait.Until(t, "a poll long before its time", func() bool { return polls.Load() == 2 })
}

// slow is a source that is asked once an hour.
type slow struct{ scripted }

func (slow) Every() time.Duration { return time.Hour }

func TestMeasuredFollowsTheTimelineOfItsSource(t *testing.T) {
	var timeline atomic.Value
	timeline.Store(clocksync.Timeline("first"))
	c := measuredOf(t, MeasuredOptions{}, machine, scripted{1, func(context.Context) ([]clocksync.Sample, error) {
		tl := timeline.Load().(clocksync.Timeline)
		offset := clocksync.Instant(1e15)
		if tl == "second" {
			offset = 5 // Earlier than anything of the first.
		}
		return []clocksync.Sample{exactly(machine, tl, clocksync.Around(offset, 10))}, nil
	}})
	testwait.Until(t, "a bound", func() bool { return c.Quality().Timeline == "first" && bounded(c)() })
	timeline.Store(clocksync.Timeline("second"))
	testwait.Until(t, "the other timeline", func() bool { return c.Quality().Timeline == "second" && bounded(c)() })
	if s := c.Now(); s.Within.Latest > s.Mono+1e9 {
		t.Errorf("%v is of the first timeline", s)
	}
}

func TestMeasuredCounts(t *testing.T) {
	n := 0
	c := measuredOf(t, MeasuredOptions{Timeline: clocksync.UTC}, machine, scripted{3, func(context.Context) ([]clocksync.Sample, error) {
		n++
		if n%2 == 0 {
			return []clocksync.Sample{exactly(machine, clocksync.UTC, clocksync.Around(away, 10))}, nil
		}
		return nil, errors.Join(refusalOf("script", "a", refuseServer(Stale, "old")), refusalOf("script", "b", refuseServer(Malformed, "short")), errors.New("plain"))
	}})
	testwait.Until(t, "ten polls", func() bool { return c.Diagnostics().Sources[0].Polls >= 10 })
	got := c.Diagnostics().Sources[0]
	if got.Name != "script" || got.Servers != 3 || got.Samples != got.Polls/2 {
		t.Errorf("%+v", got)
	}
	failed := got.Polls - got.Samples
	for _, r := range []Reason{Stale, Malformed, Failed} {
		if got.Refused[r] != failed {
			t.Errorf("%s: %d, want %d", r, got.Refused[r], failed)
		}
	}
	if got.Faults["a"] != "old" || got.Faults["b"] != "short" {
		t.Errorf("%v", got.Faults)
	}
	// It is a copy.
	got.Refused[Stale] = 0
	if c.Diagnostics().Sources[0].Refused[Stale] == 0 {
		t.Error("the report is the clock's own")
	}
}

func TestMeasuredRefusesOptions(t *testing.T) {
	one := scripted{servers: 1}
	for want, c := range map[string]struct {
		o       MeasuredOptions
		sources []Source
	}{
		"source: nothing to measure with: name a source, or use the system clock":            {},
		"source: several sources need a timeline: utc, utc-smeared or the root synchronizer": {sources: []Source{one, one}},
		"source: faults 1: of 2 servers at most 0 may be wrong; configure more":              {MeasuredOptions{Timeline: clocksync.UTC, Faults: 1}, []Source{one, one}},
		"source: faults -2: of 1 servers at most 0 may be wrong; configure more":             {MeasuredOptions{Faults: -2}, []Source{one}},
		"source: 65 servers: at most 64 can be measured with":                                {sources: []Source{scripted{servers: 64}, one}},
		"drift -1 ppm": {MeasuredOptions{Drift: -1}, []Source{one}},
	} {
		if _, err := Measured(c.o, c.sources...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestFaultsByTheNumberOfServers(t *testing.T) {
	for servers, want := range map[int]int{1: 0, 2: 0, 3: 1, 4: 1, 5: 2, 64: 31} {
		if got, err := (MeasuredOptions{}).faults(servers); err != nil || got != want {
			t.Errorf("%d of %d may be wrong: %v", got, servers, err)
		}
	}
	if got, err := (MeasuredOptions{Faults: NoFaults}).faults(9); err != nil || got != 0 {
		t.Errorf("%d, %v", got, err)
	}
}

func TestMeasuredWaits(t *testing.T) {
	var ready atomic.Bool
	c := measuredOf(t, MeasuredOptions{Timeline: clocksync.UTC}, machine, scripted{1, func(context.Context) ([]clocksync.Sample, error) {
		if !ready.Load() {
			return nil, errors.Join(refusalOf("script", "b", refuseServer(Stale, "old")), refusalOf("script", "a", refuseServer(Busy, "writing")))
		}
		return []clocksync.Sample{exactly(machine, clocksync.UTC, clocksync.Around(away, time.Millisecond))}, nil
	}})
	testwait.Until(t, "a poll", func() bool { return c.Diagnostics().Sources[0].Polls > 0 })
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	const want = "source: no bound yet (script a: writing; script b: old): context canceled"
	if err := c.Wait(ended); err == nil || err.Error() != want || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %s", err, want)
	}
	ready.Store(true)
	if err := c.Wait(t.Context()); err != nil || !c.Now().Within.Bounded() {
		t.Errorf("%v, %v", err, c.Now())
	}
}

func TestMeasuredCloses(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	stuck := scripted{1, func(ctx context.Context) ([]clocksync.Sample, error) { <-ctx.Done(); return nil, ctx.Err() }}
	c, err := Measured(MeasuredOptions{Timeline: clocksync.UTC}, stuck, scripted{1, func(context.Context) ([]clocksync.Sample, error) { return nil, nil }})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	c.Close()
	if s := c.Now(); s.Domain != System().Domain() || s.Within.Bounded() {
		t.Errorf("%v of a clock that measured nothing", s)
	}
}

func measuring(tb testing.TB) *MeasuredClock {
	tb.Helper()
	c := measuredOf(tb, MeasuredOptions{Timeline: clocksync.UTC}, machine, scripted{1, func(context.Context) ([]clocksync.Sample, error) {
		return []clocksync.Sample{exactly(machine, clocksync.UTC, clocksync.Around(away, time.Millisecond))}, nil
	}})
	testwait.Until(tb, "a bound", bounded(c))
	return c
}

func TestMeasuredAllocatesNothing(t *testing.T) {
	c := measuring(t)
	c.Close()
	own := OwnDomain(c)
	if allocs := testing.AllocsPerRun(1000, func() { c.Now(); own.Now(); c.Quality() }); allocs != 0 {
		t.Errorf("a stamp allocates %v times", allocs)
	}
	if own.Now().Domain == c.Domain() || !own.Now().Within.Bounded() {
		t.Errorf("%v", own.Now())
	}
}

func BenchmarkMeasured(b *testing.B) {
	c := measuring(b)
	b.Run("what=stamp", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.Now()
		}
	})
	b.Run("what=time.Now", func(b *testing.B) {
		for b.Loop() {
			time.Now()
		}
	})
	b.Run("what=stamp/parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				c.Now()
			}
		})
	})
}

// TestMeasuredFeelsASlew: a daemon runs the readings away from the clock that
// nobody slews; there is no bound until it ceases.
func TestMeasuredFeelsASlew(t *testing.T) {
	h := newHost(readRaw)
	host := h.readings()
	c := measuredOf(t, MeasuredOptions{Timeline: clocksync.UTC}, host, scripted{1, func(context.Context) ([]clocksync.Sample, error) {
		return []clocksync.Sample{exactly(host, clocksync.UTC, clocksync.Around(away, time.Millisecond))}, nil
	}})
	testwait.Until(t, "a bound", bounded(c))
	h.slew(true)
	testwait.Until(t, "that it is noticed", func() bool { return c.Diagnostics().Slews == 1 })
	if q := c.Quality(); q.Status != clocksync.Untrusted || c.Now().Within.Latest != clocksync.MaxInstant {
		t.Errorf("%+v, %v", q, c.Now())
	}
	h.slew(false)
	testwait.Until(t, "a bound again", bounded(c))
	if r := c.Diagnostics(); r.Slews != 1 || len(r.Taints) != 1 || !r.Taints[0].Slewed {
		t.Errorf("%+v", r)
	}
}

// TestRawClock: on Linux nobody turns at it while this test runs, and it is there.
func TestRawClock(t *testing.T) {
	before, after := machine.observeClocks(), machine.observeClocks()
	if runtime.GOOS == "linux" && (before.Raw == 0 || after.Raw <= before.Raw) || runtime.GOOS != "linux" && before.Raw != 0 {
		t.Errorf("%+v, then %+v", before, after)
	}
}
