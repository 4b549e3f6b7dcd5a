package clocktest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// million is the scale of numbers given in parts per million.
const million = 1_000_000

// Spec says in which ways a clock is wrong. Clocks of the same domain should agree in Domain,
// Start and Drift: then they are one monotonic clock.
type Spec struct {
	Domain clocksync.Domain  // of all its stamps
	Start  clocksync.Instant // the monotonic reading at true time 0
	Skew   time.Duration     // the wall clock minus the true time, at true time 0
	Drift  int64             // parts per million by which both run fast; above -million
	Steps  []Step            // of the wall clock, ordered by time; the readings are not affected

	// The interval of a stamp is the wall clock, more or less Bound, and Growth
	// parts per million of the true time passed since 0. With Unbounded it is
	// [clocksync.Unbounded].
	Bound     time.Duration // half the width of the interval at true time 0
	Growth    int64         // parts per million by which Bound grows
	Unbounded bool          // no bound at all; Bound and Growth do not count
}

// Step sets the wall clock once.
type Step struct {
	At clocksync.Instant // the true time at which it is set
	By time.Duration     // forward, or back if negative
}

// New returns the clock of a spec. It has no state besides the true time, so it
// may be used by several goroutines if truth may. It panics at a spec that is no
// clock.
func New(truth Truth, s Spec) clocksync.Clock {
	switch {
	case s.Domain == "":
		panic("clocktest: a clock without a domain")
	case s.Bound < 0 || s.Growth < 0 || s.Drift <= -million || s.Growth > million+s.Drift:
		panic(fmt.Sprintf("clocktest: bound %v, growth %d, drift %d make no clock that goes forward", s.Bound, s.Growth, s.Drift))
	case !slices.IsSortedFunc(s.Steps, func(a, b Step) int { return cmp.Compare(a.At, b.At) }):
		panic(fmt.Sprintf("clocktest: steps out of order: %v", s.Steps))
	}
	s.Steps = slices.Clone(s.Steps)
	return clock{truth, s}
}

type clock struct {
	truth Truth
	spec  Spec
}

func (c clock) Domain() clocksync.Domain { return c.spec.Domain }

func (c clock) Quality() clocksync.Quality {
	q := clocksync.Quality{Source: "test", Assumed: true, Status: clocksync.Synchronized, Expires: clocksync.MaxInstant}
	if c.spec.Unbounded {
		q.Status = clocksync.Unknown
	}
	return q
}

func (c clock) Now() clocksync.Stamp {
	t := c.truth()
	return clocksync.Stamp{Domain: c.spec.Domain, Mono: c.spec.reading(t), Within: c.spec.within(t)}
}

func (s *Spec) reading(t clocksync.Instant) clocksync.Instant {
	return t.Add(time.Duration(s.Start)).Add(share(t, s.Drift))
}

// within is the interval around the wall clock, made monotone as if the clock
// had been read all the time: between steps its ends go forward, so only the
// moments just before a step can lie ahead of now.
func (s *Spec) within(t clocksync.Instant) clocksync.Interval {
	if s.Unbounded {
		return clocksync.Unbounded
	}
	stepped := time.Duration(0)
	floor := clocksync.Interval{Earliest: clocksync.MinInstant, Latest: clocksync.MinInstant}
	for _, step := range s.Steps {
		if step.At > t {
			break
		}
		if step.At > 0 { // Before 0 there is no true time.
			floor = later(floor, s.around(step.At-1, stepped))
		}
		stepped += step.By
	}
	return later(floor, s.around(t, stepped))
}

// later takes the later of each end.
func later(i, j clocksync.Interval) clocksync.Interval {
	return clocksync.Interval{Earliest: max(i.Earliest, j.Earliest), Latest: max(i.Latest, j.Latest)}
}

// around takes each end as one share of t: two shares rounded apart could make
// it go back.
func (s *Spec) around(t clocksync.Instant, stepped time.Duration) clocksync.Interval {
	wall := t.Add(s.Skew + stepped)
	return clocksync.Interval{
		Earliest: wall.Add(share(t, s.Drift-s.Growth) - s.Bound),
		Latest:   wall.Add(share(t, s.Drift+s.Growth) + s.Bound),
	}
}

// share is the part of t that so many parts per million make, computed so that
// nothing overflows within centuries.
func share(t clocksync.Instant, ppm int64) time.Duration {
	return time.Duration(int64(t)/million*ppm + int64(t)%million*ppm/million)
}
