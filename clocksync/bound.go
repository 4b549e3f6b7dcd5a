package clocksync

import (
	"math"
	"time"
)

// MaxDrift is the largest drift that can be given, in parts per million: a
// clock that is slewed as fast as any daemon does it.
const MaxDrift = 100_000.0

// growthOver is by how much an offset may change while the domain's reading moves on
// by d, forward or back, at a drift in parts per million.
func growthOver(d time.Duration, drift float64) time.Duration { return grown(d, rateOver(drift)) }

// rateOver is growth by duration. A clock with the rate 1-r misses r/(1-r) of what it
// counts, which up to r = 1/2 is hardly less than r+r^2+2r^3. The conversions
// keep results the same on every processor.
func rateOver(drift float64) float64 {
	r := drift * 1e-6
	return r * float64(1+float64(r*float64(1+float64(2*r))))
}

func grown(d time.Duration, rate float64) time.Duration {
	return time.Duration(math.Ceil(float64(d.Abs()) * rate))
}

// Bound is a line to stamp by: the known reference time at every reading of the domain's clock
// in [From, Until]. It is made by an [Estimator] and must not be changed, so that goroutines
// may share it.
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
	// Tainted is, while the status is Untrusted, the reading at which the bound was last
	// confirmed: later stamps may be wrong. Otherwise it is MaxInstant.
	Tainted Instant

	rate float64 // of Drift; 0 if it was not computed yet
}

// Within is the interval of reference time of an event at the reading m. It is
// [Unbounded] where the bound says nothing.
func (b *Bound) Within(m Instant) Interval {
	if m < b.From || m > b.Until {
		return Unbounded
	}
	per := b.rate
	if per == 0 {
		per = rateOver(b.Drift)
	}
	if small(m) && small(b.At) && small(b.Offset.Earliest) && small(b.Offset.Latest) {
		g := Instant(grown(time.Duration(m-b.At), per))
		return Interval{m + b.Offset.Earliest - g, m + b.Offset.Latest + g}
	}
	g := grown(m.Sub(b.At), per)
	return Interval{shiftEnd(b.Offset.Earliest, m).Add(-g), shiftEnd(b.Offset.Latest, m).Add(g)}
}

// small instants can be added and subtracted a few times without an overflow.
func small(t Instant) bool { return uint64(t)+1<<61 < 1<<62 }

// OffsetAt is Within minus the reading.
func (b *Bound) OffsetAt(m Instant) Interval {
	if m < b.From || m > b.Until {
		return Unbounded
	}
	return b.Offset.Widen(growthOver(m.Sub(b.At), b.Drift))
}

// shiftEnd moves an end of an offset to a reading; an infinite end stays.
func shiftEnd(end, m Instant) Instant { return end.Add(time.Duration(m)) }
