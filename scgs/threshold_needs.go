package scgs

import (
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
)

// Needs appends to dst, in order of members, the open runs whose later evidence could complete
// an unreported set, after Next has returned false. Such a run has not been shown to outlast a
// start at which it may overlap at least k-1 others. Members without an open run are not asked.
// With Options.Alarms, runs that could complete only growing sets are not asked either. It
// costs O(open runs), and O(runs) for each start that an open run has not been shown to
// outlast.
func (t *Threshold) Needs(dst []Need) []Need {
	if t.count < t.k || len(t.open) == 0 {
		return dst
	}
	t.tick++
	limit := clocksync.MaxInstant
	for _, c := range t.clocks {
		c.behind = clocksync.MaxInstant
	}
	for _, r := range t.open {
		limit = min(limit, t.progressed.leafAt(int32(r.member)))
		r.clockRuns.behind = min(r.clockRuns.behind, r.end.m)
	}
	if t.isMulti() {
		t.lackingFrom(&t.starts, limit)
	}
	for _, c := range t.clocks {
		t.lackingFrom(&c.starts, c.behind)
	}
	from := len(dst)
	for _, r := range t.open {
		if r.wanted == t.tick {
			dst = append(dst, Need{
				Member: r.member, Seq: t.members[r.member].seq, AfterMono: r.mono, AfterTime: r.time,
				Newest: r.end.stampIn(r.clockRuns.name),
			})
		}
	}
	slices.SortFunc(dst[from:], func(a, b Need) int { return int(a.Member - b.Member) })
	return dst
}

// lackingFrom looks at the starts in the list that are not before a limit, latest
// first. With one clock in all the first one for which enough runs may overlap
// asks for what the earlier ones ask for too.
func (t *Threshold) lackingFrom(o *ordered, limit clocksync.Instant) {
	for i := len(o.list) - 1; i >= 0 && o.list[i].key >= limit; i-- {
		if x := o.list[i].run; x != nil && x.mark != t.tick && (!t.alarmsOnly || !t.isSettled(x)) {
			x.mark = t.tick
			if t.lacking(x) && !t.isMulti() {
				return
			}
		}
	}
}

// lacking marks the runs of which evidence is lacking for sets in which x starts
// last; false if too few runs may overlap there.
func (t *Threshold) lacking(x *run) bool {
	if t.startBy(x) < t.k {
		return false
	}
	s := &t.search
	s.near = s.near[:0]
	for _, y := range t.open {
		if y != x && y.startsBy(x) && x.mayOverlap(y) {
			s.near = append(s.near, y)
		}
	}
	t.lackingEnded(&t.over, x, x.start.hi)
	t.lackingEnded(&x.clockRuns.over, x, x.start.m)
	if len(s.near)+1 < t.k {
		return false
	}
	t.want(x, x)
	for _, y := range s.near {
		t.want(x, y)
		t.want(y, x)
		t.want(y, y)
	}
	if t.k > 2 {
		s.near = append(s.near, x)
		t.wantAll(s.near)
	}
	return true
}

// startBy is at least the number of runs that start no later than x.
func (t *Threshold) startBy(x *run) int {
	return t.starts.upTo(x.start.hi) + x.clockRuns.starts.upTo(x.start.m)
}

// wantAll asks the runs for evidence past the latest starts among them. To have
// passed the last start is to have passed all, save for promises and for clocks
// whose stamps are not monotone.
func (t *Threshold) wantAll(runs []*run) {
	p := t.newProfile()
	latest := p.start
	for _, r := range runs {
		p.putRun(r)
		if r.start.hi != clocksync.MaxInstant {
			rankBest(&latest, bound{r.clockRuns, r.start.hi}, laterOf)
		}
	}
	for _, r := range runs {
		if r.closed {
			continue
		}
		if m := r.clockRuns.extent.start; m >= r.end.m {
			t.ask(r, m, clocksync.MinInstant)
		}
		other := latest[0]
		if other.clockRuns == r.clockRuns {
			other = latest[1]
		}
		if other.clockRuns != nil && other.at >= r.end.lo {
			t.ask(r, r.start.m, other.at)
		}
	}
}

// lackingEnded collects the ended runs near x in the list with a key above a
// limit. Those of x's clock are in its own list.
func (t *Threshold) lackingEnded(o *ordered, x *run, limit clocksync.Instant) {
	for i := len(o.list) - 1; i >= 0 && o.list[i].key > limit; i-- {
		y := o.list[i].run
		if y != nil && y != x && (y.clockRuns == x.clockRuns) == (o != &t.over) && y.startsBy(x) && x.mayOverlap(y) {
			t.search.near = append(t.search.near, y)
		}
	}
}

// mayOverlap reports whether two runs certainly overlap if they have not ended.
func (r *run) mayOverlap(x *run) bool {
	if r.clockRuns == x.clockRuns {
		return (!r.closed || x.start.m < r.end.m) && (!x.closed || r.start.m < x.end.m)
	}
	return (!r.closed || x.start.hi < r.end.lo) && (!x.closed || r.start.hi < x.end.lo) &&
		max(r.start.hi, x.start.hi) < clocksync.MaxInstant
}

// want asks r, if it is open, for evidence past the start of x, if it lacks that.
func (t *Threshold) want(r, x *run) {
	same := r.clockRuns == x.clockRuns
	if r.closed || same && x.start.m < r.end.m || !same && x.start.hi < r.end.lo {
		return
	}
	if same {
		t.ask(r, x.start.m, clocksync.MinInstant)
	} else {
		t.ask(r, r.start.m, x.start.hi)
	}
}

// ask asks r for evidence past a reading and a time.
func (t *Threshold) ask(r *run, mono, time clocksync.Instant) {
	if r.wanted != t.tick {
		r.wanted, r.mono, r.time = t.tick, r.start.m, clocksync.MinInstant
	}
	r.mono, r.time = max(r.mono, mono), max(r.time, time)
}
