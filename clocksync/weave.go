package clocksync

import (
	"cmp"
	"slices"
)

// Weave makes the stamps of one domain monotone where several processes
// measured their bounds apart and their stamps arrive in any order: each end of
// a stamp is moved between those of the nearest kept stamps with a smaller and a
// larger reading. An earliest end that is raised, and a latest end that is
// lowered, are justified by the order of the events; the other way widens. Both
// keep the interval valid. Stamps with equal readings do not constrain one
// another; an infinite latest end constrains nobody and stays.
//
// So between any two stamps that Weave returned, the one with the larger reading
// has no smaller end, infinite latest ends left out. [Monotone] does the same at
// less cost for one process, whose readings come in order.
//
// A Weave must not be used by two goroutines at once.
type Weave struct {
	limit            int
	domain           Domain
	horizon          Instant // readings up to here may have been forgotten
	earliest, latest strand
}

// NewWeave returns a Weave that keeps so many readings, at least 1, at 48
// bytes each and up to about twice that.
func NewWeave(limit int) *Weave {
	return &Weave{
		limit: max(limit, 1), horizon: MinInstant,
		earliest: strand{floor: MinInstant}, latest: strand{floor: MinInstant},
	}
}

// Next returns s moved between its neighbours, and keeps it. It returns false,
// and keeps nothing, if s is no valid interval, has another domain than the
// first stamp, or a reading at or before the horizon, whose neighbours are
// forgotten: such a stamp must be treated as lost.
func (w *Weave) Next(s Stamp) (Stamp, bool) {
	if !s.Within.Valid() || s.Mono <= w.horizon || w.domain != "" && s.Domain != w.domain {
		return s, false
	}
	w.domain = s.Domain
	s.Within.Earliest = w.earliest.weave(s.Mono, s.Within.Earliest)
	if s.Within.Latest != MaxInstant {
		// The ends cross only if a stamp was wrong.
		s.Within.Latest = w.latest.weave(s.Mono, max(s.Within.Latest, s.Within.Earliest))
	}
	if n := len(w.earliest.knots) - w.limit; n > 0 {
		w.forget(w.earliest.knots[n-1].at)
	}
	return s, true
}

// Forget tells that no stamp with a reading below the given one is to come, so
// that what only such stamps need is forgotten; those that come are refused.
func (w *Weave) Forget(below Instant) {
	if below != MinInstant {
		w.forget(max(w.horizon, below-1))
	}
}

// Horizon is the reading up to which stamps are refused; MinInstant at first.
func (w *Weave) Horizon() Instant { return w.horizon }

// Kept is how many readings are kept.
func (w *Weave) Kept() int { return len(w.earliest.knots) }

func (w *Weave) forget(horizon Instant) {
	w.horizon = horizon
	w.earliest.forget(horizon)
	w.latest.forget(horizon)
}

// strand is one end of the stamps of a domain, which never decreases from one
// knot to the next.
type strand struct {
	all   []knot // with the gone ones in front
	gone  int
	knots []knot  // the rest of all, ordered by reading
	floor Instant // the greatest end forgotten
}

// knot is the least and the greatest end at one reading.
type knot struct{ at, least, greatest Instant }

// weave moves an end between its neighbours, and keeps it.
func (s *strand) weave(m, end Instant) Instant {
	i, tied := s.find(m)
	before, after := s.floor, MaxInstant
	if i > 0 {
		before = s.knots[i-1].greatest
	}
	next := i
	if tied {
		next++
	}
	if next < len(s.knots) {
		after = s.knots[next].least
	}
	end = min(max(end, before), after)
	if !tied {
		s.all = slices.Insert(s.all, s.gone+i, knot{m, end, end})
		s.knots = s.all[s.gone:]
		return end
	}
	k := &s.knots[i]
	k.least, k.greatest = min(k.least, end), max(k.greatest, end)
	return end
}

// find is the index of the first knot not before m, and whether it is at m.
func (s *strand) find(m Instant) (int, bool) {
	if n := len(s.knots); n == 0 || s.knots[n-1].at < m { // Most come in order.
		return n, false
	}
	return slices.BinarySearchFunc(s.knots, m, func(k knot, m Instant) int { return cmp.Compare(k.at, m) })
}

func (s *strand) forget(horizon Instant) {
	n := len(s.knots)
	if n > 0 && s.knots[n-1].at > horizon {
		n, _ = s.find(horizon + 1)
	}
	if n > 0 {
		s.floor = s.knots[n-1].greatest
		s.knots = s.knots[n:]
		s.gone += n
	}
	if s.gone > len(s.knots) { // Move to the front, at a cost that the forgotten have paid.
		s.knots = append(s.all[:0], s.knots...)
		s.all, s.gone = s.knots, 0
	}
}
