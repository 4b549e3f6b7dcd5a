package clocksync

import (
	"cmp"
	"slices"
)

// MonotoneMerger makes the stamps of a domain monotone where several processes measured their
// bounds separately and their stamps arrive in any order: each end of a stamp is clamped
// between the ends of the nearest stored stamps with a smaller and a larger reading. Raising an
// earliest end and lowering a latest end are justified by the order of the events; the opposite
// moves widen the interval. In both cases it stays valid. Stamps with equal readings do not
// constrain one another; an infinite latest end constrains no other stamp and stays infinite.
//
// So between any two stamps that MonotoneMerger returned, the one with the larger reading
// has no smaller end, infinite latest ends left out. [Monotone] does the same at
// less cost for one process, whose readings come in order.
//
// A MonotoneMerger must not be used by two goroutines at once.
type MonotoneMerger struct {
	limit            int
	domain           Domain
	horizon          Instant // readings up to here may have been forgotten
	earliest, latest endpoints
}

// NewMonotoneMerger returns a MonotoneMerger that stores up to limit readings, at
// least 1, at 48 bytes each and up to about twice that.
func NewMonotoneMerger(limit int) *MonotoneMerger {
	return &MonotoneMerger{
		limit: max(limit, 1), horizon: MinInstant,
		earliest: endpoints{floor: MinInstant}, latest: endpoints{floor: MinInstant},
	}
}

// Next returns s clamped between its neighbours, and stores it. It returns false,
// and stores nothing, if s is no valid interval, has another domain than the
// first stamp, or a reading at or before the horizon, whose neighbours are
// forgotten: such a stamp must be treated as lost.
func (w *MonotoneMerger) Next(s Stamp) (Stamp, bool) {
	if !s.Within.Valid() || s.Mono <= w.horizon || w.domain != "" && s.Domain != w.domain {
		return s, false
	}
	w.domain = s.Domain
	s.Within.Earliest = w.earliest.clamp(s.Mono, s.Within.Earliest)
	if s.Within.Latest != MaxInstant {
		// The ends cross only if a stamp was wrong.
		s.Within.Latest = w.latest.clamp(s.Mono, max(s.Within.Latest, s.Within.Earliest))
	}
	if n := len(w.earliest.sorted) - w.limit; n > 0 {
		w.forget(w.earliest.sorted[n-1].at)
	}
	return s, true
}

// Forget declares that no more stamps with a reading below the given one will come,
// so that what only they need is dropped; those that still come are refused.
func (w *MonotoneMerger) Forget(below Instant) {
	if below != MinInstant {
		w.forget(max(w.horizon, below-1))
	}
}

// Horizon is the reading up to which stamps are refused; MinInstant at first.
func (w *MonotoneMerger) Horizon() Instant { return w.horizon }

// Kept is how many readings are stored.
func (w *MonotoneMerger) Kept() int { return len(w.earliest.sorted) }

func (w *MonotoneMerger) forget(horizon Instant) {
	w.horizon = horizon
	w.earliest.forget(horizon)
	w.latest.forget(horizon)
}

// endpoints has one end, earliest or latest, of the stamps of a domain, which never
// decreases from one reading to the next.
type endpoints struct {
	all    []endpoint // with the dropped ones in front
	gone   int
	sorted []endpoint // the rest of all, ordered by reading
	floor  Instant    // the greatest end forgotten
}

// endpoint is the least and the greatest end at one reading.
type endpoint struct{ at, least, greatest Instant }

// clamp moves an end between its neighbours, and stores it.
func (s *endpoints) clamp(m, end Instant) Instant {
	i, tied := s.find(m)
	before, after := s.floor, MaxInstant
	if i > 0 {
		before = s.sorted[i-1].greatest
	}
	next := i
	if tied {
		next++
	}
	if next < len(s.sorted) {
		after = s.sorted[next].least
	}
	end = min(max(end, before), after)
	if !tied {
		s.all = slices.Insert(s.all, s.gone+i, endpoint{m, end, end})
		s.sorted = s.all[s.gone:]
		return end
	}
	k := &s.sorted[i]
	k.least, k.greatest = min(k.least, end), max(k.greatest, end)
	return end
}

// find is the index of the first endpoint not before m, and whether it is at m.
func (s *endpoints) find(m Instant) (int, bool) {
	if n := len(s.sorted); n == 0 || s.sorted[n-1].at < m { // Most come in order.
		return n, false
	}
	return slices.BinarySearchFunc(s.sorted, m, func(k endpoint, m Instant) int { return cmp.Compare(k.at, m) })
}

func (s *endpoints) forget(horizon Instant) {
	n := len(s.sorted)
	if n > 0 && s.sorted[n-1].at > horizon {
		n, _ = s.find(horizon + 1)
	}
	if n > 0 {
		s.floor = s.sorted[n-1].greatest
		s.sorted = s.sorted[n:]
		s.gone += n
	}
	if s.gone > len(s.sorted) { // Move to the front: the cost is amortized over those dropped.
		s.sorted = append(s.all[:0], s.sorted...)
		s.all, s.gone = s.sorted, 0
	}
}
