package clocksync

import "time"

// nearLeap is how far from a leap second UTC is not used: within this, POSIX
// time comes twice, and an event there could seem to be before an earlier one.
const nearLeap = time.Second

// leapWatch keeps bounds of UTC from reaching over a leap second, at which every
// offset to UTC changes by a second.
type leapWatch struct {
	at   Instant // reference time of the leap second announced; only if last is finite
	last Instant // the last reading certainly before it; MaxInstant: none is announced
	over Instant // reference time after the last leap second; samples before it are refused
}

func noLeap() leapWatch { return leapWatch{last: MaxInstant, over: MinInstant} }

// noteAnnounced notes whether a majority that cannot be all wrong announces a leap second,
// and the offset at the reading now with its drift.
func (l *leapWatch) noteAnnounced(coming bool, now Instant, offset Interval, drift float64) {
	l.last = MaxInstant
	if !coming || !offset.Bounded() {
		return
	}
	l.at = monthEnd(shiftEnd(offset.Earliest, now))
	left := l.at.Sub(shiftEnd(offset.Latest, now)) - nearLeap
	l.last = now.Add(left - growthOver(left, drift) - 1)
}

// takePassed reports, once, whether the reading is no longer certainly before the
// leap second.
func (l *leapWatch) takePassed(m Instant) bool {
	if m <= l.last || l.last == MaxInstant {
		return false
	}
	l.over, l.last = l.at.Add(nearLeap), MaxInstant
	return true
}

// monthEnd is the first moment of the next month of UTC after t.
func monthEnd(t Instant) Instant {
	y, m, _ := time.Unix(0, int64(t)).UTC().Date()
	end := Instant(time.Date(y, m+1, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	if end <= t { // Beyond what fits into an Instant.
		return MaxInstant
	}
	return end
}
