package scgs

import (
	"strconv"

	"github.com/gopegasus/pegasus/clocksync"
)

// Reason says why an input was not taken.
type Reason uint8

// The reasons. All but Accepted are counted in [Stats] and change nothing. The exception is the
// sequence number of a report for a member given up by [Detector.Lost], which is noted.
const (
	Accepted  Reason = iota
	Duplicate        // a sequence number that was seen or passed over
	Stale            // evidence for a state that has ended or was given up
	Regress          // a stamp before the member's newest one, or against a promise
	Foreign          // a stamp of another clock domain
	Malformed        // an empty interval, an infinite instant, or number 0
	Late             // begins before the point up to which its member was taken as UNKNOWN
	NoMember         // no member of this epoch has that number
	Unfit            // a summary of a plain member or under Possibly, or a group's state
	reasons
)

var reasonNames = [reasons]string{"accepted", "duplicate", "stale", "regress", "foreign", "malformed", "late", "no-member", "unfit"}

// String gives the word for a reason in logs and metrics.
func (r Reason) String() string {
	if r < reasons {
		return reasonNames[r]
	}
	return "reason(" + strconv.Itoa(int(r)) + ")"
}

// Stats counts what went through a detector since it was made.
type Stats struct {
	States    uint64 // local states taken
	Evidence  uint64 // readings taken as evidence
	Gaps      uint64 // jumps in sequence numbers
	Collapsed uint64 // local states lost to Options.MaxPending, or with a group's run
	Global    uint64 // strongly consistent global states delivered
	Partial   uint64 // tuples with UNKNOWN members delivered
	Truncated uint64 // inputs to a Threshold at which sets may have been left out
	refused   [reasons]uint64
}

// Refused is the number of inputs not taken for that reason.
func (s Stats) Refused(r Reason) uint64 {
	if r == Accepted || r >= reasons {
		return 0
	}
	return s.refused[r]
}

// Stats returns the counts so far.
func (d *Detector) Stats() Stats { return d.stats }

// Start reports that the member's state seq began at the stamp, which ends the state before it.
// A jump in seq is a loss: from the member's newest evidence to this start it is UNKNOWN. The
// first report of a member may have any seq. An accepted ref comes back from
// [Detector.Released]; any other stays with the caller.
//
// Under Definitely and Possibly the condition holds in the state: it continues the member's run
// or, after an End or a loss, begins a new run. A run has the number of its first state and the
// ref of its newest.
//
// The stamp may not be before the member's newest one in any part (an infinite Latest is not
// compared).
func (d *Detector) Start(m Member, seq uint64, at clocksync.Stamp, ref Ref) Reason {
	if d.follow(m, seq, &at, ref) {
		return Accepted
	}
	mb, p, why := d.admit(m, seq, at)
	if why != Accepted {
		return why
	}
	d.stats.States++
	if d.goesOn(mb, seq) {
		d.extend(m, mb, p, ref)
		mb.seq = seq
		return Accepted
	}
	joined := d.endTail(m, mb, seq, p)
	end := p
	if d.modality == Possibly {
		end = d.shown(mb, p)
	}
	d.push(m, mb, &state{start: d.framePoint(p), end: end, seq: seq, ref: ref, joined: joined})
	return Accepted
}

// follow is Start for a report of states that is just the next one: nothing is
// missing before it, its stamp is in order, and it ends a known state. It reports
// whether it is, and else does nothing.
func (d *Detector) follow(m Member, seq uint64, at *clocksync.Stamp, ref Ref) bool {
	if uint(m) >= uint(len(d.members)) || d.modality != Inst {
		return false
	}
	mb := &d.members[m]
	if mb.seq == 0 || seq != mb.seq+1 || mb.queue.n == 0 || at.Domain != mb.clock {
		return false
	}
	d.heardOf(mb)
	s, last, lo, hi := mb.queue.back(), &mb.last, at.Within.Earliest, at.Within.Latest
	if s.closed || s.sort != known || lo > hi || hi == clocksync.MinInstant || lo == clocksync.MaxInstant ||
		at.Mono == clocksync.MaxInstant || at.Mono < last.m || lo < last.lo || hi < last.hi {
		return false
	}
	d.stats.States++
	mb.seq = seq
	last.m, last.lo = at.Mono, lo
	if hi != clocksync.MaxInstant {
		last.hi = hi
	}
	s.end.m, s.end.lo, s.end.hi, s.closed = at.Mono, lo, hi, true
	d.closed(m, mb, s)
	next := mb.queue.push()
	next.start.m, next.start.lo, next.start.hi = at.Mono, lo, hi
	next.end.m, next.end.lo, next.end.hi = at.Mono, lo, hi
	next.seq, next.ref, next.sort, next.closed, next.joined, next.moved = seq, ref, known, false, true, false
	if n := mb.queue.n; int(n)-2 > d.maxPending {
		d.collapseStates(m, max(2, (n-2)/2))
	}
	return true
}

// End reports that the member's last state ended at the stamp and no other one
// began. It takes a sequence number of its own, so that its loss shows. Under
// Definitely and Possibly it also reports a state in which the condition does not
// hold.
func (d *Detector) End(m Member, seq uint64, at clocksync.Stamp) Reason {
	mb, p, why := d.admit(m, seq, at)
	if why != Accepted {
		return why
	}
	d.endTail(m, mb, seq, p)
	return Accepted
}

// Evidence reports that at the stamp the state of the member's report seq still held, and
// nothing had been reported after it. A promise that the state lasts until a reference time is
// evidence with that time as Earliest; a promise that it lasts for ever has MaxInstant as
// reading and as both ends. A later seq than known is a loss, as in [Detector.Start].
func (d *Detector) Evidence(m Member, seq uint64, at clocksync.Stamp) Reason {
	mb := d.findMember(m)
	if mb == nil {
		return d.countRefusal(NoMember)
	}
	if mb.group != nil {
		return d.countRefusal(Unfit)
	}
	d.heardOf(mb)
	p, why := mb.admitEvidence(seq, at)
	if why != Accepted {
		return d.countRefusal(why)
	}
	if seq > mb.seq {
		d.skip(m, mb, p.hi)
		mb.seq = seq
	}
	if !d.shows(m, mb, p) {
		return d.countRefusal(Stale)
	}
	d.stats.Evidence++
	return Accepted
}

// Held reports that at the stamp the newest states of all members of the multiplexer
// still held, and nothing had been reported after them: it is [Detector.Evidence]
// for each of them with the number of its newest report. Who cannot take it, such as
// a member of which nothing was reported, or whose newest state has ended, was given
// up or has a later stamp, is passed over without being counted. It counts as one
// reading, and is refused as Malformed, or as NoMember if none has that multiplexer.
//
// As after Evidence, a report that begins before the stamp is then refused: what
// was on its way over the connection before the stamp has to be put in before it.
func (d *Detector) Held(multiplexer int32, at clocksync.Stamp) Reason {
	switch {
	case !at.Within.Valid():
		return d.countRefusal(Malformed)
	case d.one.on:
		return d.heldOneClock(multiplexer, at)
	}
	found := false
	for m := range d.members {
		if multiplexer > 0 && d.places[m].multiplexer == multiplexer {
			found = true
			d.takeEvidence(Member(m), at)
		}
	}
	if !found {
		return d.countRefusal(NoMember)
	}
	d.stats.Evidence++
	return Accepted
}

// takeEvidence takes evidence for the member's newest state, if it can.
func (d *Detector) takeEvidence(m Member, at clocksync.Stamp) {
	mb := &d.members[m]
	if p, why := mb.admitEvidence(mb.seq, at); why == Accepted {
		d.shows(m, mb, p)
	}
}

// shows takes evidence for the member's newest state, and reports whether it has one
// that can have some.
func (d *Detector) shows(m Member, mb *member, p point) bool {
	s := mb.queue.tail()
	switch {
	case s != nil && s.sort != fiat:
		mb.noteHeard(p)
		s.end = d.shown(mb, p)
	case s == nil && d.looksAtRuns():
		d.hear(mb, p)
	default:
		return false
	}
	d.changed(m, mb)
	return true
}

// Lost gives a silent member up: from its newest evidence on it is UNKNOWN for as long as
// others need it, and tuples continue as partial ones until its next state. A report that
// begins before the point reached by then is Late and never reopens a delivered tuple. A state
// that was promised for ever is not lost. For a group, its reported tuple ends with its newest
// evidence; nothing is UNKNOWN in its place, so that others wait for its next tuple.
func (d *Detector) Lost(m Member) Reason {
	mb := d.findMember(m)
	if mb == nil {
		return d.countRefusal(NoMember)
	}
	if mb.group != nil {
		d.giveUp(m, mb)
		return Accepted
	}
	d.heardOf(mb)
	if mb.holdsForever() {
		return d.countRefusal(Regress)
	}
	d.lose(m, mb, clocksync.MaxInstant)
	if s := mb.queue.tail(); s != nil {
		s.sort = fiat
		d.changed(m, mb)
	}
	return Accepted
}

// Finish says that there are no more reports. Then, under Possibly, an open run whose newest
// evidence has no upper bound has no end in sight. Before, its newest finite upper end stands
// for it, since the end to come may have a bound. Next continues from there.
func (d *Detector) Finish() {
	if d.modality != Possibly {
		return
	}
	for m := range d.members {
		mb := &d.members[m]
		if s := mb.queue.tail(); s != nil && mb.vague {
			s.end.lo = clocksync.MaxInstant
			d.changed(Member(m), mb)
		}
	}
}

// Restart reports that the member is a new incarnation, on a clock that may be
// another one: its sequence numbers restart at 1, and from the newest evidence to
// its next report it is UNKNOWN. The caller keeps reports of the old incarnation
// away. A member whose state was promised for ever cannot restart; remove it.
//
// To move to another clock costs O(members), at once or when the sweep comes to
// it. If the open tuple has the member as UNKNOWN then, it ends as at an epoch.
//
// The old incarnation had ended by the reference time ended: the Latest of the
// first stamp of the new one, or MaxInstant if that is not known.
//
// A group is lost by it, and its next summary begins a new run, whatever number
// that has; the domain is not used.
func (d *Detector) Restart(m Member, domain clocksync.Domain, ended clocksync.Instant) Reason {
	mb := d.findMember(m)
	if mb == nil {
		return d.countRefusal(NoMember)
	}
	if mb.group != nil {
		d.giveUp(m, mb)
		mb.group.run = 0
		return Accepted
	}
	d.heardOf(mb)
	if mb.holdsForever() {
		return d.countRefusal(Regress)
	}
	if mb.last != unheard || mb.queue.n > 0 {
		d.lose(m, mb, max(ended, mb.last.hi, mb.last.lo))
	}
	moved := domain != mb.clock
	mb.restartIncarnation(domain)
	if moved {
		d.move(m, mb, domain)
	} else {
		d.changed(m, mb) // its multiplexer does not speak for it before its next report
	}
	return Accepted
}

// move files the member's reports from here on under another domain. An UNKNOWN
// at its tail is on the new clock from then on, of which nothing is known before
// the first report.
func (d *Detector) move(m Member, mb *member, to clocksync.Domain) {
	s, p := mb.queue.tail(), &d.places[m]
	switch {
	case s == nil && mb.queue.n > 0: // a run that never held marks the place
		d.push(m, mb, &state{sort: unknown, closed: true, moved: true, start: unheard, end: unheard})
		p.moves = append(p.moves, to)
	case s != nil && s.moved:
		p.moves[len(p.moves)-1] = to
	case mb.queue.n > 1:
		s.moved, s.start.m, s.end.m = true, clocksync.MinInstant, clocksync.MinInstant
		p.moves = append(p.moves, to)
	default:
		d.closeTuple()
		if s != nil {
			s.start.m, s.end.m = clocksync.MinInstant, clocksync.MinInstant
		}
		p.home = to
		d.layoutDomains()
	}
}

// admit checks a report against the member's earlier ones.
func (d *Detector) admit(m Member, seq uint64, at clocksync.Stamp) (*member, point, Reason) {
	mb := d.findMember(m)
	switch {
	case mb == nil:
		return nil, point{}, d.countRefusal(NoMember)
	case mb.group != nil:
		return nil, point{}, d.countRefusal(Unfit)
	}
	d.heardOf(mb)
	p, why := mb.admitReport(seq, at)
	switch {
	case why != Accepted:
		return nil, point{}, d.countRefusal(why)
	case d.late(mb, p):
		mb.seq = seq
		return nil, point{}, d.countRefusal(Late)
	}
	return mb, p, Accepted
}

func (d *Detector) countRefusal(why Reason) Reason {
	d.stats.refused[why]++
	return why
}

// late reports whether a tuple has needed the member's UNKNOWN to hold longer
// than to p.
func (d *Detector) late(mb *member, p point) bool {
	s := mb.queue.tail()
	switch {
	case s == nil || s.sort != fiat || mb.queue.n > 1:
		return false
	case d.open && p.m <= d.domains[mb.domain].maxM:
		return true
	case d.open && d.isMulti() && p.lo <= d.latestOutside(mb.domain):
		return true
	case d.forced.domain == d.domains[mb.domain].name:
		return p.m < d.forced.to.m
	}
	return p.lo < d.forced.to.lo
}

// skip applies the gap rule; hi is the latest time of the first stamp after the
// gap.
func (d *Detector) skip(m Member, mb *member, hi clocksync.Instant) {
	d.lose(m, mb, hi)
	d.stats.Gaps++
}

// endTail ends the member's open state at p, after the gap rule. It reports
// whether that was a known state.
func (d *Detector) endTail(m Member, mb *member, seq uint64, p point) bool {
	if mb.followsLoss(seq) {
		d.skip(m, mb, p.hi)
	}
	mb.seq = seq
	s := mb.queue.tail()
	if s == nil {
		d.hear(mb, p)
		return false
	}
	mb.noteHeard(p)
	d.close(m, mb, s, p)
	return s.sort == known
}

// close ends the state s, the member's newest, at p.
func (d *Detector) close(m Member, mb *member, s *state, p point) {
	s.end, s.closed = d.framePoint(p), true
	d.closed(m, mb, s)
}

// closed takes note that the state s, the member's newest, has ended.
func (d *Detector) closed(m Member, mb *member, s *state) {
	if d.ends && s.sort == known {
		d.ended = append(d.ended, Part{
			Member: m, Seq: s.seq, Ref: s.ref,
			Start: d.framePoint(s.start).stampIn(mb.clock), End: d.framePoint(s.end).stampIn(mb.clock),
		})
	}
	if mb.queue.n > 1 {
		return
	}
	if d.one.on {
		d.one.ends.pushEnding(ending{s.end.m, m})
	}
	d.refreshTrees(m)
}

// looksAtRuns reports whether the detector looks at runs and not at single states.
func (d *Detector) looksAtRuns() bool { return d.modality != Inst }

// goesOn reports whether a state of that number continues the member's run.
func (d *Detector) goesOn(mb *member, seq uint64) bool {
	return d.looksAtRuns() && !mb.followsLoss(seq) && mb.queue.tail() != nil
}

// extend adds a state to the member's run, for which its start is evidence.
func (d *Detector) extend(m Member, mb *member, p point, ref Ref) {
	s := mb.queue.tail()
	mb.noteHeard(p)
	s.end = d.shown(mb, p)
	d.releaseRef(s.ref)
	s.ref = ref
	d.changed(m, mb)
}

// framePoint gives a point as the states hold it. For Possibly the ends change
// places: then one test, that the upper end of a start is below the lower one of
// an end, serves all modalities.
func (d *Detector) framePoint(p point) point {
	if d.modality == Possibly {
		p.lo, p.hi = p.hi, p.lo
	}
	return p
}

// shown is the member's evidence p as its open state holds it. No end to come is
// before it, nor has a lower upper end than the newest finite one.
func (d *Detector) shown(mb *member, p point) point {
	if d.modality == Possibly {
		mb.vague = p.hi == clocksync.MaxInstant
		if mb.vague {
			p.hi = max(mb.last.hi, p.lo)
		}
	}
	return d.framePoint(p)
}

// hear notes the stamp of a member that has no open state.
func (d *Detector) hear(mb *member, p point) {
	mb.noteHeard(p)
	if mb.queue.n == 0 {
		d.noteLaterStarts(mb.domain, d.framePoint(mb.reachedPoint()))
		if d.one.on {
			d.one.still = false
			return
		}
		d.reviewDomain(mb.domain)
	}
}

// lose ends the member's open state at its newest evidence and opens UNKNOWN
// there, save between runs; hi is the latest time at which the state can have
// ended.
func (d *Detector) lose(m Member, mb *member, hi clocksync.Instant) {
	if s := mb.queue.tail(); s != nil {
		if s.sort != known {
			return
		}
		to := d.framePoint(s.end)
		to.hi = hi
		d.close(m, mb, s, to)
	}
	if d.looksAtRuns() {
		return
	}
	from := mb.reachedPoint()
	d.push(m, mb, &state{sort: unknown, start: from, end: from})
}

// changed takes note of new evidence for, or the end of, the member's newest
// state.
func (d *Detector) changed(m Member, mb *member) {
	if mb.queue.n == 1 {
		d.refreshTrees(m)
	}
}

// push adds a copy of a state to the member's queue.
func (d *Detector) push(m Member, mb *member, s *state) {
	if mb.queue.n == 0 {
		d.uncountHead(mb)
	}
	*mb.queue.push() = *s
	switch n := mb.queue.n; {
	case n == 1:
		d.countHead(mb)
		d.refreshTrees(m)
	case int(n)-2 > d.maxPending:
		d.collapseStates(m, max(2, (n-2)/2))
	}
}
