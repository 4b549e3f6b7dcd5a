package scgs

import (
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
)

// run is a maximal sequence of a member's states in which the condition holds.
type run struct {
	member    Member
	clockRuns *clockRuns
	start     point
	end       point // the newest evidence while the run is open
	first     uint64
	ref       Ref
	closed    bool
	kept      bool              // after its end
	passed    bool              // all members of its clock have passed its end: it waits for the others
	place     int               // in Threshold.open
	serial    uint64            // in order of arrival, never used twice
	mark      uint64            // the tick of the search that has seen it
	fresh     uint64            // the tick of the search for which it is newly overlapped
	until     clocksync.Instant // once passed: all must have progressed past that
	wanted    uint64            // the tick of the search that asks it for evidence ...
	mono      clocksync.Instant // ... past this reading
	time      clocksync.Instant // ... and this time
	alarms    []*alarm          // reported sets, each kept by one of its runs
	picked    uint64            // the mark of the set that it was last looked for in
	reach     int               // how many runs have overlapped it
	before    int               // of these, how many start no later
	cover     cover
	next      next
	odd       bool // its start is out of order among the stamps of its clock
}

// next is a later run that overlaps all that can be in a set of which a run is the last.
type next struct {
	run    *run
	serial uint64
	lapse  uint64 // Threshold.lapse when that was so
}

// certainlyHeld reports whether the run certainly held at all.
func (r *run) certainlyHeld() bool { return r.start.m < r.end.m }

// overlapsRun reports whether two runs certainly overlap.
func (r *run) overlapsRun(x *run) bool {
	if r.clockRuns == x.clockRuns {
		return r.start.m < x.end.m && x.start.m < r.end.m
	}
	return r.start.hi < x.end.lo && x.start.hi < r.end.lo
}

func (r *run) partOf() Part {
	return Part{
		Member: r.member, Seq: r.first, Ref: r.ref, Open: !r.closed,
		Start: r.start.stampIn(r.clockRuns.name), End: r.end.stampIn(r.clockRuns.name),
	}
}

// clockRuns are the runs, and the members' readings, of a single clock domain.
type clockRuns struct {
	name      clocksync.Domain
	members   int32
	reading   least             // the newest one of each member
	starts    ordered           // the runs, by the reading of the start
	over      ordered           // those that have ended, by the reading of the end
	passing   ordered           // of those, the ones whose end some member has not passed
	latest    clocksync.Instant // latest finite Latest of all stamps
	maxLo     clocksync.Instant // latest Earliest of all stamps
	unbounded int               // runs whose start has no upper bound

	extent extent            // of the set that a profile sums up
	behind clocksync.Instant // the least reading of evidence, for Needs
}

// layoutClocks files the members by clock, and sums up how far they are.
func (t *Threshold) layoutClocks() {
	for _, c := range t.clocks {
		c.members = 0
	}
	for m := range t.members {
		if h := &t.members[m]; h.alive {
			h.clockRuns = t.findClock(h.clock)
			h.leaf = h.clockRuns.members
			h.clockRuns.members++
		}
	}
	t.clocks = slices.DeleteFunc(t.clocks, func(c *clockRuns) bool {
		unused := c.members == 0 && c.starts.isEmpty()
		if unused {
			delete(t.byName, c.name)
		}
		return unused
	})
	for _, c := range t.clocks {
		c.reading = newLeast(int(c.members))
	}
	t.progressed = newLeast(len(t.members))
	for m := range t.members {
		if h := &t.members[m]; h.alive {
			h.clockRuns.reading.setLeaf(h.leaf, h.last.m)
			t.progressed.setLeaf(int32(m), h.progressTime())
		}
	}
	t.lapse++
	for _, c := range t.clocks {
		t.passRuns(c)
	}
	t.sweepRuns()
}

// findClock returns the domain of that name.
func (t *Threshold) findClock(name clocksync.Domain) *clockRuns {
	c := t.byName[name]
	if c == nil {
		c = &clockRuns{name: name, latest: clocksync.MinInstant, maxLo: clocksync.MinInstant}
		t.byName[name] = c
		t.clocks = append(t.clocks, c)
	}
	return c
}

func (t *Threshold) isMulti() bool { return len(t.clocks) > 1 }

// beginRun makes a run that starts at p.
func (t *Threshold) beginRun(m Member, h *holder, p point, ref Ref) {
	var r *run
	if n := len(t.pool); n > 0 {
		r, t.pool = t.pool[n-1], t.pool[:n-1]
	} else {
		r = &run{}
	}
	t.serial++
	c := h.clockRuns
	*r = run{
		member: m, clockRuns: c, start: p, end: p, first: h.seq, ref: ref,
		place: len(t.open), serial: t.serial, alarms: r.alarms[:0],
	}
	h.open = r
	t.count++
	t.open = append(t.open, r)
	c.starts.insertRun(p.m, r)
	if p.hi != clocksync.MaxInstant {
		t.starts.insertRun(p.hi, r)
	} else {
		c.unbounded++
	}
	if t.alarmsOnly {
		t.judgeStart(r)
	}
	t.holdBack(r)
}

// endOpen takes the member's open run out of those that are open.
func (t *Threshold) endOpen(h *holder, r *run) {
	last := t.open[len(t.open)-1]
	t.open[r.place], last.place = last, r.place
	t.open[len(t.open)-1] = nil
	t.open = t.open[:len(t.open)-1]
	h.open = nil
}

// closeRun ends the member's open run where its end is now. A run that never held
// is of no further use; close reports whether this one did.
func (t *Threshold) closeRun(h *holder, r *run) bool {
	t.endOpen(h, r)
	r.closed = true
	if t.ends {
		t.ended = append(t.ended, r.partOf())
	}
	if !r.certainlyHeld() {
		t.dropRun(r)
		return false
	}
	r.kept = true
	h.closed = append(h.closed, r)
	t.over.insertRun(r.end.lo, r)
	r.clockRuns.over.insertRun(r.end.m, r)
	r.clockRuns.passing.insertRun(r.end.m, r)
	if len(h.closed) > t.maxPending {
		t.stats.Collapsed++
		t.lapse++ // It may have been in sets to come.
		t.dropRun(h.closed[0])
	}
	return true
}

// dropRun forgets a run that is not open.
func (t *Threshold) dropRun(r *run) {
	t.count--
	c := r.clockRuns
	c.starts.removeRun(r.start.m, r)
	if r.start.hi != clocksync.MaxInstant {
		t.starts.removeRun(r.start.hi, r)
	} else {
		c.unbounded--
	}
	if r.odd {
		t.odd--
	}
	if r.kept {
		h := &t.members[r.member]
		i := slices.Index(h.closed, r)
		h.closed = slices.Delete(h.closed, i, i+1)
		t.over.removeRun(r.end.lo, r)
		c.over.removeRun(r.end.m, r)
		if r.passed {
			t.waiting.removeRun(r.until, r)
		} else {
			c.passing.removeRun(r.end.m, r)
		}
	}
	r.serial = 0
	if len(t.sets) > 0 {
		t.retired = append(t.retired, r)
		return
	}
	t.recycleRun(r)
}

func (t *Threshold) recycleRun(r *run) {
	if r.ref != 0 {
		t.released = append(t.released, r.ref)
	}
	t.pool = append(t.pool, r)
}
