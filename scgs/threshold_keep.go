package scgs

import (
	"math"

	"github.com/gopegasus/pegasus/clocksync"
)

// What is kept, and why that is enough.
//
// A set is completed by an input only if two of its runs begin to overlap by it,
// and an input makes only one run g reach further: from the evidence E to later
// one, past the start of another run x of the set. So x does not start before E:
// m(S of x) >= m(E) on one clock, hi(S of x) >= lo(E) else. A run d that has ended
// can be dropped as soon as it can be in no such set any more. For then it is
// no candidate, it cannot be what a set lacks to be maximal, and no set that is
// still to come contains a reported one with d in it.
//
// It is dropped in two steps.
//
//  1. All members of its clock have given readings that are not before its end.
//     Then no run of that clock begins to overlap d, or reaches another one of
//     that clock that overlaps d, and all runs of that clock that do have been
//     reported.
//  2. All members have progressed past all finite ends of stamps of d's clock that
//     were known at step 1, and past lo(T of d). Progress is the Earliest of the
//     newest stamp. A run x of d's clock that overlaps d, or d itself, has hi(S)
//     below it, as has a run x of any other clock, since hi(S of x) < lo(T of d):
//     no run of another clock than x's reaches x again. One of x's own clock might,
//     where a promise (or a stamp that breaks the rules) puts lo(E) ahead of the
//     readings. So the progress of an open run is held back to the hi(S) of those
//     runs of its clock, itself included, whose start its readings have not
//     passed. Nor does a member that restarts on d's clock begin anything before the end of d.
//
// With one clock in all it is enough, instead of step 2, that no member can begin
// anything before lo(T of d), which is so at step 1 but for promises.

// noteHeard notes the newest stamp of a member, and drops what that frees.
func (t *Threshold) noteHeard(m Member, h *holder, p point) {
	h.noteHeard(p)
	c := h.clockRuns
	c.latest = max(c.latest, h.last.hi)
	if p.m != clocksync.MaxInstant {
		c.maxLo = max(c.maxLo, p.lo)
	}
	c.reading.setLeaf(h.leaf, p.m)
	t.progressed.setLeaf(int32(m), h.progressTime())
	t.passRuns(c)
	t.sweepRuns()
}

// progressTime is a time that no later start of the member is before, and no start
// that its open run has still to reach.
func (h *holder) progressTime() clocksync.Instant {
	lo, c := h.last.lo, h.clockRuns
	if h.open == nil || h.open.certainlyHeld() && !c.starts.others() {
		return lo
	}
	for i := len(c.starts.list) - 1; i >= 0 && c.starts.list[i].key >= h.last.m; i-- {
		if x := c.starts.list[i].run; x != nil {
			lo = min(lo, x.start.hi)
		}
	}
	return lo
}

// holdBack holds the progress of the open runs back that have yet to reach the
// start of r on its clock.
func (t *Threshold) holdBack(r *run) {
	if r.start.hi >= r.clockRuns.maxLo {
		return
	}
	for _, e := range r.clockRuns.starts.list {
		if g := e.run; g != nil && g != r && !g.closed && g.end.m <= r.start.m {
			t.progressed.setLeaf(int32(g.member), min(t.progressed.leafAt(int32(g.member)), r.start.hi))
		}
	}
}

// passRuns takes step 1 for the runs whose end all members of the clock have passed.
func (t *Threshold) passRuns(c *clockRuns) {
	for {
		r := c.passing.front()
		if r == nil || r.end.m > c.reading.least() {
			return
		}
		if !t.isMulti() && r.end.lo <= t.progressed.least() {
			t.dropRun(r)
			continue
		}
		c.passing.removeRun(r.end.m, r)
		r.passed = true
		r.until = max(c.latest, r.end.lo)
		t.waiting.insertRun(r.until, r)
	}
}

// requeueRuns puts the runs of a clock that a member has moved to back to step 1.
func (t *Threshold) requeueRuns(c *clockRuns) {
	for _, e := range c.over.list {
		if r := e.run; r != nil && r.passed {
			t.waiting.removeRun(r.until, r)
			r.passed = false
			c.passing.insertRun(r.end.m, r)
		}
	}
}

// sweepRuns takes step 2.
func (t *Threshold) sweepRuns() {
	for {
		r := t.waiting.front()
		if r == nil || r.until >= t.progressed.least() {
			return
		}
		t.dropRun(r)
	}
}

// ordered is a list of runs by ascending key, cheapest where keys are put in and taken out in
// about that order. A removed run leaves a hole.
type ordered struct {
	list  []entry
	first int // no run is before that
	holes int
}

// entry is a run in an ordered list, or a hole. Equal keys are in order of serial.
type entry struct {
	key    clocksync.Instant
	serial uint64
	run    *run
}

func (o *ordered) isEmpty() bool { return len(o.list) == o.holes }

// others reports whether there is more than one run.
func (o *ordered) others() bool { return len(o.list)-o.holes > 1 }

// findPlace returns the place of the first entry that is not before a key and serial.
func (o *ordered) findPlace(key clocksync.Instant, serial uint64) int {
	lo, hi := 0, len(o.list)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if e := &o.list[mid]; e.key < key || e.key == key && e.serial < serial {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// countAbove is at least the number of runs with a key above a limit.
func (o *ordered) countAbove(limit clocksync.Instant) int {
	if limit == clocksync.MaxInstant {
		return 0
	}
	return len(o.list) - o.findPlace(limit+1, 0)
}

// upTo is at least the number of runs with a key up to a limit.
func (o *ordered) upTo(limit clocksync.Instant) int { return o.findPlace(limit, math.MaxUint64) }

func (o *ordered) insertRun(key clocksync.Instant, r *run) {
	if len(o.list) == cap(o.list) && 4*o.holes > len(o.list) {
		o.compact()
	}
	i := len(o.list)
	o.list = append(o.list, entry{key, r.serial, r})
	if i > 0 && (o.list[i-1].key > key || o.list[i-1].key == key && o.list[i-1].serial > r.serial) {
		o.list = o.list[:i]
		i = o.findPlace(key, r.serial)
		o.list = append(o.list, entry{})
		copy(o.list[i+1:], o.list[i:])
		o.list[i] = entry{key, r.serial, r}
	}
	o.first = min(o.first, i)
}

func (o *ordered) removeRun(key clocksync.Instant, r *run) {
	o.list[o.findPlace(key, r.serial)].run = nil
	o.holes++
	for n := len(o.list); n > 0 && o.list[n-1].run == nil; n-- {
		o.list = o.list[:n-1]
		o.holes--
	}
	if o.holes > 16 && 2*o.holes > len(o.list) {
		o.compact()
	}
	o.first = min(o.first, len(o.list))
}

func (o *ordered) compact() {
	n := 0
	for _, e := range o.list {
		if e.run != nil {
			o.list[n] = e
			n++
		}
	}
	clear(o.list[n:])
	o.list, o.first, o.holes = o.list[:n], 0, 0
}

// front returns the first run, or nil.
func (o *ordered) front() *run {
	for ; o.first < len(o.list); o.first++ {
		if r := o.list[o.first].run; r != nil {
			return r
		}
	}
	return nil
}
