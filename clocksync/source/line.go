package source

import (
	"github.com/gopegasus/pegasus/clocksync"
)

// line is what stamps are made by: a bound, and how low the ends of its stamps
// may not fall, so that they never go back from those made by the lines before.
type line struct {
	bound clocksync.Bound
	floor clocksync.Interval
}

// noFloor lets every interval be as it is.
var noFloor = clocksync.Interval{Earliest: clocksync.MinInstant, Latest: clocksync.MinInstant}

// within is the interval of a stamp at the reading m. Where the bound has ended,
// or the clocks of the host have changed against what it knows, true time still
// is no earlier than it allowed last: no clock here runs faster than true time by
// more than the drift.
func (l *line) within(m clocksync.Instant, changed bool) clocksync.Interval {
	w := l.bound.Within(min(m, l.bound.Until))
	if changed || m > l.bound.Until {
		w.Latest = clocksync.MaxInstant
	}
	w.Earliest = max(w.Earliest, l.floor.Earliest)
	w.Latest = max(w.Latest, l.floor.Latest)
	if !w.Valid() { // The lines before were wrong: nothing is known until this one has caught up.
		w.Latest = clocksync.MaxInstant
	}
	return w
}

// floorAt is the floor for the lines after this one, if it made no stamp later
// than m. An infinite latest end is left out, so that the bound can come back.
func (l *line) floorAt(m clocksync.Instant) clocksync.Interval {
	w := l.within(min(m, l.bound.Until), false)
	if w.Latest == clocksync.MaxInstant {
		w.Latest = l.floor.Latest
	}
	return w
}
