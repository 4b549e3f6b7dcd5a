package clocksync

import (
	"math/bits"
	"slices"
	"time"
)

// intervalSet is a set of points: disjoint intervals in ascending order. What all
// but a few of several intervals allow need not be one interval. Only its hull is
// published, but the set is kept whole, so that the offset cannot jump from one
// part to another, where a wrong server waits for the clock to drift.
type intervalSet []Interval

// maxParts is from how many parts on only the hull of a set is kept.
const maxParts = 2 * MaxServers

// coveredBy returns the points that are possible if at least need of the voters are
// right: those contained in that many of their intervals, of which no two conflict.
// The deepest overlap, which many programs take for the true offset, need not
// contain it.
func coveredBy(all []Interval, conflicts []serverSet, need int) (r intervalSet) {
	ends := make([]Instant, 0, 2*len(all))
	for _, i := range all {
		ends = append(ends, i.Earliest, i.Latest)
	}
	slices.Sort(ends)
	ends = slices.Compact(ends)
	possible := func(i Interval) bool {
		steps := 0
		return canBeRight(holders(all, i), conflicts, need, &steps)
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
func (r intervalSet) add(i Interval) intervalSet {
	if last := len(r) - 1; last >= 0 && r[last].Latest >= i.Earliest {
		r[last].Latest = max(r[last].Latest, i.Latest)
		return r
	}
	return append(r, i)
}

// serverSet holds up to MaxServers voters by their number.
type serverSet uint64

func (s serverSet) size() int { return bits.OnesCount64(uint64(s)) }

func (s serverSet) has(i int) bool { return s>>i&1 != 0 }

// holders is the set of the intervals that contain all of one.
func holders(all []Interval, part Interval) (s serverSet) {
	for i := range all {
		if all[i].Contains(part.Earliest) && all[i].Contains(part.Latest) {
			s |= 1 << i
		}
	}
	return s
}

// maxSearchSteps is after how many steps canBeRight gives up. 7 servers take about ten.
const maxSearchSteps = 256

// canBeRight reports whether so many of a set can be right, of which no two
// conflict. If that takes too long to find out, they can: the bound is then wider.
func canBeRight(s serverSet, conflicts []serverSet, need int, steps *int) bool {
	if s.size() < need {
		return false
	}
	*steps++
	worst, most := 0, 0
	for i := range conflicts {
		if n := (s & conflicts[i]).size(); s.has(i) && n > most {
			worst, most = i, n
		}
	}
	return most == 0 || *steps > maxSearchSteps ||
		canBeRight(s&^(1<<worst), conflicts, need, steps) || // It is wrong,
		canBeRight(s&^conflicts[worst], conflicts, need, steps) // or all it conflicts with are.
}

// hullOf is the smallest interval that contains the set, which must not be empty.
func (r intervalSet) hullOf() Interval { return Interval{r[0].Earliest, r[len(r)-1].Latest} }

// widenBy returns the points that are at most d away.
func (r intervalSet) widenBy(d time.Duration) (out intervalSet) {
	for _, i := range r {
		out = out.add(i.Widen(d))
	}
	return out
}

// intersectSets returns the points of both sets.
func (r intervalSet) intersectSets(o intervalSet) (out intervalSet) {
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
		return intervalSet{out.hullOf()}
	}
	return out
}

// overlapsInterval reports whether the interval shares a point with the set.
func (r intervalSet) overlapsInterval(i Interval) bool { return slices.ContainsFunc(r, i.Overlaps) }

// deepestPoint is the lowest point that most of the intervals contain.
func deepestPoint(all []Interval) intervalSet {
	for need := len(all); need > 0; need-- {
		if r := coveredBy(all, nil, need); len(r) > 0 {
			return intervalSet{Exactly(r[0].Earliest)}
		}
	}
	return nil
}
