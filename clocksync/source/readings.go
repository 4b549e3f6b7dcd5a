package source

import (
	_ "unsafe" // For go:linkname.

	"github.com/gopegasus/pegasus/clocksync"
)

// readings are the clocks of the machine as the sources read them; tests hand in
// others.
type readings struct {
	mono func() clocksync.Instant // the clock of every stamp
	wall func() int64             // nanoseconds since 1970
	boot func() clocksync.Instant // like mono, and counts while the machine sleeps
}

var machine = readings{mono: reading, wall: kernelWall, boot: bootReading}

// now reads the two clocks of the kernel, also inside a bubble of
// testing/synctest, where time.Now shows the bubble's. The runtime keeps this
// name for programs that link to it.
//
//go:linkname now time.now
func now() (sec int64, nsec int32, mono int64)

func kernelWall() int64 {
	sec, nsec, _ := now()
	return sec*1e9 + int64(nsec)
}

// pair is one reading of the wall clock between two of the monotonic clock: the
// wall clock showed wall at some moment from before to after.
type pair struct {
	before, after clocksync.Instant
	wall          int64
}

// pairs is how often a pair is tried: a process held up in between makes it wide.
const pairs = 5

// pair reads a pair, the narrowest of a few.
func (r readings) pair() pair {
	best := r.onePair()
	for range pairs - 1 {
		if p := r.onePair(); p.after-p.before < best.after-best.before {
			best = p
		}
	}
	return best
}

func (r readings) onePair() pair {
	before := r.mono()
	wall := r.wall()
	return pair{before: before, wall: wall, after: r.mono()}
}

// offset holds the wall clock minus the monotonic clock.
func (p pair) offset() clocksync.Interval {
	wall := clocksync.Instant(p.wall)
	return clocksync.Interval{Earliest: wall - p.after, Latest: wall - p.before}
}

// asleep is how long the machine slept since it was switched on, roughly: the
// two clocks are read one after the other, the narrowest of a few times.
func (r readings) asleep() clocksync.Interval {
	best := r.oneAsleep()
	for range pairs - 1 {
		if i := r.oneAsleep(); i.Width() < best.Width() {
			best = i
		}
	}
	return best
}

func (r readings) oneAsleep() clocksync.Interval {
	before := r.mono()
	boot := r.boot()
	return clocksync.Interval{Earliest: boot - r.mono(), Latest: boot - before}
}
