package clocksync

import (
	"math"
	"strconv"
	"time"
)

// Instant is a point on a timeline, in nanoseconds. Each use of the type names the timeline:
// the reference time of a synchronizer tree, or the monotonic clock of a domain. Instants of
// different timelines must not be compared. The two ends of the range stand for minus and plus
// infinity.
type Instant int64

// The infinite instants. They are smaller and larger than every reading of a
// clock, and arithmetic with [Instant.Add] leaves them where they are.
const (
	MinInstant Instant = math.MinInt64
	MaxInstant Instant = math.MaxInt64
)

// Finite reports whether the instant is neither of the two infinities.
func (t Instant) Finite() bool { return t != MinInstant && t != MaxInstant }

// Add returns t+d. It saturates at the infinities and never wraps around.
func (t Instant) Add(d time.Duration) Instant {
	if !t.Finite() {
		return t
	}
	s := t + Instant(d)
	switch {
	case d > 0 && s < t:
		return MaxInstant
	case d < 0 && s > t:
		return MinInstant
	}
	return s
}

// Sub returns t-u, saturated at the ends of time.Duration. The difference with
// an infinity is the longest duration of the fitting sign; an infinity minus
// itself is zero.
func (t Instant) Sub(u Instant) time.Duration {
	if t == u {
		return 0
	}
	if !t.Finite() || !u.Finite() {
		if t > u {
			return math.MaxInt64
		}
		return math.MinInt64
	}
	d := t - u
	switch {
	case t > u && d < 0:
		return math.MaxInt64
	case t < u && d > 0:
		return math.MinInt64
	}
	return time.Duration(d)
}

// String gives the nanoseconds in decimal, or "-inf" and "+inf".
func (t Instant) String() string {
	switch t {
	case MinInstant:
		return "-inf"
	case MaxInstant:
		return "+inf"
	}
	return strconv.FormatInt(int64(t), 10)
}
