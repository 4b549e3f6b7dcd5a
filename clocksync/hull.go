package clocksync

// hull returns the smallest interval that holds every point which at least need
// of the intervals hold, and whether there is such a point. If all but need of
// the intervals may be wrong, the truth is one of these points; the deepest
// overlap, which many programs take for it, need not hold it.
func hull(all []Interval, need int) (Interval, bool) {
	h := Interval{MaxInstant, MinInstant}
	for _, i := range all {
		if depth(all, i.Earliest) >= need {
			h.Earliest = min(h.Earliest, i.Earliest)
		}
		if depth(all, i.Latest) >= need {
			h.Latest = max(h.Latest, i.Latest)
		}
	}
	return h, h.Valid()
}

// depth is how many intervals hold the point.
func depth(all []Interval, p Instant) (n int) {
	for _, i := range all {
		if i.Contains(p) {
			n++
		}
	}
	return n
}

// deepest is the lowest point that most intervals hold.
func deepest(all []Interval) (p Instant) {
	best := 0
	for _, i := range all {
		if d := depth(all, i.Earliest); d > best || d == best && i.Earliest < p {
			p, best = i.Earliest, d
		}
	}
	return p
}
