package clocksync

import (
	"slices"
	"time"
)

// region is a set of points: disjoint intervals in ascending order. What all
// but a few of several intervals allow need not be one interval, and only its
// hull is shown; but kept whole it does not let the offset jump from one part to
// another, where a wrong server waits for the clock to drift.
type region []Interval

// maxParts is from how many parts on only the hull of a region is kept.
const maxParts = 2 * MaxServers

// covered returns the points that at least need of the intervals hold, with need
// at least 1. If all but need of the intervals may be wrong, the truth is one of
// these points; the deepest overlap, which many programs take for it, need not
// hold it.
func covered(all []Interval, need int) (r region) {
	starts, ends := make([]Instant, 0, len(all)), make([]Instant, 0, len(all))
	for _, i := range all {
		starts, ends = append(starts, i.Earliest), append(ends, i.Latest)
	}
	slices.Sort(starts)
	slices.Sort(ends)
	depth := 0
	var from Instant
	for s, e := 0, 0; e < len(ends); {
		if s < len(starts) && starts[s] <= ends[e] {
			if depth++; depth == need {
				from = starts[s]
			}
			s++
			continue
		}
		if depth == need {
			r = append(r, Interval{from, ends[e]})
		}
		depth--
		e++
	}
	return r
}

// hull is the smallest interval that holds a region, which must not be empty.
func (r region) hull() Interval { return Interval{r[0].Earliest, r[len(r)-1].Latest} }

// widen returns the points that are at most d away.
func (r region) widen(d time.Duration) (out region) {
	for _, i := range r {
		i = i.Widen(d)
		if last := len(out) - 1; last >= 0 && out[last].Latest >= i.Earliest {
			out[last].Latest = i.Latest
			continue
		}
		out = append(out, i)
	}
	return out
}

// intersect returns the points of both regions.
func (r region) intersect(o region) (out region) {
	for len(r) > 0 && len(o) > 0 {
		if both, ok := r[0].Intersect(o[0]); ok {
			out = append(out, both)
		}
		if r[0].Latest < o[0].Latest {
			r = r[1:]
		} else {
			o = o[1:]
		}
	}
	if len(out) > maxParts {
		return region{out.hull()}
	}
	return out
}

// overlaps reports whether the interval shares a point with the region.
func (r region) overlaps(i Interval) bool { return slices.ContainsFunc(r, i.Overlaps) }

// deepest is the lowest point that most of the intervals hold.
func deepest(all []Interval) region {
	for need := len(all); need > 0; need-- {
		if r := covered(all, need); len(r) > 0 {
			return region{Exactly(r[0].Earliest)}
		}
	}
	return nil
}
