package clocksync

import "slices"

// memory is how many samples of a server are kept, and how many it must give
// before it counts again after trust was lost.
const memory = 8

// server is the knowledge about a server. An honest server is honest in all its samples, so the
// offset lies where all kept samples allow it, and they always allow some place: a sample that
// excludes the others replaces them, and shows that the server was wrong.
type server struct {
	source, name string
	kept         []Sample // oldest first
	newest       Sample
	fresh        int  // samples that agree with each other
	wrong        bool // it contradicted itself, and is not fresh enough since
	taken        uint64
	cleared      uint64 // of taken, when all samples were last forgotten
	contradicted uint64
}

// grown is the offset that the sample leaves possible at the reading now.
func (s *Sample) grown(now Instant, drift float64) Interval {
	return s.Offset.Widen(growthOver(now.Sub(s.At), max(drift, s.Drift)))
}

// usableUntil is the last reading at which the sample may be used.
func (s *Sample) usableUntil() Instant {
	if s.Lasts == 0 {
		return MaxInstant
	}
	return s.At.Add(s.Lasts)
}

// joinOffsets is what all samples together allow; Unbounded if there are none.
func (v *server) joinOffsets(now Instant, drift float64) Interval {
	all := Unbounded
	for i := range v.kept {
		if v.kept[i].usableUntil() >= now {
			all, _ = all.Intersect(v.kept[i].grown(now, drift))
		}
	}
	return all
}

// usableUntil is the reading up to which offset rests on the same samples.
func (v *server) usableUntil() Instant {
	until := MaxInstant
	for i := range v.kept {
		until = min(until, v.kept[i].usableUntil())
	}
	return until
}

// isSilent reports whether no sample may be used at the reading now.
func (v *server) isSilent(now Instant) bool {
	return !slices.ContainsFunc(v.kept, func(s Sample) bool { return s.usableUntil() >= now })
}

// addSample keeps a sample, which is the newest.
func (v *server) addSample(s Sample, drift float64) {
	if _, agrees := v.joinOffsets(s.At, drift).Intersect(s.Offset); !agrees {
		v.dropSamples(func(Sample) bool { return true })
		v.contradicted++
		v.wrong = true
	}
	v.kept = append(v.kept, s)
	v.newest = s
	v.taken++
	if v.fresh++; v.fresh >= memory {
		v.wrong = false
	}
	if len(v.kept) > memory {
		v.evict(s.At, drift)
	}
}

// evict forgets the oldest sample that decides neither end of the offset. As
// samples grow alike, it never will.
func (v *server) evict(now Instant, drift float64) {
	earliest, latest := 0, 0
	lo, hi := MinInstant, MaxInstant
	for i := range v.kept {
		g := v.kept[i].grown(now, drift)
		if g.Earliest >= lo {
			earliest, lo = i, g.Earliest
		}
		if g.Latest <= hi {
			latest, hi = i, g.Latest
		}
	}
	for i := range v.kept {
		if i != earliest && i != latest {
			v.kept = slices.Delete(v.kept, i, i+1)
			return
		}
	}
}

// dropSamples forgets the samples that are bad, and starts to count again if none is left.
func (v *server) dropSamples(bad func(Sample) bool) {
	v.kept = slices.DeleteFunc(v.kept, bad)
	if len(v.kept) == 0 {
		v.fresh, v.wrong, v.cleared = 0, false, v.taken
	}
}

// bestSample is the narrowest sample by now.
func (v *server) bestSample(now Instant, drift float64) (best Sample) {
	width := int64(-1)
	for i := range v.kept {
		if w := v.kept[i].grown(now, drift).Width(); v.kept[i].usableUntil() >= now && (width < 0 || int64(w) <= width) {
			best, width = v.kept[i], int64(w)
		}
	}
	return best
}

// largestDrift is the largest that a sample asks for.
func (v *server) largestDrift() (drift float64) {
	for i := range v.kept {
		drift = max(drift, v.kept[i].Drift)
	}
	return drift
}

// checkSample checks the fields of a sample, without the samples before it.
func (s *Sample) checkSample() Reason {
	switch {
	case s.Source == "", s.Server == "", s.Timeline == "",
		!s.Offset.Valid(), s.Offset.Earliest == MaxInstant, s.Offset.Latest == MinInstant,
		s.At < s.From, !s.From.Finite(), !s.At.Finite(), s.Lasts < 0, s.Leap > LeapUnsynchronized,
		!(s.Drift >= 0 && s.Drift <= MaxDrift): // Also NaN.
		return Malformed
	case s.Leap == LeapUnsynchronized:
		return Unsynchronized
	}
	return Taken
}
