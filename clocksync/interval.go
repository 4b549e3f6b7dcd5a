package clocksync

import "time"

// Interval is a closed stretch of reference time, [Earliest, Latest], that
// contains the true time of an event. Earliest <= Latest; either end may be
// infinite. The zero value is the exact instant 0.
type Interval struct {
	Earliest, Latest Instant // the true time is neither before nor after these
}

// Unbounded is the interval of an event about whose reference time nothing is
// known.
var Unbounded = Interval{MinInstant, MaxInstant}

// Exactly returns the interval that holds only t.
func Exactly(t Instant) Interval { return Interval{t, t} }

// Around returns [t-bound, t+bound]. A negative bound counts as zero.
func Around(t Instant, bound time.Duration) Interval {
	bound = max(bound, 0)
	return Interval{t.Add(-bound), t.Add(bound)}
}

// Valid reports whether Earliest <= Latest.
func (i Interval) Valid() bool { return i.Earliest <= i.Latest }

// Bounded reports whether both ends are finite.
func (i Interval) Bounded() bool { return i.Earliest.Finite() && i.Latest.Finite() }

// Width is Latest-Earliest, saturated; an unbounded interval has the longest
// duration as its width.
func (i Interval) Width() time.Duration { return i.Latest.Sub(i.Earliest) }

// Contains reports whether t lies in the closed interval.
func (i Interval) Contains(t Instant) bool { return i.Earliest <= t && t <= i.Latest }

// Before reports whether every point of i is smaller than every point of j:
// the ends may not touch, since an event of either could then lie on the point
// they share.
func (i Interval) Before(j Interval) bool { return i.Latest < j.Earliest }

// Overlaps reports whether the two closed intervals share a point.
func (i Interval) Overlaps(j Interval) bool { return !i.Before(j) && !j.Before(i) }

// Intersect returns the points the two intervals share, and whether there are
// any.
func (i Interval) Intersect(j Interval) (Interval, bool) {
	k := Interval{max(i.Earliest, j.Earliest), min(i.Latest, j.Latest)}
	return k, k.Valid()
}

// Hull returns the smallest interval that contains both.
func (i Interval) Hull(j Interval) Interval {
	return Interval{min(i.Earliest, j.Earliest), max(i.Latest, j.Latest)}
}

// Widen returns [Earliest-d, Latest+d]; an infinite end stays. A negative d
// counts as zero.
func (i Interval) Widen(d time.Duration) Interval {
	d = max(d, 0)
	return Interval{i.Earliest.Add(-d), i.Latest.Add(d)}
}

// String gives the interval as "[earliest,latest]" in nanoseconds.
func (i Interval) String() string {
	return "[" + i.Earliest.String() + "," + i.Latest.String() + "]"
}
