package clocksync

import "slices"

// conflict is between two servers that cannot both have been right, however the
// clock drifted between their samples. Once both intervals have grown they may seem
// compatible again, so it is remembered for their next few samples.
type conflict struct {
	a, b           *server
	sinceA, sinceB uint64 // samples each had taken
}

func (f *conflict) over() bool { return f.a.forgives(f.sinceA) || f.b.forgives(f.sinceB) }

// forgives reports whether the server has since given enough samples that what it
// said up to sample since no longer counts in a conflict.
func (v *server) forgives(since uint64) bool {
	return since <= v.cleared || v.taken-since >= memory
}

// noteConflicts records which servers the newest sample of a server conflicts with.
func (e *Estimator) noteConflicts(v *server) {
	s := v.newest
	e.conflicts = slices.DeleteFunc(e.conflicts, func(f conflict) bool { return f.over() })
	for _, o := range e.servers {
		if o == v || len(o.kept) == 0 || o.joinOffsets(s.At, e.config.Drift).Overlaps(s.Offset) {
			continue
		}
		e.conflicts = slices.DeleteFunc(e.conflicts, func(f conflict) bool { return f.a == v && f.b == o || f.a == o && f.b == v })
		e.conflicts = append(e.conflicts, conflict{v, o, v.taken, o.taken})
	}
}

// conflictsAmong gives, for each server, those it conflicts with.
func (e *Estimator) conflictsAmong(servers []*server) []serverSet {
	conflicts := make([]serverSet, len(servers))
	for i := range e.conflicts {
		f := &e.conflicts[i]
		a, b := slices.Index(servers, f.a), slices.Index(servers, f.b)
		if a >= 0 && b >= 0 && !f.over() {
			conflicts[a] |= 1 << b
			conflicts[b] |= 1 << a
		}
	}
	return conflicts
}
