package clocksync

import (
	"math/bits"
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

// covered returns the points that hold under the assumption that at least need
// of the voters are right: those that so many of their intervals hold, of which
// no two feud. The deepest overlap, which many programs take for the truth, need not
// hold it.
func covered(all []Interval, feuds []set, need int) (r region) {
	ends := make([]Instant, 0, 2*len(all))
	for _, i := range all {
		ends = append(ends, i.Earliest, i.Latest)
	}
	slices.Sort(ends)
	ends = slices.Compact(ends)
	possible := func(i Interval) bool {
		steps := 0
		return canBeRight(holders(all, i), feuds, need, &steps)
	}
	for k, end := range ends {
		if i := Exactly(end); possible(i) {
			r = r.add(i)
		}
		if i := (Interval{end, ends[min(k+1, len(ends)-1)]}); possible(i) {
			r = r.add(i)
		}
	}
	return r
}

// add appends an interval that ends last, and joins what it touches.
func (r region) add(i Interval) region {
	if last := len(r) - 1; last >= 0 && r[last].Latest >= i.Earliest {
		r[last].Latest = max(r[last].Latest, i.Latest)
		return r
	}
	return append(r, i)
}

// set holds up to MaxServers voters by their number.
type set uint64

func (s set) size() int { return bits.OnesCount64(uint64(s)) }

func (s set) has(i int) bool { return s>>i&1 != 0 }

// holders is the set of the intervals that hold all of one.
func holders(all []Interval, part Interval) (s set) {
	for i := range all {
		if all[i].Contains(part.Earliest) && all[i].Contains(part.Latest) {
			s |= 1 << i
		}
	}
	return s
}

// patience is after how many steps canBeRight gives up. 7 servers take some ten.
const patience = 256

// canBeRight reports whether so many of a set can be right, of which no two
// feud. If that takes too long to find out, they can: the bound is then wider.
func canBeRight(s set, feuds []set, need int, steps *int) bool {
	if s.size() < need {
		return false
	}
	*steps++
	worst, most := 0, 0
	for i := range feuds {
		if n := (s & feuds[i]).size(); s.has(i) && n > most {
			worst, most = i, n
		}
	}
	return most == 0 || *steps > patience ||
		canBeRight(s&^(1<<worst), feuds, need, steps) || // It is wrong,
		canBeRight(s&^feuds[worst], feuds, need, steps) // or all its foes are.
}

// hull is the smallest interval that holds a region, which must not be empty.
func (r region) hull() Interval { return Interval{r[0].Earliest, r[len(r)-1].Latest} }

// widen returns the points that are at most d away.
func (r region) widen(d time.Duration) (out region) {
	for _, i := range r {
		out = out.add(i.Widen(d))
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
		if r := covered(all, nil, need); len(r) > 0 {
			return region{Exactly(r[0].Earliest)}
		}
	}
	return nil
}
