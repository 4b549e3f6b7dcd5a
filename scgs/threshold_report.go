package scgs

import "slices"

// alarm is a reported set that contained no other reported one. It is remembered
// with one of its runs, and for nothing once one of them is dropped: then no
// set to come contains it. Sets that contain one need not be remembered, since
// what contains them contains it.
type alarm struct {
	runs      []remembered
	forgotten bool
}

type remembered struct {
	run    *run
	serial uint64
}

func (a *alarm) isGone() bool {
	return a.forgotten || slices.ContainsFunc(a.runs, func(m remembered) bool { return m.run.serial != m.serial })
}

// addSet takes a set among those for Next, if there is room; its first run may be
// out of its place.
func (t *Threshold) addSet(set []*run) {
	s := &t.search
	if len(t.sets) >= t.maxPending || len(t.sets) > s.old && len(t.runs)+len(set) > 64*t.maxPending {
		s.truncated, s.full = true, true
		return
	}
	from := len(t.runs)
	t.runs = append(t.runs, set...)
	set = t.runs[from:]
	for i := 1; i < len(set) && compareRuns(set[i-1], set[i]) > 0; i++ {
		set[i-1], set[i] = set[i], set[i-1]
	}
	if t.alarmsOnly {
		if len(s.lasts) > 0 && !slices.ContainsFunc(set, func(r *run) bool { return slices.Contains(s.lasts, r) }) {
			t.runs = t.runs[:from] // Runs that were not looked at may overlap all of it.
			return
		}
		if a := t.containedSet(set); a != nil {
			t.coverLast(set, a)
			clear(set)
			t.runs = t.runs[:from]
			return
		}
	}
	t.sets = append(t.sets, found{from: from, to: len(t.runs)})
}

// numberSets numbers the sets that this input has completed, in their order.
func (t *Threshold) numberSets() {
	if t.search.truncated {
		t.stats.Truncated++
	}
	sets := t.sets[t.search.old:]
	slices.SortFunc(sets, t.compareSets)
	sets = slices.CompactFunc(sets, func(a, b found) bool { return t.compareSets(a, b) == 0 })
	t.sets = t.sets[:t.search.old+len(sets)]
	for i := range sets {
		f := &sets[i]
		t.index++
		set := t.runs[f.from:f.to]
		f.epoch, f.index, f.grows = t.epoch, t.index, !t.alarmsOnly && t.containedSet(set) != nil
		if f.grows {
			continue
		}
		a := t.remember(set)
		if t.alarmsOnly {
			t.coverLast(set, a)
		}
	}
}

func (t *Threshold) compareSets(a, b found) int {
	return slices.CompareFunc(t.runs[a.from:a.to], t.runs[b.from:b.to], compareRuns)
}

// containedSet returns a reported set that the set contains, or nil.
func (t *Threshold) containedSet(set []*run) *alarm {
	s := &t.search
	s.picks++
	for _, r := range set {
		r.picked = s.picks
	}
	out := func(m remembered) bool { return m.run.serial != m.serial || m.run.picked != s.picks }
	for _, r := range set {
		for _, a := range r.alarms {
			if !a.forgotten && !slices.ContainsFunc(a.runs, out) {
				return a
			}
		}
	}
	return nil
}

// remember keeps a set with that of its runs that has the fewest to keep. Of too
// many in all the oldest are forgotten: a set that contains one of them may be
// taken for an alarm, none is taken for less than it is.
func (t *Threshold) remember(set []*run) *alarm {
	a := &alarm{runs: make([]remembered, 0, len(set))}
	keeper := set[0]
	for _, r := range set {
		a.runs = append(a.runs, remembered{r, r.serial})
		if len(r.alarms) < len(keeper.alarms) {
			keeper = r
		}
	}
	if len(keeper.alarms) == cap(keeper.alarms) {
		keeper.alarms = slices.DeleteFunc(keeper.alarms, (*alarm).isGone)
	}
	keeper.alarms = append(keeper.alarms, a)
	t.alarms = append(t.alarms, a)
	t.remembered += len(set)
	if limit := 64 * t.maxPending; t.remembered > 2*limit {
		t.forget(limit)
	}
	return a
}

// forget drops the reported sets that can be in no set to come and then,
// while those that are left have more runs than the limit, of the oldest.
func (t *Threshold) forget(limit int) {
	t.alarms = slices.DeleteFunc(t.alarms, func(a *alarm) bool {
		gone := a.isGone()
		if gone {
			t.remembered -= len(a.runs)
		}
		return gone
	})
	n := 0
	for ; t.remembered > limit && n < len(t.alarms)-1; n++ {
		t.alarms[n].forgotten = true
		t.remembered -= len(t.alarms[n].runs)
	}
	t.alarms = slices.Delete(t.alarms, 0, n)
}
