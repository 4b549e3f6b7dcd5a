package clocktest_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/clocksync/clocktest"
)

func TestSpec(t *testing.T) {
	const second = clocksync.Instant(time.Second)
	around := clocksync.Around
	for name, c := range map[string]struct {
		spec   clocktest.Spec
		mono   clocksync.Instant
		within clocksync.Interval
	}{
		"perfect":   {clocktest.Spec{}, 10 * second, clocksync.Exactly(10 * second)},
		"started":   {clocktest.Spec{Start: 7}, 10*second + 7, clocksync.Exactly(10 * second)},
		"skewed":    {clocktest.Spec{Skew: -5, Bound: 9}, 10 * second, around(10*second-5, 9)},
		"drifting":  {clocktest.Spec{Drift: 50, Bound: 9}, 10*second + 500_000, around(10*second+500_000, 9)},
		"slow":      {clocktest.Spec{Drift: -50, Bound: 9}, 10*second - 500_000, around(10*second-500_000, 9)},
		"growing":   {clocktest.Spec{Growth: 100, Bound: 9}, 10 * second, around(10*second, 1_000_009)},
		"forward":   {clocktest.Spec{Steps: []clocktest.Step{{At: second, By: 40}}, Bound: 9}, 10 * second, around(10*second+40, 9)},
		"not yet":   {clocktest.Spec{Steps: []clocktest.Step{{At: 10*second + 1, By: 40}}, Bound: 9}, 10 * second, around(10*second, 9)},
		"back":      {clocktest.Spec{Steps: []clocktest.Step{{At: 10 * second, By: -40}}, Bound: 9}, 10 * second, around(10*second-1, 9)},
		"unbounded": {clocktest.Spec{Skew: 9, Unbounded: true}, 10 * second, clocksync.Unbounded},
	} {
		var world clocktest.Timeline
		c.spec.Domain = "d"
		clock := clocktest.New(world.Now, c.spec)
		world.Advance(10 * time.Second)
		if got, want := clock.Now(), (clocksync.Stamp{Domain: "d", Mono: c.mono, Within: c.within}); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func specs() *rapid.Generator[clocktest.Spec] {
	return rapid.Custom(func(t *rapid.T) clocktest.Spec {
		steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) clocktest.Step {
			return clocktest.Step{
				At: clocksync.Instant(rapid.IntRange(0, 3000).Draw(t, "at")),
				By: time.Duration(rapid.IntRange(-500, 500).Draw(t, "by")),
			}
		}), 0, 4).Draw(t, "steps")
		slices.SortStableFunc(steps, func(a, b clocktest.Step) int { return cmp.Compare(a.At, b.At) })
		drift := rapid.Int64Range(-300_000, 300_000).Draw(t, "drift")
		return clocktest.Spec{
			Domain: "d",
			Start:  clocksync.Instant(rapid.IntRange(-1000, 1000).Draw(t, "start")),
			Skew:   time.Duration(rapid.IntRange(-500, 500).Draw(t, "skew")),
			Drift:  drift,
			Steps:  steps,
			Bound:  time.Duration(rapid.IntRange(0, 500).Draw(t, "bound")),
			Growth: rapid.Int64Range(0, 1_000_000+drift).Draw(t, "growth"),
		}
	})
}

// TestStampsAreMonotone compares with the monotone rule applied to stamps: the
// clock has nothing left to raise, whichever moments it is read at.
func TestStampsAreMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var world clocktest.Timeline
		var monotone clocksync.Monotone
		clock := clocktest.New(world.Now, specs().Draw(t, "spec"))
		for range 30 {
			s := clock.Now()
			if raised, ok := monotone.Next(s); !ok || raised != s {
				t.Fatalf("at %v: %v becomes %v, %v", world.Now(), s, raised, ok)
			}
			world.Advance(time.Duration(rapid.IntRange(0, 300).Draw(t, "pass")))
		}
	})
}

func TestABoundThatCoversTheErrorsIsHonest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := specs().Draw(t, "spec")
		spec.Bound, spec.Growth = max(spec.Skew, -spec.Skew), max(spec.Drift, -spec.Drift)+1
		for _, step := range spec.Steps {
			spec.Bound += max(step.By, -step.By)
		}
		var world clocktest.Timeline
		clock := clocktest.New(world.Now, spec)
		for range 30 {
			if s := clock.Now(); !s.Within.Contains(world.Now()) {
				t.Fatalf("%v does not hold %v", s, world.Now())
			}
			world.Advance(time.Duration(rapid.IntRange(0, 300).Draw(t, "pass")))
		}
	})
}

func TestCenturiesDoNotOverflow(t *testing.T) {
	var world clocktest.Timeline
	clock := clocktest.New(world.Now, clocktest.Spec{Domain: "d", Drift: 500})
	world.Advance(100 * 365 * 24 * time.Hour)
	if got, want := clock.Now().Mono.Sub(world.Now()), 50*365*24*time.Hour/1000; got != want {
		t.Errorf("drifted by %v, want %v", got, want)
	}
}

func TestManual(t *testing.T) {
	m := clocktest.NewManual(clocksync.Stamp{Domain: "d", Mono: 5, Within: clocksync.Interval{Earliest: 1, Latest: clocksync.MaxInstant}})
	m.Advance(10)
	want := clocksync.Stamp{Domain: "d", Mono: 15, Within: clocksync.Interval{Earliest: 11, Latest: clocksync.MaxInstant}}
	if got := m.Now(); got != want || m.Domain() != "d" {
		t.Errorf("advanced to %v, want %v", got, want)
	}
	m.Set(2, clocksync.Exactly(3))
	if got := m.Now(); got.Mono != 2 || got.Within != clocksync.Exactly(3) {
		t.Errorf("set to %v", got)
	}
}

func TestNonsensePanics(t *testing.T) {
	for name, spec := range map[string]clocktest.Spec{
		"no domain":      {},
		"standing still": {Domain: "d", Drift: -1_000_000},
		"negative bound": {Domain: "d", Bound: -1},
		"growth ahead":   {Domain: "d", Growth: 1_000_001},
		"disorder":       {Domain: "d", Steps: []clocktest.Step{{At: 2}, {At: 1}}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: taken", name)
				}
			}()
			clocktest.New(new(clocktest.Timeline).Now, spec)
		}()
	}
	defer func() {
		if recover() == nil {
			t.Error("true time went back")
		}
	}()
	new(clocktest.Timeline).Advance(-1)
}

func ExampleNew() {
	var world clocktest.Timeline
	clock := clocktest.New(world.Now, clocktest.Spec{
		Domain: "host-1",
		Start:  1000,
		Skew:   3,
		Bound:  5,
	})
	world.Advance(100)
	fmt.Println(clock.Now())
	fmt.Println(clock.Now().Within.Contains(world.Now()))
	// Output:
	// host-1@1100[98,108]
	// true
}
