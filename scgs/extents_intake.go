package scgs

import "github.com/gopegasus/pegasus/clocksync"

// takeReport takes the stamp that ends the member's state and begins s, which may be
// an UNKNOWN.
func (e *Extents) takeReport(m Member, seq uint64, at clocksync.Stamp, s candidate) Reason {
	win := e.findWindow(m)
	if win == nil {
		return e.refuse(NoMember)
	}
	p, why := win.admitReport(seq, at)
	if why != Accepted {
		return e.refuse(why)
	}
	if win.followsLoss(seq) {
		e.stats.Gaps++
		win.openUnknown(e.nothing)
	}
	if !s.unknown {
		e.stats.States++
	}
	win.settle(p.hi, win.candidates.n)
	e.forget(win, p)
	win.seq, win.lost = seq, false
	win.noteHeard(p)
	s.mono, s.from, s.to = p.m, p.lo, clocksync.MaxInstant
	*win.candidates.push() = s
	if int(win.candidates.n)-2 > e.maxPending {
		e.collapse(win)
	}
	e.refreshTree(m)
	return Accepted
}

// End reports that the member's last state ended at the stamp and no other one
// began: from then on the member is UNKNOWN. It takes a sequence number of its
// own, so that its loss shows.
func (e *Extents) End(m Member, seq uint64, at clocksync.Stamp) Reason {
	return e.takeReport(m, seq, at, e.nothing)
}

// Evidence reports that at the stamp what the member's report seq said still
// held, and nothing had been reported after it. It is what lets events be
// delivered while nothing changes. A promise and a later seq than known are taken
// as in [Detector.Evidence]; evidence of a member given up is Stale.
func (e *Extents) Evidence(m Member, seq uint64, at clocksync.Stamp) Reason {
	win := e.findWindow(m)
	if win == nil {
		return e.refuse(NoMember)
	}
	p, why := win.admitEvidence(seq, at)
	switch {
	case why != Accepted:
		return e.refuse(why)
	case win.lost:
		return e.refuse(Stale)
	}
	if seq > win.seq {
		e.stats.Gaps++
		win.openUnknown(e.nothing)
		win.seq = seq
	}
	if p.m == win.last.m { // the same reading again shows nothing later
		p.lo = win.last.lo
	}
	win.settle(p.hi, win.candidates.n-1)
	win.noteHeard(p)
	e.stats.Evidence++
	e.refreshTree(m)
	return Accepted
}

// Lost gives a silent member up: it may be in its last state or, from its newest
// evidence on, in any other, and is not waited for until its next report. What
// that report says counts from the instant Until of then. A state that was
// promised for ever is not lost.
func (e *Extents) Lost(m Member) Reason {
	win, why := e.lose(m)
	if why == Accepted {
		win.lost = true
		e.refreshTree(m)
	}
	return why
}

// Restart reports that the member is a new incarnation, on a clock that may be another: its
// sequence numbers restart at 1, and from the newest evidence to its next report it is UNKNOWN.
// The caller keeps reports of the old incarnation away. A member whose state was promised for
// ever cannot restart; remove it. The third argument has the meaning it has in
// [Detector.Restart]; it has no effect here, where the value is UNKNOWN from the newest
// evidence on.
func (e *Extents) Restart(m Member, domain clocksync.Domain, _ clocksync.Instant) Reason {
	win, why := e.lose(m)
	if why != Accepted {
		return why
	}
	if domain != win.clock { // nothing is known of the new clock
		win.candidates.back().mono = clocksync.MinInstant
	}
	win.restartIncarnation(domain)
	e.refreshTree(m)
	return Accepted
}

// lose begins an UNKNOWN of a member that has promised nothing.
func (e *Extents) lose(m Member) (*window, Reason) {
	win := e.findWindow(m)
	switch {
	case win == nil:
		return nil, e.refuse(NoMember)
	case win.holdsForever():
		return nil, e.refuse(Regress)
	}
	win.openUnknown(e.nothing)
	return win, Accepted
}

// Finish says that there are no more reports: open states stay open, and Next delivers all that
// is left. Later reports are refused as NoMember. It costs O(members).
func (e *Extents) Finish() {
	e.finished = true
	e.rebuildTrees()
}

// Until is the instant of reference time up to which the last event holds, as
// known now: no later event begins before it.
func (e *Extents) Until() clocksync.Instant { return e.until }

// Needs appends to dst, in order of members, whose evidence is missing for the
// next event, after Next has returned false. It appends nothing if nothing is
// pending.
func (e *Extents) Needs(dst []Need) []Need {
	if len(e.marks) == 0 {
		return dst
	}
	if at := e.nextInstant(); at != clocksync.MaxInstant {
		dst = e.behind(dst, 1, at)
	}
	return dst
}

// behind appends the members under node k that are not final at the instant.
func (e *Extents) behind(dst []Need, k int, at clocksync.Instant) []Need {
	n := len(e.marks) / 2
	switch {
	case e.marks[k].final > at:
		return dst
	case k >= n:
		need := Need{Member: Member(k - n), AfterMono: clocksync.MinInstant, AfterTime: at}
		if win := &e.members[k-n]; win.last != unheard {
			newest := win.last
			newest.hi = max(newest.hi, newest.lo)
			need.Seq, need.Newest = win.seq, newest.stampIn(win.clock)
		}
		return append(dst, need)
	}
	return e.behind(e.behind(dst, 2*k, at), 2*k+1, at)
}

// Stats returns the counts so far. Global and Partial stay 0.
func (e *Extents) Stats() Stats { return e.stats }

func (e *Extents) refuse(why Reason) Reason {
	e.stats.refused[why]++
	return why
}

// openUnknown begins an UNKNOWN at the newest evidence. The state before it may last as
// long, until the next report: both may be current.
func (win *window) openUnknown(nothing candidate) {
	if win.candidates.n > 0 && win.candidates.back().unknown {
		return
	}
	nothing.mono, nothing.from, nothing.to = win.last.m, win.last.lo, clocksync.MaxInstant
	*win.candidates.push() = nothing
}

// settle bounds the ends of the first n candidates, as far as nothing bounded them before: they
// came before an event that had happened by hi.
func (win *window) settle(hi clocksync.Instant, n int32) {
	if hi == clocksync.MaxInstant {
		return
	}
	for i := n - 1; i >= 0 && win.candidates.at(i).to == clocksync.MaxInstant; i-- {
		win.candidates.at(i).to = hi
	}
}

// forget removes the newest candidates if they ended at p by the same reading at which they
// started: they were never held. A candidate that by its stamps ended before the start at p
// stays: there the clock is too coarse.
func (e *Extents) forget(win *window, p point) {
	for n := win.candidates.n; n > win.in && n > 1; n = win.candidates.n {
		if win.candidates.back().mono != p.m || win.candidates.at(n-2).to < p.lo {
			return
		}
		win.candidates.n--
	}
}

// collapse makes one candidate of many, which may have the value of any of them: of
// the older half of those that wait, or of the window if that is longer.
func (e *Extents) collapse(win *window) {
	waiting := win.candidates.n - 1 - win.in
	first, end := win.in, win.in+max(2, waiting/2)
	if waiting < win.in {
		first, end = 0, min(win.in, win.candidates.n-1)
		win.in = 0
	}
	u := *win.candidates.at(first)
	for i := first; i < end; i++ {
		s := win.candidates.at(i)
		u.low, u.high, u.to = min(u.low, s.low), max(u.high, s.high), s.to
		if !s.unknown {
			e.stats.Collapsed++
		}
	}
	u.unknown = true
	*win.candidates.at(first) = u
	for i := end; i < win.candidates.n; i++ {
		*win.candidates.at(first + 1 + i - end) = *win.candidates.at(i)
	}
	win.candidates.n -= end - first - 1
}
