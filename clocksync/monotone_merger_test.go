package clocksync_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
)

func TestMonotoneMerger(t *testing.T) {
	const (
		lo  = clocksync.MinInstant
		inf = clocksync.MaxInstant
	)
	type stamp struct{ mono, earliest, latest clocksync.Instant }
	for name, c := range map[string]struct{ in, want []stamp }{
		"in order, already monotone":  {[]stamp{{1, 0, 2}, {2, 1, 3}}, []stamp{{1, 0, 2}, {2, 1, 3}}},
		"raised as Monotone does":     {[]stamp{{10, 5, 15}, {11, 2, 12}}, []stamp{{10, 5, 15}, {11, 5, 15}}},
		"lowered below a later one":   {[]stamp{{10, 5, 15}, {9, 7, 18}}, []stamp{{10, 5, 15}, {9, 5, 15}}},
		"between two":                 {[]stamp{{10, 5, 15}, {20, 16, 24}, {15, 0, 99}}, []stamp{{10, 5, 15}, {20, 16, 24}, {15, 5, 24}}},
		"equal readings":              {[]stamp{{10, 5, 15}, {10, 2, 12}, {11, 3, 13}}, []stamp{{10, 5, 15}, {10, 2, 12}, {11, 5, 15}}},
		"equal readings, from above":  {[]stamp{{10, 5, 15}, {10, 2, 12}, {9, 8, 14}}, []stamp{{10, 5, 15}, {10, 2, 12}, {9, 2, 12}}},
		"an infinite end is left out": {[]stamp{{10, 5, 15}, {20, 6, inf}, {30, 7, 14}, {15, 1, 16}}, []stamp{{10, 5, 15}, {20, 6, inf}, {30, 7, 15}, {15, 5, 15}}},
		"nothing known at first":      {[]stamp{{10, lo, inf}, {20, 15, 25}, {30, lo, inf}}, []stamp{{10, lo, inf}, {20, 15, 25}, {30, 15, inf}}},
		"a wrong stamp stays whole":   {[]stamp{{10, 50, 60}, {20, 55, inf}, {30, 1, 2}}, []stamp{{10, 50, 60}, {20, 55, inf}, {30, 55, 60}}},
	} {
		w := clocksync.NewMonotoneMerger(8)
		for i, s := range c.in {
			got, ok := w.Next(clocksync.Stamp{Domain: "d", Mono: s.mono, Within: clocksync.Interval{Earliest: s.earliest, Latest: s.latest}})
			if g := (stamp{got.Mono, got.Within.Earliest, got.Within.Latest}); !ok || g != c.want[i] {
				t.Errorf("%s: stamp %d: %v becomes %v, %v, want %v", name, i, s, g, ok, c.want[i])
			}
		}
	}
}

func TestMonotoneMergerRefuses(t *testing.T) {
	w := clocksync.NewMonotoneMerger(2)
	at := func(m clocksync.Instant) clocksync.Stamp {
		return clocksync.Stamp{Domain: "d", Mono: m, Within: clocksync.Around(m, 5)}
	}
	for _, m := range []clocksync.Instant{10, 20, 30} { // 10 is forgotten.
		if _, ok := w.Next(at(m)); !ok {
			t.Fatalf("refused the reading %d", m)
		}
	}
	bad := at(30)
	bad.Within.Earliest = bad.Within.Latest + 1
	other := at(30)
	other.Domain = "e"
	for _, s := range []clocksync.Stamp{at(9), at(10), bad, other} {
		if got, ok := w.Next(s); ok || got != s {
			t.Errorf("Next(%v) = %v, %v", s, got, ok)
		}
	}
	if got, ok := w.Next(at(11)); !ok || w.Kept() != 2 || w.Horizon() != 11 {
		t.Errorf("Next(11) = %v, %v; kept %d, horizon %v", got, ok, w.Kept(), w.Horizon())
	}
	w.Forget(25)
	if _, ok := w.Next(at(24)); ok || w.Kept() != 1 {
		t.Errorf("24 was taken after Forget(25); kept %d", w.Kept())
	}
	if s, ok := w.Next(clocksync.Stamp{Domain: "d", Mono: 25, Within: clocksync.Around(0, 1)}); !ok || s.Within != (clocksync.Interval{Earliest: 15, Latest: 25}) {
		t.Errorf("after the forgotten 20 came %v, %v", s, ok)
	}
}

// TestMonotoneMergerKeepsStampsValidAndMonotone lets processes with bounds of their own
// send stamps of one clock in any order, some without a bound.
func TestMonotoneMergerKeepsStampsValidAndMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 12).Draw(t, "limit")
		w := clocksync.NewMonotoneMerger(limit)
		var all []clocksync.Stamp
		refused := 0
		for range rapid.IntRange(1, 60).Draw(t, "n") {
			at := clocksync.Instant(rapid.IntRange(0, 40).Draw(t, "at")) // also the true time
			s := clocksync.Stamp{Domain: "d", Mono: at, Within: clocksync.Interval{
				Earliest: at.Add(-time.Duration(rapid.IntRange(0, 20).Draw(t, "early"))),
				Latest:   at.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "late"))),
			}}
			switch rapid.IntRange(0, 9).Draw(t, "lost") {
			case 0:
				s.Within = clocksync.Unbounded
			case 1:
				s.Within.Latest = clocksync.MaxInstant
			case 2:
				w.Forget(at - 10)
			}
			horizon := w.Horizon()
			got, ok := w.Next(s)
			if ok != (at > horizon) {
				t.Fatalf("%v taken: %v, with the horizon at %v", s, ok, horizon)
			}
			if w.Kept() > limit {
				t.Fatalf("%d readings kept, limit %d", w.Kept(), limit)
			}
			if !ok {
				refused++
				continue
			}
			if !got.Within.Contains(at) || got.Mono != at || (got.Within.Latest == clocksync.MaxInstant) != (s.Within.Latest == clocksync.MaxInstant) {
				t.Fatalf("%v became %v", s, got)
			}
			all = append(all, got)
		}
		for _, a := range all {
			for _, b := range all {
				if a.Mono < b.Mono && (a.Within.Earliest > b.Within.Earliest ||
					b.Within.Latest != clocksync.MaxInstant && a.Within.Latest != clocksync.MaxInstant && a.Within.Latest > b.Within.Latest) {
					t.Fatalf("%v and %v are not monotone", a, b)
				}
			}
		}
	})
}

// TestMonotoneMergerNeverCrossesEnds: not even where the stamps are wrong.
func TestMonotoneMergerNeverCrossesEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := clocksync.NewMonotoneMerger(rapid.IntRange(1, 12).Draw(t, "limit"))
		for range 40 {
			s := clocksync.Stamp{Domain: "d", Mono: clocksync.Instant(rapid.IntRange(0, 20).Draw(t, "at"))}
			s.Within.Earliest = clocksync.Instant(rapid.IntRange(-9, 9).Draw(t, "earliest"))
			s.Within.Latest = s.Within.Earliest.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "width")))
			if rapid.IntRange(0, 3).Draw(t, "lost") == 0 {
				s.Within.Latest = clocksync.MaxInstant
			}
			if got, _ := w.Next(s); !got.Within.Valid() {
				t.Fatalf("%v became %v", s, got)
			}
		}
	})
}

// TestMonotoneMergerDoesAsMonotone where one process sends in order.
func TestMonotoneMergerDoesAsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m clocksync.Monotone
		w := clocksync.NewMonotoneMerger(4)
		at := clocksync.Instant(0)
		for range 30 {
			at += clocksync.Instant(rapid.IntRange(1, 5).Draw(t, "step")) // Monotone also orders equal readings.
			s := clocksync.Stamp{Domain: "d", Mono: at, Within: clocksync.Around(at, time.Duration(rapid.IntRange(0, 9).Draw(t, "bound")))}
			want, _ := m.Next(s)
			if got, ok := w.Next(s); !ok || got != want {
				t.Fatalf("%v becomes %v, %v; Monotone makes it %v", s, got, ok, want)
			}
		}
	})
}

func BenchmarkMonotoneMerger(b *testing.B) {
	for _, late := range []int{0, 100} {
		b.Run(fmt.Sprintf("late=%d/limit=4096", late), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 2))
			w := clocksync.NewMonotoneMerger(4096)
			offsets := make([]clocksync.Instant, 1024)
			for i := range offsets {
				offsets[i] = clocksync.Instant(r.IntN(late*10 + 1))
			}
			b.ReportAllocs()
			at := clocksync.Instant(0)
			for i := 0; b.Loop(); i++ {
				at += 10
				m := at - offsets[i%len(offsets)]
				w.Next(clocksync.Stamp{Domain: "d", Mono: m, Within: clocksync.Around(m, 1000)})
			}
		})
	}
}

func ExampleMonotoneMerger() {
	// Two processes of one host know the time unequally well.
	good := clocksync.Stamp{Domain: "host", Mono: 100, Within: clocksync.Around(5100, 10)}
	bad := clocksync.Stamp{Domain: "host", Mono: 105, Within: clocksync.Around(5070, 80)}
	late := clocksync.Stamp{Domain: "host", Mono: 90, Within: clocksync.Around(5090, 300)}
	w := clocksync.NewMonotoneMerger(1024)
	for s := range slices.Values([]clocksync.Stamp{good, bad, late}) {
		s, _ = w.Next(s)
		fmt.Println(s)
	}
	// Output:
	// host@100[5090,5110]
	// host@105[5090,5150]
	// host@90[4790,5110]
}
