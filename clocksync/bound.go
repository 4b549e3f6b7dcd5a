package clocksync

import (
	"math"
	"time"
)

// MaxDrift is the largest drift that can be given, in parts per million: a
// clock that is slewed as fast as any daemon does it.
const MaxDrift = 100_000.0

// growth is by how much an offset may change while the domain's reading moves on
// by d, forward or back, at a drift in parts per million. A clock with the rate
// 1-r misses r/(1-r) of what it counts, which up to r = 1/2 is hardly less than
// r+r^2+2r^3. The conversions keep results the same on every processor.
func growth(d time.Duration, drift float64) time.Duration {
	r := drift * 1e-6
	return time.Duration(math.Ceil(float64(d.Abs()) * float64(r*float64(1+float64(r*float64(1+float64(2*r)))))))
}

// Bound is a line to stamp by: what is known of the reference time at every
// reading of the domain's clock in [From, Until]. It is made by an [Estimator]
// and must not be changed, so that goroutines may share it.
type Bound struct {
	// From and Until limit the readings that the bound says something about.
	From, Until Instant
	// At is the reading at which Offset holds.
	At Instant
	// Offset is reference time minus reading at At.
	Offset Interval
	// Drift widens Offset away from At, in parts per million.
	Drift float64
	// Seen is the last observation of the other clocks of the host that the
	// bound knows of. A stamp whose own observation shows a change against it
	// ([Observation.Change]) must not use the bound.
	Seen Observation
	// Quality says what the bound rests on.
	Quality Quality
	// Tainted is, while the status is Untrusted, the reading at which the bound
	// was last confirmed: what was stamped after it may be wrong. Otherwise it is
	// MaxInstant.
	Tainted Instant
}

// Within is the interval of reference time of an event at the reading m. It is
// [Unbounded] where the bound says nothing.
func (b *Bound) Within(m Instant) Interval {
	if m < b.From || m > b.Until {
		return Unbounded
	}
	g := growth(m.Sub(b.At), b.Drift)
	return Interval{shift(b.Offset.Earliest, m).Add(-g), shift(b.Offset.Latest, m).Add(g)}
}

// OffsetAt is Within minus the reading.
func (b *Bound) OffsetAt(m Instant) Interval {
	if m < b.From || m > b.Until {
		return Unbounded
	}
	return b.Offset.Widen(growth(m.Sub(b.At), b.Drift))
}

// shift moves an end of an offset to a reading; an infinite end stays.
func shift(end, m Instant) Instant { return end.Add(time.Duration(m)) }
