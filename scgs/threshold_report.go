package scgs

import "slices"

// alarm is a reported set that contained no other reported one. It is remembered
// with one of its runs, and for nothing once one of them is let go of: then no
// set to come contains it. Sets that contain one need not be remembered, since
// what contains them contains it.
type alarm []remembered

type remembered struct {
	run    *run
	serial uint64
}

func (a alarm) gone() bool {
	return slices.ContainsFunc(a, func(m remembered) bool { return m.run.serial != m.serial })
}

// add takes a set among those for Next, if there is room; its first run may be
// out of its place.
func (t *Threshold) add(set []*run) {
	s := &t.search
	if len(t.sets) >= t.maxPending || len(t.sets) > s.old && len(t.runs)+len(set) > 64*t.maxPending {
		s.cut, s.full = true, true
		return
	}
	from := len(t.runs)
	t.runs = append(t.runs, set...)
	set = t.runs[from:]
	for i := 1; i < len(set) && compareRuns(set[i-1], set[i]) > 0; i++ {
		set[i-1], set[i] = set[i], set[i-1]
	}
	t.sets = append(t.sets, found{from: from, to: len(t.runs)})
}

// deliver numbers the sets that this input has completed, in their order.
func (t *Threshold) deliver() {
	sets := t.sets[t.search.old:]
	slices.SortFunc(sets, t.compareSets)
	sets = slices.CompactFunc(sets, func(a, b found) bool { return t.compareSets(a, b) == 0 })
	t.sets = t.sets[:t.search.old+len(sets)]
	for i := range sets {
		f := &sets[i]
		t.index++
		f.epoch, f.index, f.grows = t.epoch, t.index, t.grows(t.runs[f.from:f.to])
		if !f.grows {
			t.remember(t.runs[f.from:f.to])
		}
	}
}

func (t *Threshold) compareSets(a, b found) int {
	return slices.CompareFunc(t.runs[a.from:a.to], t.runs[b.from:b.to], compareRuns)
}

// grows reports whether a set contains a reported one.
func (t *Threshold) grows(set []*run) bool {
	t.tick++
	for _, r := range set {
		r.mark = t.tick
	}
	in := func(m remembered) bool { return m.run.serial == m.serial && m.run.mark == t.tick }
	for _, r := range set {
		for _, a := range r.alarms {
			if !slices.ContainsFunc(a, func(m remembered) bool { return !in(m) }) {
				return true
			}
		}
	}
	return false
}

// remember keeps a set with that of its runs that has the fewest to keep, and of
// too many the newest.
func (t *Threshold) remember(set []*run) {
	a := make(alarm, 0, len(set))
	keeper := set[0]
	for _, r := range set {
		a = append(a, remembered{r, r.serial})
		if len(r.alarms) < len(keeper.alarms) {
			keeper = r
		}
	}
	if len(keeper.alarms) == cap(keeper.alarms) {
		keeper.alarms = slices.DeleteFunc(keeper.alarms, alarm.gone)
	}
	if len(keeper.alarms) >= t.maxPending {
		keeper.alarms = slices.Delete(keeper.alarms, 0, 1)
	}
	keeper.alarms = append(keeper.alarms, a)
}
