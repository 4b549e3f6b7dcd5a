package scgs

import "github.com/gopegasus/pegasus/clocksync"

// group is a member that is a group of members with a detector of its own. Its
// tuples are states that hold, by row, from the latest start of their parts to
// the least end. Unlike a plain member's they do not follow each other without a
// break, and their ends become known row by row.
type group struct {
	rows               []inward
	starts             []bracket // of the queued states, one for each row and place in the queue's ring
	run, number, index uint64    // of the newest summary, and tuple
	from               clocksync.Instant
}

// inward is a row of a group's summaries.
type inward struct {
	name         clocksync.Domain
	domain, leaf int32 // in Detector.domains, and that one's tree
	start        point // no tuple to come starts before it; hi is finite
	held         Ends  // of the states that the group looks at
}

// bracket is a row of a queued state: its start, and the least ends of the parts that the group
// has left. The other parts still are among the states that the group looks at, or were
// followed by them, and hold at least as long as that row says. Both together are how long the
// state holds, exactly.
type bracket struct {
	m, hi clocksync.Instant
	ended Ends
}

// rowAt returns a row of a queued state.
func (g *group) rowAt(q *queue, i int32, row int) *bracket {
	return &g.starts[(int(q.head+i)&(len(q.slots)-1))*len(g.rows)+row]
}

// Summary reports the result of a group, as [Detector.Summarize] of its detector put it. The
// member must have joined as a group. Summaries arrive in order; a gap in their numbers ends
// the earlier tuples at their newest evidence, and a new run discards undecided tuples. The ref
// belongs to the opened tuple; it stays with the caller if the summary is not accepted or opens
// none.
//
// Between two tuples a group has no state, also no UNKNOWN state: no tuple is delivered without
// it, not even a partial one. Groups are no members under Possibly.
func (d *Detector) Summary(m Member, s *Summary, ref Ref) Reason {
	mb := d.findMember(m)
	switch {
	case mb == nil:
		return d.countRefusal(NoMember)
	case mb.group == nil || d.modality == Possibly:
		return d.countRefusal(Unfit)
	}
	g := mb.group
	if why := g.admit(&mb.queue, s); why != Accepted {
		return d.countRefusal(why)
	}
	switch {
	case s.Run != g.run:
		d.regroup(m, mb, s)
	case s.Number != g.number+1:
		d.stats.Gaps++
		d.giveUp(m, mb)
	}
	g.number, g.from = s.Number, s.From
	for i := range s.Rows {
		left := d.leave(mb, i, s.Rows[i].Ended)
		if g.rows[i].take(&s.Rows[i]) || left {
			d.refreshRow(m, mb, i)
		}
	}
	if s.Index == 0 {
		d.stats.Evidence++
	} else {
		d.stats.States++
		d.pushTuple(m, mb, s, ref)
	}
	if mb.queue.n == 0 {
		d.beginRows(mb)
	}
	return Accepted
}

// admit checks a summary against the earlier ones.
func (g *group) admit(q *queue, s *Summary) Reason {
	switch {
	case s.Run == 0 || s.Number == 0 || len(s.Rows) == 0:
		return Malformed
	case s.Run < g.run:
		return Stale
	case s.Run > g.run:
		return distinct(s.Rows)
	case s.Number <= g.number:
		return Duplicate
	case len(s.Rows) != len(g.rows) || s.Index != 0 && s.Index <= g.index:
		return Malformed
	case s.From < g.from:
		return Regress
	}
	for i := range s.Rows {
		in, r := &s.Rows[i], &g.rows[i]
		switch {
		case in.Domain != r.name:
			return Foreign
		case !in.event():
			return Malformed
		case in.StartMono < r.start.m || in.StartLatest < r.start.hi:
			return Regress
		}
		if q.n > 0 { // a state known to hold is not taken back
			least := g.rowAt(q, q.n-1, i).ended.leastOf(r.held)
			now := in.Ended.leastOf(in.Held)
			if now.Mono < least.Mono || now.Earliest < least.Earliest {
				return Regress
			}
		}
	}
	return Accepted
}

// event reports whether something can have happened as the row says.
func (r *Row) event() bool {
	return r.StartMono != clocksync.MaxInstant
}

// distinct reports whether each domain has one row.
func distinct(rows []Row) Reason {
	seen := make(map[clocksync.Domain]bool, len(rows))
	for i := range rows {
		if seen[rows[i].Domain] || !rows[i].event() {
			return Malformed
		}
		seen[rows[i].Domain] = true
	}
	return Accepted
}

// take puts a row of a summary in place of the one before it, and reports whether
// that changed how far the group's states hold.
func (r *inward) take(in *Row) bool {
	r.start.m = in.StartMono
	if in.StartLatest != clocksync.MaxInstant {
		r.start.hi = in.StartLatest
	}
	changed := r.held != in.Held
	r.held = in.Held
	return changed
}

// regroup begins a run of the group's summaries. What is queued from the one
// before is discarded: nothing says any longer how far it holds.
func (d *Detector) regroup(m Member, mb *member, s *Summary) {
	d.closeTuple()
	g, q := mb.group, &mb.queue
	for i := range q.n {
		d.releaseRef(q.at(i).ref)
		d.stats.Collapsed++
	}
	q.head, q.n = 0, 0
	*g = group{run: s.Run, from: clocksync.MinInstant, rows: make([]inward, len(s.Rows))}
	g.starts = make([]bracket, len(q.slots)*len(g.rows))
	for i := range g.rows {
		g.rows[i] = inward{name: s.Rows[i].Domain, start: unheard, held: Ends{clocksync.MinInstant, clocksync.MinInstant, clocksync.MaxInstant}}
	}
	d.delta.pops += 2 // no step leads across
	d.noteHead(m, mb)
	d.layoutDomains()
}

// leave takes note, here and for the level above, that the group has left local
// states that ended so. All queued states had them or earlier ones: the newest
// ones, whose ends are the latest, are looked at first. It reports whether there
// were any.
func (d *Detector) leave(mb *member, row int, e Ends) bool {
	if e == endless {
		return false
	}
	g, q := mb.group, &mb.queue
	for i := q.n - 1; i >= 0; i-- {
		b := g.rowAt(q, i, row)
		least := b.ended.leastOf(e)
		if least == b.ended {
			break
		}
		b.ended = least
	}
	if d.up != nil {
		d.up.noteLeft(d.domains[g.rows[row].domain].row, e)
	}
	return true
}

// leaveHead takes note for the level above that its head is advanced. What a
// group's head holds by states that the group still looks at will be told when it
// leaves those.
func (d *Detector) leaveHead(mb *member, s *state) {
	switch g := mb.group; {
	case g != nil:
		for i := range g.rows {
			d.up.noteLeft(d.domains[g.rows[i].domain].row, g.rowAt(&mb.queue, 0, i).ended)
		}
	case s.sort == known:
		d.up.noteLeft(d.domains[mb.domain].row, Ends{s.end.m, s.end.lo, s.end.hi})
	}
}

// pushTuple queues the tuple that the summary opens.
func (d *Detector) pushTuple(m Member, mb *member, s *Summary, ref Ref) {
	g, q := mb.group, &mb.queue
	follows := s.Step && g.index != 0 && s.Index == g.index+1
	g.index = s.Index
	if int(q.n) == len(q.slots) {
		g.grow(q)
	}
	first := q.n == 0
	if first {
		d.uncountHead(mb)
		if follows && d.delta.pops == 1 && mb.dirty {
			d.delta.joined = true // the last pop was of the tuple before it
		}
	}
	st := state{seq: s.Index, ref: ref, joined: follows}
	st.start = point{clocksync.MinInstant, s.From, clocksync.MinInstant}
	for i := range s.Rows {
		st.start.hi = max(st.start.hi, s.Rows[i].StartLatest)
	}
	*q.push() = st
	for i := range s.Rows {
		*g.rowAt(q, q.n-1, i) = bracket{s.Rows[i].StartMono, s.Rows[i].StartLatest, endless}
	}
	switch n := q.n; {
	case first:
		d.countHead(mb)
		d.refreshRows(m, mb)
	case int(n)-2 > d.maxPending:
		d.shed(mb, max(2, (n-2)/2))
	}
}

// grow makes room for more states and their rows.
func (g *group) grow(q *queue) {
	starts := make([]bracket, 0, max(2, 2*len(q.slots))*len(g.rows))
	for i := range q.n {
		for row := range g.rows {
			starts = append(starts, *g.rowAt(q, i, row))
		}
	}
	q.grow()
	g.starts = starts[:cap(starts)]
}

// shed drops the n oldest tuples behind the head. That only removes
// candidates.
func (d *Detector) shed(mb *member, n int32) {
	g, q := mb.group, &mb.queue
	for i := range n {
		d.releaseRef(q.at(1 + i).ref)
		d.stats.Collapsed++
	}
	*q.at(n) = *q.front()
	for row := range g.rows {
		*g.rowAt(q, n, row) = *g.rowAt(q, 0, row)
	}
	q.head = (q.head + n) & int32(len(q.slots)-1)
	q.n -= n
	q.at(1).joined = false
}

// giveUp ends all that a group has told at its newest evidence.
func (d *Detector) giveUp(m Member, mb *member) {
	for i := range mb.group.rows {
		d.leave(mb, i, mb.group.rows[i].held)
		d.refreshRow(m, mb, i)
	}
}
