package scgs

import (
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
)

// Need is evidence that the detector lacks: that the state of the member's
// report Seq still held at a stamp with a reading above AfterMono and an
// Earliest (under Possibly a Latest) above AfterTime, or what came after it.
type Need struct {
	Member Member // whose evidence is missing
	// Seq is 0 if the member has no state: it lacks a report, not evidence.
	Seq       uint64
	AfterMono clocksync.Instant // a reading of the member's clock
	AfterTime clocksync.Instant // MinInstant if any will do
	// Newest is the stamp of the newest evidence there is; its Domain is empty if the member
	// has no state. For a group it is the stamp of a row, whose Domain it has; Seq is then
	// the index of a tuple.
	Newest clocksync.Stamp
}

// Needs appends to dst, in order of members, whose evidence would decide more,
// after Next has returned false: whether the heads are a global state or, while
// one is open in which a state has ended, whether that state's successor makes
// the next one. A reading that its member takes after it was asked answers for
// all that was reported before. Needs appends nothing where only a report can
// help: if no state has ended since, or if a start without an upper bound keeps
// a tuple of several domains from being certain.
func (d *Detector) Needs(dst []Need) []Need {
	switch {
	case d.missing > 0:
		return d.silent(dst)
	case d.live == 0 || d.isMulti() && d.infinite > 0 && d.modality != Possibly:
		return dst
	}
	next := reach{to: unheard}
	if d.open {
		m := d.endedFirst()
		if m == none {
			return dst
		}
		next = d.followsAt(&d.members[m])
	}
	from := len(dst)
	for h := range d.domains {
		dst = d.lacking(dst, int32(h), next)
	}
	sortNeeds(dst[from:])
	return dst
}

// sortNeeds sorts needs of different members.
func sortNeeds(all []Need) {
	slices.SortFunc(all, func(a, b Need) int { return int(a.Member - b.Member) })
}

// NeedsFor appends to dst the group's missing evidence for n, a need of the detector a level
// above: the members whose evidence the row of the group rests on. If n asks for a first tuple
// these are the group's own needs. Evidence that only the group lacks, to advance to its next
// tuple, does not show above: ask for [Detector.Needs] at each level.
func (d *Detector) NeedsFor(dst []Need, n Need) []Need {
	if n.Seq == 0 || d.up == nil {
		return d.Needs(dst)
	}
	limit := n.AfterTime
	if limit != clocksync.MinInstant {
		limit++
	}
	from := len(dst)
	for h := range d.domains {
		if dom := &d.domains[h]; d.up.rows[dom.row].row.Domain == n.Newest.Domain {
			dst = d.unshown(dst, int32(h), n.AfterMono, n.AfterTime, limit)
		}
	}
	sortNeeds(dst[from:])
	return dst
}

// endedFirst returns the head that ended first, or none.
func (d *Detector) endedFirst() Member {
	if d.one.on {
		if first := d.one.ends.firstEnding(); first.at != clocksync.MaxInstant {
			return first.member
		}
		return none
	}
	h := int32(0)
	if d.isMulti() {
		h = d.top.root().deadLo
		if h == int32(none) {
			return none
		}
		return Member(d.domains[h].heads.root().deadLo)
	}
	return Member(d.domains[h].heads.root().deadM)
}

// followsAt is when what comes after the member's head begins; under Possibly,
// until when a head that ends later must be shown to last.
func (d *Detector) followsAt(mb *member) reach {
	if mb.group != nil {
		return mb.group.reachOf(&mb.queue)
	}
	to := mb.queue.front().end
	if d.modality == Possibly {
		return reach{to: point{to.m, to.lo, to.lo}}
	}
	if to.hi == clocksync.MaxInstant {
		to.hi = to.lo
	}
	return reach{d.domains[mb.domain].name, to}
}

// lacking appends the members of a domain whose evidence is not past all starts.
func (d *Detector) lacking(dst []Need, h int32, next reach) []Need {
	dom := &d.domains[h]
	mono, after := dom.maxM, clocksync.MinInstant
	if d.isMulti() {
		after = d.latestOutside(h)
	}
	if next.domain == dom.name && dom.name != "" {
		mono = max(mono, next.to.m)
	} else {
		after = max(after, next.to.hi)
	}
	limit := clocksync.MinInstant
	if d.isMulti() {
		limit = after + 1
	}
	return d.unshown(dst, h, mono, after, limit)
}

// unshown appends the members of a domain whose evidence is not past a reading or
// below a limit.
func (d *Detector) unshown(dst []Need, h int32, mono, after, limit clocksync.Instant) []Need {
	if d.one.on {
		d.scratch = d.lackingOneClock(d.scratch[:0], mono)
	} else {
		d.scratch = d.domains[h].heads.appendBelow(d.scratch[:0], 0, mono+1, limit)
	}
	for _, m := range d.scratch {
		n := Need{Member: Member(m), AfterMono: mono, AfterTime: after}
		mb := &d.members[m]
		switch {
		case mb.group != nil:
			if !mb.group.completeNeed(&n, &mb.queue, h, limit) {
				continue
			}
		case mb.queue.front().closed:
			continue
		default:
			n.Seq, n.Newest = mb.seq, d.endOf(mb, mb.queue.front()).stampIn(d.places[m].home)
		}
		dst = append(dst, n)
	}
	return dst
}

// silent appends the members that have no state. A member between two runs is not silent: only
// its next report helps.
func (d *Detector) silent(dst []Need) []Need {
	for m := range d.members {
		if mb := &d.members[m]; mb.alive && mb.queue.n == 0 && (mb.seq == 0 || !d.looksAtRuns()) {
			dst = append(dst, Need{Member: Member(m), AfterMono: clocksync.MinInstant, AfterTime: clocksync.MinInstant})
		}
	}
	return dst
}
