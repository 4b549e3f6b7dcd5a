package source

import (
	"github.com/gopegasus/pegasus/clocksync"
)

// line is what stamps are made by: a bound, and how low the ends of its stamps
// may not fall, so that they never go back from those made by the lines before.
type line struct {
	bound clocksync.Bound
	floor clocksync.Interval
	// refuted is true if the bound says that all true time so far lies below the
	// floor: the lines before were wrong.
	refuted bool
}

// noFloor lets every interval be as it is.
var noFloor = clocksync.Interval{Earliest: clocksync.MinInstant, Latest: clocksync.MinInstant}

// followLine sets the floor of a line that stamps from the reading m on. The line
// before made no stamp later than m.
func (l *line) followLine(before *line, m clocksync.Instant) {
	w := before.intervalAt(min(m, before.bound.Until), false)
	if w.Latest == clocksync.MaxInstant { // Left out, so that the bound can come back.
		w.Latest = before.floor.Latest
	}
	l.floor = w
	l.refuted = l.bound.Within(m).Latest < w.Earliest
}

// intervalAt is the interval of a stamp at the reading m. Where the bound has ended,
// or the clocks of the host have changed against what it knows, true time still
// is no earlier than it allowed last: no clock here runs faster than true time by
// more than the drift.
//
// A line that refutes the ones before cannot be true and continue from them. It has
// no latest end until its earliest has caught up, which keeps it out of every
// comparison that would make something certain by it.
func (l *line) intervalAt(m clocksync.Instant, changed bool) clocksync.Interval {
	w := l.bound.Within(min(m, l.bound.Until))
	if changed || m > l.bound.Until || l.refuted && w.Earliest < l.floor.Earliest {
		w.Latest = clocksync.MaxInstant
	}
	return clocksync.Interval{
		Earliest: max(w.Earliest, l.floor.Earliest),
		Latest:   max(w.Latest, l.floor.Latest),
	}
}
