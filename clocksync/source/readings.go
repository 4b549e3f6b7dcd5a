package source

import (
	"time"
	_ "unsafe" // For go:linkname.

	"github.com/gopegasus/pegasus/clocksync"
)

// readings are the clocks of the machine as the sources read them; tests hand in
// others.
type readings struct {
	mono func() clocksync.Instant // the clock of every stamp
	wall func() int64             // nanoseconds since 1970
	boot func() clocksync.Instant // like mono, and counts while the machine sleeps; MinInstant: none
	raw  func() clocksync.Instant // like mono, and no daemon slews it; 0: none
	both func() (wall, mono clocksync.Instant)
}

var machine = readings{mono: readRaw, wall: kernelWall, boot: bootReading, raw: rawReading, both: kernelBoth}

// now reads the clocks of the kernel, the wall clock first, also inside a bubble
// of testing/synctest, where time.Now shows the bubble's. The runtime keeps this
// name for programs that link to it.
//
//go:linkname now time.now
func now() (sec int64, nsec int32, mono int64)

func kernelWall() int64 {
	sec, nsec, _ := now()
	return sec*1e9 + int64(nsec)
}

// kernelBoth costs no more than time.Now.
func kernelBoth() (wall, mono clocksync.Instant) {
	sec, nsec, m := now()
	return clocksync.Instant(sec*1e9 + int64(nsec)), clocksync.Instant(m)
}

// tries is how often clocks are read together: a process that is held up in
// between makes it take long.
const tries = 5

// observeClocks reads all clocks, the quickest of a few times.
func (r readings) observeClocks() clocksync.Observation {
	best := r.observeOnce()
	for range tries - 1 {
		if o := r.observeOnce(); o.Slack < best.Slack {
			best = o
		}
	}
	return best
}

func (r readings) observeOnce() clocksync.Observation {
	before := r.mono()
	wall := clocksync.Instant(r.wall())
	boot := r.boot()
	raw := r.raw()
	return clocksync.Observation{Mono: before, Wall: wall, Boot: boot, Raw: raw, Slack: r.mono().Sub(before)}
}

// wallOffset holds the wall clock minus the monotonic clock.
func wallOffset(o clocksync.Observation) clocksync.Interval {
	offset := clocksync.Instant(o.Wall.Sub(o.Mono))
	return clocksync.Interval{Earliest: offset.Add(-o.Slack), Latest: offset}
}

// checkUndisturbed observes the clocks again and refuses what was measured since the
// first time, if the wall clock was set or the machine slept meanwhile.
func (r readings) checkUndisturbed(before clocksync.Observation) (clocksync.Observation, error) {
	after := r.observeClocks()
	switch after.Change(before) {
	case clocksync.Unchanged:
		return after, nil
	case clocksync.Stepped:
		return after, refuseServer(Disturbed, "the wall clock was set by %v meanwhile", jump(before, after).Round(time.Millisecond))
	default:
		return after, refuseServer(Disturbed, "the machine slept meanwhile")
	}
}

// jump is by how much the wall clock was set.
func jump(before, after clocksync.Observation) time.Duration {
	return after.Wall.Sub(before.Wall) - after.Mono.Sub(before.Mono)
}
