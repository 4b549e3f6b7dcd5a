package scgs

import "github.com/gopegasus/pegasus/clocksync"

// beginRows takes note that no later head of the group starts before its present
// one or, where it has none, before what it told last.
func (d *Detector) beginRows(mb *member) {
	g := mb.group
	for i := range g.rows {
		r := &g.rows[i]
		p := point{r.start.m, g.from, r.start.hi}
		if mb.queue.n > 0 {
			b := g.rowAt(&mb.queue, 0, i)
			p = point{b.m, mb.queue.front().start.lo, b.hi}
		}
		d.noteLaterStarts(r.domain, p)
		d.reviewReadings(r.domain)
		if d.up != nil {
			d.up.touchRow(d.domains[r.domain].row)
		}
	}
}

// refreshRows brings the trees up to date after the group's head changed.
func (d *Detector) refreshRows(m Member, mb *member) {
	for i := range mb.group.rows {
		d.refreshRow(m, mb, i)
	}
}

func (d *Detector) refreshRow(m Member, mb *member, row int) {
	r := &mb.group.rows[row]
	k := d.rowKey(m, mb, row)
	heads := d.domains[r.domain].heads
	if leaf := heads.changeLeaf(r.leaf); *leaf != k {
		*leaf = k
		heads.updateAbove(r.leaf)
		d.reviewDomain(r.domain)
	}
}

// held gives how far a row of the group's head holds, and whether its reading and
// its time are ends. Without a head it is what later ones hold at least.
//
// What the group looks at counts as evidence even where it has ended: as long as
// the group does not leave it, another of its states is not shown to last longer,
// so that no tuple with what follows is certain.
func (g *group) held(q *queue, row int) (e Ends, mono, time bool) {
	held := g.rows[row].held
	if q.n == 0 {
		return held, false, false
	}
	ended := g.rowAt(q, 0, row).ended
	mono = ended.Mono <= held.Mono && ended.Mono != clocksync.MaxInstant
	time = ended.Earliest <= held.Earliest && ended.Earliest != clocksync.MaxInstant
	return ended.leastOf(held), mono, time
}

// rowKey is the leaf of a row of the group's head. The row is closed if both its
// ends are; each of them refutes by itself. A group without a head has the leaf
// all the same, as its members' states are still part of what was told above.
func (d *Detector) rowKey(m Member, mb *member, row int) node {
	e, mono, time := mb.group.held(&mb.queue, row)
	k := absent
	k.m, k.lo, k.repLo, k.chi, k.rep = e.Mono, e.Earliest, e.Earliest, e.Latest, int32(m)
	if mono {
		k.cm, k.deadM = e.Mono, int32(m)
	}
	if time {
		k.clo, k.deadLo = e.Earliest, int32(m)
		if d.isUnbounded(mb.queue.front()) && d.isMulti() {
			k.clo = clocksync.MinInstant
		}
	}
	k.repClosed = time && (mono || mb.group.rows[row].name == "")
	return k
}

// reachOf is when the group's head has ended, in a form for one clock.
func (g *group) reachOf(q *queue) reach {
	to := reach{to: point{clocksync.MinInstant, clocksync.MaxInstant, clocksync.MaxInstant}}
	for i := range g.rows {
		e, _, _ := g.held(q, i)
		to.to.lo, to.to.hi = min(to.to.lo, e.Earliest), min(to.to.hi, e.Latest)
		if len(g.rows) == 1 && g.rows[i].name != "" {
			to.domain, to.to.m = g.rows[i].name, e.Mono
		}
	}
	if to.to.hi == clocksync.MaxInstant {
		to.to.hi = to.to.lo
	}
	return to
}

// partOf is the group's share in a tuple.
func (g *group) partOf(m Member, mb *member) Part {
	s, q := mb.queue.front(), &mb.queue
	p := Part{Member: m, Seq: s.seq, Ref: s.ref}
	p.Start.Within = clocksync.Interval{Earliest: s.start.lo, Latest: s.start.hi}
	ends, open := endless, false
	for i := range g.rows {
		e, mono, time := g.held(q, i)
		ends = ends.leastOf(e)
		open = open || !time || !mono && g.rows[i].name != ""
	}
	p.Open = open
	p.End.Within = clocksync.Interval{Earliest: ends.Earliest, Latest: ends.Latest}
	if len(g.rows) == 1 && g.rows[0].name != "" {
		p.Start.Domain, p.Start.Mono = g.rows[0].name, g.rowAt(q, 0, 0).m
		p.End.Domain, p.End.Mono = g.rows[0].name, ends.Mono
	}
	return p
}

// completeNeed completes a need of the group's row in a domain, and reports whether
// evidence can satisfy it.
func (g *group) completeNeed(n *Need, q *queue, domain int32, limit clocksync.Instant) bool {
	row := 0
	for g.rows[row].domain != domain {
		row++
	}
	e, mono, time := g.held(q, row)
	n.Seq = g.index
	n.Newest = clocksync.Stamp{
		Domain: g.rows[row].name, Mono: e.Mono,
		Within: clocksync.Interval{Earliest: e.Earliest, Latest: e.Latest},
	}
	return !mono && e.Mono <= n.AfterMono || !time && e.Earliest < limit
}
