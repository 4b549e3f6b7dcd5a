package clocksync

import "slices"

// feud is between two servers that cannot both have been right, however the
// clock drifted between their samples. Later it may seem so again, once both
// intervals have grown; so it is remembered for their next few samples.
type feud struct {
	a, b           *server
	sinceA, sinceB uint64 // samples each had taken
}

func (f *feud) over() bool { return f.a.forgave(f.sinceA) || f.b.forgave(f.sinceB) }

// forgave reports whether what the server said up to so many samples ago is no
// longer held against it.
func (v *server) forgave(since uint64) bool {
	return since <= v.cleared || v.taken-since >= memory
}

// contest notes with whom a server feuds over its newest sample.
func (e *Estimator) contest(v *server) {
	s := v.newest
	e.feuds = slices.DeleteFunc(e.feuds, func(f feud) bool { return f.over() })
	for _, o := range e.servers {
		if o == v || len(o.kept) == 0 || o.offset(s.At, e.config.Drift).Overlaps(s.Offset) {
			continue
		}
		e.feuds = slices.DeleteFunc(e.feuds, func(f feud) bool { return f.a == v && f.b == o || f.a == o && f.b == v })
		e.feuds = append(e.feuds, feud{v, o, v.taken, o.taken})
	}
}

// feudsAmong lists for each server with whom it feuds, by their numbers.
func (e *Estimator) feudsAmong(servers []*server) []set {
	feuds := make([]set, len(servers))
	for i := range e.feuds {
		f := &e.feuds[i]
		a, b := slices.Index(servers, f.a), slices.Index(servers, f.b)
		if a >= 0 && b >= 0 && !f.over() {
			feuds[a] |= 1 << b
			feuds[b] |= 1 << a
		}
	}
	return feuds
}
