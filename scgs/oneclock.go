package scgs

import (
	"fmt"

	"github.com/gopegasus/pegasus/clocksync"
)

// oneClock sums up the heads where all members are plain members in the same clock domain,
// under Inst and with no level above. There the global states are the merge of all members'
// events by reading: the heads are a global state if the latest start is before the least end
// of a closed head and before the least evidence of an open head, and the closed head that ends
// first is the next to be advanced. So only readings are looked at on the way, and only where a
// head changes. The detector keeps queues, counts and latest starts.
type oneClock struct {
	on    bool
	still bool // nothing that the sweep looks at has changed since it stood still
	ends  endings
	// shown is the newest evidence of open heads, by member, but for those that a
	// multiplexer speaks for.
	shown      least
	lines      []line          // one for each multiplexer
	byName     map[int32]int32 // their places
	linesShown least           // of each line the least evidence of an open head
	span       endSpan
}

// line is the evidence of a multiplexer, and the members that it speaks for. The evidence is
// not handed to each member at once: the evidence of an open state is the later of its own and
// the newest of the line.
type line struct {
	members []Member
	own     least // of open heads, by place among the members
	spoke   bool  // something was held since all was handed out
	// newest was held last. What was held since all was handed out does not go
	// back, neither the reading nor an end, and all of it had a finite Latest, or
	// nothing had.
	newest point
	count  uint64 // of what was held, from 1
}

// endSpan is what a span needs of the ends of heads. It is brought up to date when
// one is asked for, and left alone while none is.
type endSpan struct {
	valid bool
	stale []Member // whose heads have changed since
	lo    least    // ends and newest evidence, by member
	hi    least    // ends of closed heads
}

// hasOneClock reports whether only the readings of a single clock count.
func (d *Detector) hasOneClock() bool {
	if d.modality != Inst || d.up != nil || d.general {
		return false
	}
	var name clocksync.Domain
	for m := range d.members {
		if !d.members[m].alive {
			continue
		}
		home := d.places[m].home
		if d.members[m].group != nil || home == "" || name != "" && home != name {
			return false
		}
		name = home
	}
	return name != ""
}

// layoutOneClock files all members under one clock.
func (d *Detector) layoutOneClock() {
	o := &d.one
	*o = oneClock{
		on: true, ends: newEndings(d.live), shown: newLeast(len(d.members)),
		byName: make(map[int32]int32), span: endSpan{stale: o.span.stale[:0]},
	}
	for m := range d.members {
		if mb := &d.members[m]; mb.alive {
			d.domains = append(d.domains[:0], domain{name: d.places[m].home, maxM: clocksync.MinInstant, maxHi: clocksync.MinInstant})
			mb.domain = 0
			o.join(Member(m), mb, d.places[m].multiplexer)
		}
	}
	for i := range o.lines {
		o.lines[i].own = newLeast(len(o.lines[i].members))
	}
	o.linesShown = newLeast(len(o.lines))
	for m := range d.members {
		if mb := &d.members[m]; mb.alive {
			d.countHead(mb)
			d.enterOneClock(Member(m), mb)
		}
	}
}

// join gives a member its place in the line of its multiplexer.
func (o *oneClock) join(m Member, mb *member, multiplexer int32) {
	mb.line, mb.said, mb.stale = 0, 0, false
	if multiplexer <= 0 {
		return
	}
	i, known := o.byName[multiplexer]
	if !known {
		i = int32(len(o.lines))
		o.byName[multiplexer] = i
		o.lines = append(o.lines, line{})
	}
	l := &o.lines[i]
	mb.line, mb.leaf = i+1, int32(len(l.members))
	l.members = append(l.members, m)
}

// enterOneClock takes note of a member's new head, or that it has none.
func (d *Detector) enterOneClock(m Member, mb *member) {
	if mb.queue.n > 0 && mb.queue.front().closed {
		d.one.ends.pushEnding(ending{mb.queue.front().end.m, m})
		d.one.touch(m, mb)
		return
	}
	d.keyOneClock(m, mb)
}

// keyOneClock brings up to date how far a member's head has shown to hold while it
// is open.
func (d *Detector) keyOneClock(m Member, mb *member) {
	o := &d.one
	own, said := clocksync.MaxInstant, clocksync.MaxInstant
	if mb.queue.n > 0 {
		switch s := mb.queue.front(); {
		case s.closed || s.sort == fiat: // that one holds as long as it is needed
		case d.spokenFor(mb):
			said = s.end.m
		default:
			own = s.end.m
		}
	}
	o.shown.setLeaf(int32(m), own)
	if mb.line != 0 {
		d.keyLine(mb, said)
	}
	o.touch(m, mb)
}

// touch takes note that a member's head has changed.
func (o *oneClock) touch(m Member, mb *member) {
	o.still = false
	if o.span.valid {
		o.changed(m, mb)
	}
}

// spokenFor reports whether held evidence counts for the member's open state.
func (d *Detector) spokenFor(mb *member) bool {
	return mb.line != 0 && mb.seq != 0 && mb.clock == d.domains[0].name
}

// keyLine puts the evidence of a member's open head, that is its own, into its line.
func (d *Detector) keyLine(mb *member, own clocksync.Instant) {
	l := d.one.lineOf(mb)
	l.own.setLeaf(mb.leaf, own)
	if l.spoke && own < l.newest.m && mb.said == l.count {
		d.handOut(l) // it was not open then
		return
	}
	d.one.say(mb.line - 1)
}

// lineOf is the line that a member is in.
func (o *oneClock) lineOf(mb *member) *line { return &o.lines[mb.line-1] }

// say brings up to date how far a line's open heads have shown to hold.
func (o *oneClock) say(i int32) {
	l := &o.lines[i]
	shown := l.own.least()
	if l.spoke {
		shown = max(shown, l.newest.m)
	}
	o.linesShown.setLeaf(i, shown)
}

// evidence is the least evidence of an open head.
func (o *oneClock) evidence() clocksync.Instant { return min(o.shown.least(), o.linesShown.least()) }

// heardOf passes the evidence held since the last time to the member.
func (d *Detector) heardOf(mb *member) {
	if !d.one.on || mb.line == 0 {
		return
	}
	l := d.one.lineOf(mb)
	if mb.said == l.count {
		return
	}
	mb.said = l.count
	s := mb.queue.tail()
	if s == nil || s.sort == fiat || !d.spokenFor(mb) || l.newest.m < mb.last.m {
		return
	}
	p := mb.raisePoint(l.newest)
	mb.noteHeard(p)
	s.end = p
}

// handOut passes the held evidence to all members of a line.
func (d *Detector) handOut(l *line) {
	for _, m := range l.members {
		d.heardOf(&d.members[m])
	}
	l.spoke = false
	for _, m := range l.members {
		d.keyOneClock(m, &d.members[m])
	}
}

// heldOneClock is Held on one clock.
func (d *Detector) heldOneClock(multiplexer int32, at clocksync.Stamp) Reason {
	o := &d.one
	i, known := o.byName[multiplexer]
	if !known {
		return d.countRefusal(NoMember)
	}
	d.stats.Evidence++
	l, p := &o.lines[i], pointOf(at)
	usual := at.Domain == d.domains[0].name && (!l.spoke || p.m >= l.newest.m && p.lo >= l.newest.lo && p.hi >= l.newest.hi &&
		(p.hi == clocksync.MaxInstant) == (l.newest.hi == clocksync.MaxInstant))
	if !usual {
		d.handOut(l)
		for _, m := range l.members {
			d.takeEvidence(m, at)
		}
		return Accepted
	}
	l.newest, l.spoke = p, true
	l.count++
	o.still = false
	o.say(i)
	if o.span.valid {
		for _, m := range l.members {
			o.changed(m, &d.members[m])
		}
	}
	return Accepted
}

// nextOneClock is next on one clock.
func (d *Detector) nextOneClock() (verdict, Member) {
	o := &d.one
	if o.still {
		return waits, none
	}
	first, started := o.ends.firstEnding(), d.domains[0].maxM
	if first.at <= started && first.at != clocksync.MaxInstant {
		return refuted, first.member
	}
	shown := o.evidence()
	switch {
	case d.missing > 0 || shown <= started || first.at <= started:
	case !d.open:
		return opens, none
	case first.at > shown || first.at == clocksync.MaxInstant:
	case first.at < shown && !o.ends.isFirstShared():
		return ends, first.member
	default:
		if m := d.breakTie(first.at, first.at == shown); m != none {
			return ends, m
		}
	}
	o.still = true
	return waits, none
}

// breakTie returns, of the heads that end first at the same reading, the one with the
// least Earliest and, of these, the lowest number; none if an open one whose evidence
// has that reading too has a lesser Earliest, and so comes before. That is the order of
// the general way, whose tree goes by the same three.
//
// Of two that are equal in reading and Earliest, what follows the first begins no earlier
// than the other ends, which is refuted next. So the number only shows in the order in
// which handles are released, and where an epoch removes the first before Next has been
// called again.
func (d *Detector) breakTie(at clocksync.Instant, evidence bool) Member {
	first, earliest := none, clocksync.MaxInstant
	d.scratch = d.one.ends.appendTied(d.scratch[:0], top)
	for _, k := range d.scratch {
		m := d.one.ends.heap[k].member
		if lo := d.members[m].queue.front().end.lo; first == none || lo < earliest || lo == earliest && m < first {
			first, earliest = m, lo
		}
	}
	if evidence {
		d.scratch = d.lackingOneClock(d.scratch[:0], at)
		for _, m := range d.scratch {
			if d.members[m].queue.front().end.lo < earliest {
				return none
			}
		}
	}
	return first
}

// lackingOneClock appends the open heads with evidence of no more than a reading.
func (d *Detector) lackingOneClock(dst []int32, mono clocksync.Instant) []int32 {
	o := &d.one
	dst = o.shown.upTo(dst, mono)
	from := len(dst)
	dst = o.linesShown.upTo(dst, mono)
	lines := len(dst)
	for _, i := range dst[from:lines] {
		l := &o.lines[i]
		of := len(dst)
		dst = l.own.upTo(dst, mono)
		for k, place := range dst[of:] {
			dst[of+k] = int32(l.members[place])
		}
	}
	dst = append(dst[:from], dst[lines:]...)
	for _, m := range dst {
		d.heardOf(&d.members[m])
	}
	return dst
}

// changed takes note that a member's head has changed, for the next span. Where
// none is asked for while many change it ends that.
func (o *oneClock) changed(m Member, mb *member) {
	if mb.stale {
		return
	}
	s := &o.span
	if len(s.stale) > 16+len(s.lo.keys)/8 {
		s.valid = false
		return
	}
	mb.stale = true
	s.stale = append(s.stale, m)
}

// endsOneClock gives the least Earliest of the heads' ends and newest evidence, and
// the least Latest of the ends of closed heads.
func (d *Detector) endsOneClock() (lo, hi clocksync.Instant) {
	s := &d.one.span
	if !s.valid {
		s.valid, s.stale = true, s.stale[:0]
		s.lo, s.hi = newLeast(len(d.members)), newLeast(len(d.members))
		for m := range d.members {
			s.stale = append(s.stale, Member(m))
		}
	}
	for _, m := range s.stale {
		mb := &d.members[m]
		mb.stale = false
		lo, hi := clocksync.MaxInstant, clocksync.MaxInstant
		if mb.queue.n > 0 {
			d.heardOf(mb)
			h := mb.queue.front()
			lo = h.endBound().lo
			if h.closed {
				hi = h.end.hi
			}
		}
		s.lo.setLeaf(int32(m), lo)
		s.hi.setLeaf(int32(m), hi)
	}
	s.stale = s.stale[:0]
	return s.lo.least(), s.hi.least()
}

// spanOneClock is span on one clock.
func (d *Detector) spanOneClock(s *Span) {
	s.CoreFrom, s.EnvelopeFrom = d.first.hi, d.maxLo
	s.CoreTo, s.EnvelopeTo = d.endsOneClock()
	s.HasCore = d.infinite == 0 && s.CoreFrom < s.CoreTo && s.CoreFrom.Finite() && s.CoreTo.Finite()
	if !s.HasCore {
		s.CoreFrom, s.CoreTo = 0, 0
	}
	dom := &d.domains[0]
	s.SameClock, s.Domain, s.MonoFrom = true, dom.name, dom.maxM
	s.MonoTo = min(d.one.ends.firstEnding().at, d.one.evidence())
}

// placeOf finds the place of a head that is one of those that end first.
func (d *Detector) placeOf(m Member) int {
	d.scratch = d.one.ends.appendTied(d.scratch[:0], top)
	for _, k := range d.scratch {
		if d.one.ends.heap[k].member == m {
			return int(k)
		}
	}
	panic(fmt.Sprintf("scgs: member %d is advanced in epoch %d, and %d ends first", m, d.epoch, d.one.ends.firstEnding().member))
}

// popOneClock is pop on one clock, of one of the heads that end first.
func (d *Detector) popOneClock(m Member) {
	mb, o := &d.members[m], &d.one
	k := top
	if o.ends.firstEnding().member != m {
		k = d.placeOf(m)
	}
	q := &mb.queue
	s := q.front()
	d.releaseRef(s.ref)
	if s.sort != known || s.start.hi == clocksync.MaxInstant {
		d.uncountHead(mb)
	}
	q.pop()
	d.delta.pops++
	d.delta.joined = false
	d.noteHead(m, mb)
	if q.n == 0 {
		o.ends.popEnding(k)
		d.countHead(mb)
		d.keyOneClock(m, mb)
		return
	}
	s = q.front()
	d.delta.joined = s.joined
	switch dom, at := &d.domains[0], &s.start; {
	case s.moved:
		d.fileMember(m, mb)
		return
	case s.sort != known || at.hi == clocksync.MaxInstant:
		d.countHead(mb)
	default: // enter, where nothing is to be counted
		dom.maxM, d.maxLo, dom.maxHi = max(dom.maxM, at.m), max(d.maxLo, at.lo), max(dom.maxHi, at.hi)
		d.first.hi = dom.maxHi
	}
	if s.closed {
		o.ends.replaceEnding(k, ending{s.end.m, m})
		o.touch(m, mb)
		return
	}
	o.ends.popEnding(k)
	d.keyOneClock(m, mb)
}
