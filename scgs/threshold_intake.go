package scgs

import "github.com/gopegasus/pegasus/clocksync"

// Start reports that the member's state seq, in which the condition holds, began at the stamp:
// it continues the member's run or, after an End or a loss, begins a new run. A jump in seq is
// a loss, which ends the run at its newest evidence. The first report of a member may have any
// seq. An accepted ref comes back from [Threshold.Released]; any other stays with the caller.
//
// The stamp may not be before the member's newest one in any part (an infinite Latest is not
// compared).
func (t *Threshold) Start(m Member, seq uint64, at clocksync.Stamp, ref Ref) Reason {
	h, p, why := t.admit(m, seq, at)
	if why != Accepted {
		return why
	}
	t.stats.States++
	if h.followsLoss(seq) {
		t.skip(h, p.hi)
	}
	h.seq = seq
	if r := h.open; r != nil {
		t.release(r.ref)
		r.ref = ref
		t.reach(r, p)
	} else {
		t.beginRun(m, h, p, ref)
	}
	t.noteHeard(m, h, p)
	return Accepted
}

// End reports that at the stamp a state of the member began in which the
// condition does not hold, or that its last state ended and no other one began.
func (t *Threshold) End(m Member, seq uint64, at clocksync.Stamp) Reason {
	h, p, why := t.admit(m, seq, at)
	if why != Accepted {
		return why
	}
	if h.followsLoss(seq) {
		t.skip(h, p.hi)
	}
	h.seq = seq
	if r := h.open; r != nil {
		from := r.end
		r.end = p
		if t.closeRun(h, r) {
			t.completeSets(r, from)
		}
	}
	t.noteHeard(m, h, p)
	return Accepted
}

// Evidence reports that at the stamp the state of the member's report seq still held, and
// nothing had been reported after it; what the member shows of states in which the condition
// does not hold counts for when its next run can begin. A promise that the state lasts until a
// reference time is evidence with that time as Earliest; a promise that it lasts for ever has
// MaxInstant as reading and as both ends. A later seq than known is a loss, as in
// [Threshold.Start].
func (t *Threshold) Evidence(m Member, seq uint64, at clocksync.Stamp) Reason {
	h := t.findHolder(m)
	if h == nil {
		return t.refuse(NoMember)
	}
	p, why := h.admitEvidence(seq, at)
	if why != Accepted {
		return t.refuse(why)
	}
	if seq > h.seq {
		t.skip(h, p.hi)
		h.seq = seq
	}
	t.shows(m, h, p)
	t.stats.Evidence++
	return Accepted
}

// shows takes evidence for the member's newest state.
func (t *Threshold) shows(m Member, h *holder, p point) {
	if r := h.open; r != nil {
		t.reach(r, p)
	}
	t.noteHeard(m, h, p)
}

// Held reports that at the stamp the newest states of all members of the multiplexer
// still held: it is [Threshold.Evidence] for each of them with the number of its
// newest report, as in [Detector.Held].
func (t *Threshold) Held(multiplexer int32, at clocksync.Stamp) Reason {
	if !at.Within.Valid() {
		return t.refuse(Malformed)
	}
	found := false
	for m := range t.members {
		h := &t.members[m]
		if multiplexer <= 0 || h.multiplexer != multiplexer || !h.alive {
			continue
		}
		found = true
		if p, why := h.admitEvidence(h.seq, at); why == Accepted {
			t.shows(Member(m), h, p)
		}
	}
	if !found {
		return t.refuse(NoMember)
	}
	t.stats.Evidence++
	return Accepted
}

// Lost gives a silent member up: its run ends at its newest evidence. A run that
// was promised for ever is not lost.
func (t *Threshold) Lost(m Member) Reason {
	h := t.findHolder(m)
	switch {
	case h == nil:
		return t.refuse(NoMember)
	case h.holdsForever():
		return t.refuse(Regress)
	}
	t.giveUp(h, clocksync.MaxInstant)
	return Accepted
}

func (t *Threshold) giveUp(h *holder, ended clocksync.Instant) {
	t.lose(h, ended)
	t.passRuns(h.clockRuns)
	t.sweepRuns()
}

// Restart reports that the member is a new incarnation, on a clock that may be
// another one: its run ends at its newest evidence and its sequence numbers
// restart at 1. The caller keeps reports of the old incarnation away. A member whose state
// was promised for ever cannot restart; remove it. To move to another clock costs
// O(members). The old incarnation had ended by the reference time ended, as in
// [Detector.Restart].
func (t *Threshold) Restart(m Member, domain clocksync.Domain, ended clocksync.Instant) Reason {
	h := t.findHolder(m)
	switch {
	case h == nil:
		return t.refuse(NoMember)
	case h.holdsForever():
		return t.refuse(Regress)
	}
	t.giveUp(h, max(ended, h.last.hi, h.last.lo))
	moved := domain != h.clock
	h.restartIncarnation(domain)
	if moved {
		t.requeueRuns(t.findClock(domain))
		t.layoutClocks()
	}
	return Accepted
}

// admit checks a report against the member's earlier ones.
func (t *Threshold) admit(m Member, seq uint64, at clocksync.Stamp) (*holder, point, Reason) {
	h := t.findHolder(m)
	if h == nil {
		return nil, point{}, t.refuse(NoMember)
	}
	p, why := h.admitReport(seq, at)
	if why != Accepted {
		return nil, point{}, t.refuse(why)
	}
	return h, p, Accepted
}

func (t *Threshold) refuse(why Reason) Reason {
	t.stats.refused[why]++
	return why
}

func (t *Threshold) release(r Ref) {
	if r != 0 {
		t.released = append(t.released, r)
	}
}

// skip applies the gap rule; hi is the latest time of the first stamp after the
// gap.
func (t *Threshold) skip(h *holder, hi clocksync.Instant) {
	t.lose(h, hi)
	t.stats.Gaps++
}

// lose ends the member's open run at its newest evidence; hi is the latest time
// at which it can have ended.
func (t *Threshold) lose(h *holder, hi clocksync.Instant) {
	if r := h.open; r != nil {
		r.end.hi = hi
		t.closeRun(h, r)
	}
}

// reach gives the open run r newer evidence.
func (t *Threshold) reach(r *run, p point) {
	from := r.end
	r.end = p
	t.completeSets(r, from)
}
