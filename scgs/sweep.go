package scgs

import (
	"fmt"

	"github.com/gopegasus/pegasus/clocksync"
)

// Next advances to the next event, fills ev with it and returns true. It returns false if no
// more can be decided from the reports so far. The tuple of an event stays the detector's
// current tuple until the next call, except for a Closed caused by an epoch or a restart.
//
// It looks at one local state of each member, the heads. If all pairs of heads certainly
// overlap, they are a global state, and the head that ends first is advanced once its end is
// known. If a head certainly does not overlap with another head, it overlaps with no later
// state either and is advanced at once. So each local state is looked at once, and each global
// state found once, in order (a chain: Fromentin and Raynal 1994; Stoller 2000). The same holds
// of runs under Definitely. Tuples that possibly overlap are no chain: there Next finds a first
// tuple if there is any, and then the tuples that follow from advancing the run that can end
// first (the lower number, of two that can end equally late).
func (d *Detector) Next(ev *Event) bool {
	if d.hasClosing {
		d.closing.Changed = ev.Changed[:0]
		*ev, d.closing, d.hasClosing = d.closing, Event{}, false
		return true
	}
	return d.sweep(ev, false)
}

// Advance is Next for an owner that needs neither ends nor spans: it passes over each Closed
// and continues to the next Opened, fills ev with it and returns true. It returns false if no
// more can be decided. It does not set ev.Span. The omitted work costs more than the rest.
//
// It finds the same tuples as Next, and each call may be of either. A Closed that Advance has
// passed over is not reported later: [Detector.Current] says whether a tuple is open, and when
// it holds.
func (d *Detector) Advance(ev *Event) bool {
	if d.hasClosing {
		d.closing, d.hasClosing = Event{}, false
	}
	return d.sweep(ev, true)
}

// sweep advances to the next event or, if only starts are to be told, to the next
// Opened.
func (d *Detector) sweep(ev *Event, starts bool) bool {
	for {
		d.settleHead()
		switch what, j := d.next(); what {
		case waits:
			return false
		case refuted:
			if d.open {
				panic(fmt.Sprintf("scgs: member %d refuted in epoch %d within global state %d: %+v", j, d.epoch, d.index, *d.members[j].queue.front()))
			}
			d.pop(j)
		case opens:
			d.open = true
			d.makeBegin(ev)
			if !starts {
				d.sumUpHeads(&ev.Span)
			}
			return true
		case ends:
			d.advance = j
			if d.unknown > 0 {
				d.forced = d.followsAt(&d.members[j])
			}
			if !starts {
				d.makeEnd(ev)
				return true
			}
		}
	}
}

// verdict is what the heads make of the current tuple.
type verdict uint8

const (
	waits   verdict = iota // nothing can be told
	refuted                // a closed head certainly does not overlap with another one
	opens                  // the heads certainly overlap
	ends                   // of the open tuple one has ended before every other one
)

// next tells what comes next, and of which head.
func (d *Detector) next() (verdict, Member) {
	if d.one.on {
		return d.nextOneClock()
	}
	if j := d.refuted(); j != none {
		return refuted, j
	}
	switch {
	case d.missing > 0 || d.live == 0 || !d.certain():
		return waits, none
	case !d.open:
		return opens, none
	}
	if j := d.ending(); j != none {
		return ends, j
	}
	return waits, none
}

// settleHead advances the head whose end closed the tuple delivered last.
func (d *Detector) settleHead() {
	if j := d.advance; j != none {
		d.advance, d.open = none, false
		d.pop(j)
	}
}

// certain reports whether all pairs of heads certainly overlap: by readings
// inside each domain, by intervals between any two.
func (d *Detector) certain() bool {
	switch {
	case d.bad > 0:
		return false
	case !d.isMulti():
		return true
	case d.infinite > 0 && d.modality != Possibly:
		return false
	}
	lo := d.top.root().lo
	if d.top.root().rep == d.first.domain {
		lo, _, _ = d.top.leastBut(d.first.domain)
	}
	return d.first.hi < lo && d.second.hi < d.domains[d.first.domain].heads.root().lo
}

// refuted returns a closed head that certainly does not overlap with another
// head, or none.
func (d *Detector) refuted() Member {
	for n := len(d.dying); n > 0; n = len(d.dying) {
		dom := &d.domains[d.dying[n-1]]
		if r := dom.heads.root(); dom.maxM >= r.cm {
			return Member(r.deadM)
		}
		dom.dying = false
		d.dying = d.dying[:n-1]
	}
	if !d.isMulti() {
		return none
	}
	clo, dead := d.top.root().clo, d.top.root().deadLo
	if dead == d.first.domain {
		_, clo, dead = d.top.leastBut(dead)
	}
	own := d.domains[d.first.domain].heads.root()
	switch {
	case dead != int32(none) && d.first.hi >= clo:
		return Member(d.domains[dead].heads.root().deadLo)
	case own.deadLo != int32(none) && d.second.hi >= own.clo:
		return Member(own.deadLo)
	}
	return none
}

// ending returns the head of a certain tuple that ends before every other one,
// or none if that cannot be told yet.
func (d *Detector) ending() Member {
	h := d.top.root().rep
	if r := d.domains[h].heads.root(); r.repClosed {
		return Member(r.rep)
	}
	return none
}

// latestOutside is the latest hi(S) of the heads outside the domain.
func (d *Detector) latestOutside(domain int32) clocksync.Instant {
	if domain == d.first.domain {
		return d.second.hi
	}
	return d.first.hi
}

// pop advances the member to its next state.
func (d *Detector) pop(m Member) {
	if d.one.on {
		d.popOneClock(m)
		return
	}
	mb := &d.members[m]
	s := mb.queue.front()
	d.releaseRef(s.ref)
	if d.up != nil {
		d.leaveHead(mb, s)
	}
	d.uncountHead(mb)
	mb.queue.pop()
	d.delta.pops++
	d.delta.joined = mb.queue.n > 0 && mb.queue.front().joined
	d.noteHead(m, mb)
	if mb.queue.n > 0 && mb.queue.front().moved {
		d.fileMember(m, mb)
		return
	}
	d.countHead(mb)
	d.refreshTrees(m)
}

// fileMember files the member under the clock that it has moved to.
func (d *Detector) fileMember(m Member, mb *member) {
	mb.queue.front().moved = false
	p := &d.places[m]
	p.home, p.moves = p.moves[0], p.moves[1:]
	d.layoutDomains()
}

// noteHead takes note that the member has another head.
func (d *Detector) noteHead(m Member, mb *member) {
	if !mb.dirty {
		mb.dirty = true
		d.delta.members = append(d.delta.members, m)
	}
}
