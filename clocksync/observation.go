package clocksync

import "time"

// Observation is one look at the clocks of the host that may tell that its
// monotonic clock or its wall clock can no longer be taken for what it was.
type Observation struct {
	// Mono is the reading of the domain's clock before the others were read.
	Mono Instant
	// Slack is how much later than Mono the others were read at most: the distance to
	// a second reading of the domain's clock.
	Slack time.Duration
	// Boot is the clock that also counts while the host is suspended. MinInstant:
	// the system has none or it was not read.
	Boot Instant
	// Wall is the wall clock, in nanoseconds since 1970. MinInstant: not read.
	Wall Instant
	// Raw is a clock like the domain's, at whose rate no daemon turns; only an
	// [Estimator] looks at it. 0: the system has none or it was not read.
	Raw Instant
}

// Change is what happened to the clocks of a host between two observations.
type Change uint8

const (
	// Unchanged says that the clocks advanced together.
	Unchanged Change = iota
	// Stepped says that the wall clock was set; the domain's clock was not affected.
	Stepped
	// Suspended says that the domain's clock stood still while time passed, or that it cannot
	// be excluded. No offset from before is good.
	Suspended
	// Slewed says that a daemon has begun to run the domain's clock faster or slower
	// than it may drift, or has ceased to. Only [Estimator.Observe] tells.
	Slewed
)

// String is the name in lower case.
func (c Change) String() string {
	return labelOf(uint8(c), "unchanged", "stepped", "suspended", "slewed")
}

// A wall clock may be slewed against the domain's clock (on Linux both are
// slewed together) without having been stepped.
const (
	slewLimit = 1000 // parts per million; adjtime slews by 500
	slewFloor = time.Millisecond
)

// Change says what happened since an earlier observation. Boot distinguishes a suspend from a step of the
// wall clock. If Boot is missing in either observation, a wall clock ahead of its place counts
// as Suspended, since most systems set it right after a suspend. Changes that only the wall
// clock shows are not seen below 1 ms and 0.1 % of the time between.
func (o Observation) Change(since Observation) Change {
	slack := o.Slack + since.Slack
	passed := o.Mono.Sub(since.Mono)
	boots := o.Boot.Finite() && since.Boot.Finite()
	if boots && (o.Boot.Sub(since.Boot)-passed).Abs() > slack {
		return Suspended
	}
	if !o.Wall.Finite() || !since.Wall.Finite() {
		return Unchanged
	}
	jump := o.Wall.Sub(since.Wall) - passed
	switch {
	case jump.Abs() <= slack+slewFloor+growthOver(passed, slewLimit):
		return Unchanged
	case jump > 0 && !boots:
		return Suspended
	}
	return Stepped
}
