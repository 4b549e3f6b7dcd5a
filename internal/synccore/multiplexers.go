package synccore

import (
	"fmt"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/scgs"
)

// multiplexer is the synchronizer's record of a multiplexer: which members have said that it
// speaks for them, and which of them are on its roster.
type multiplexer struct {
	name    string
	number  int32 // in the detectors, from 1
	members int   // that have said so

	version  uint64    // of the roster that is used; 0: there is none
	listed   []*member // on it
	sum      uint64    // of the newest reports of those, each times its weight
	whole    bool      // the detectors know all of them, and nobody else, under its number
	incoming wire.Roster
	rosters  bool // it tells them

	heard  clocksync.Instant
	read   clocksync.Instant // the newest reading
	within clocksync.Interval
	at     clocksync.Stamp   // the newest evidence of all
	wanted clocksync.Instant // when the roster was last asked for
	probing
}

// probing is what evidence a member, or a multiplexer, was asked for.
type probing struct {
	probes    int               // out since the last evidence
	asked     clocksync.Instant // when the first of them went out
	probed    clocksync.Instant
	probedFor scgs.Need
	idle      bool          // the messages since the last of them were no newer than the evidence there
	pause     time.Duration // until that is repeated
}

// answeredBy takes note of newer evidence. Strictly, a probe is out until its answer is here: unasked
// evidence is no answer, and of two answers the one which came first is of the first probe.
func (a *probing) answeredBy(at *clocksync.Stamp, strictly bool) {
	n := &a.probedFor
	if a.idle = false; strictly && (at.Mono <= n.AfterMono || n.AfterTime != clocksync.MinInstant && at.Within.Earliest <= n.AfterTime) {
		a.probes = min(a.probes, 1)
		return
	}
	a.probes = 0
}

// due reports whether the last probe is to be repeated. An answer without news makes the pause
// longer, or two processes with one name would be asked without end.
func (a *probing) due(now clocksync.Instant, longest time.Duration) bool {
	if now.Sub(a.probed) < a.pause {
		return false
	}
	if a.idle {
		a.idle, a.pause = false, max(a.pause, min(2*a.pause, longest))
	}
	return true
}

// rosterAgain is the least time between two requests for one roster.
const rosterAgain = resendWait / 10

// speaksFor is the multiplexer that a member names in its hello.
func (r *membership) speaksFor(m *member, name string) {
	if m.multiplexer != nil && m.multiplexer.name == name || m.multiplexer == nil && name == "" {
		return
	}
	r.detachMember(m)
	if name == "" {
		return
	}
	x := r.multiplexers.byName[name]
	if x == nil {
		x = &multiplexer{name: name, heard: clocksync.MinInstant, read: clocksync.MinInstant, wanted: clocksync.MinInstant}
		r.number(x)
		r.multiplexers.byName[name] = x
	}
	x.members++
	m.multiplexer = x
}

// number gives a multiplexer the lowest number that none has. Numbers of those that are
// forgotten are used again, as the detectors keep a number no longer than an epoch.
func (r *membership) number(x *multiplexer) {
	n := slices.Index(r.multiplexers.numbered, nil)
	if n < 0 {
		n = len(r.multiplexers.numbered)
		r.multiplexers.numbered = append(r.multiplexers.numbered, nil)
	}
	r.multiplexers.numbered[n], x.number = x, int32(n+1) //nolint:gosec // At most as many as members are known.
}

// detachMember takes a member away from the multiplexer that has spoken for it.
func (r *membership) detachMember(m *member) {
	x := m.multiplexer
	if x == nil {
		return
	}
	r.unlistMember(m)
	m.multiplexer = nil
	if x.members--; x.members == 0 {
		delete(r.multiplexers.byName, x.name)
		r.multiplexers.numbered[x.number-1] = nil
	}
}

// unlistMember takes a member off a roster, which is of no use then: its sum has the member.
func (r *membership) unlistMember(m *member) {
	if !m.listed {
		return
	}
	x := m.multiplexer
	for _, o := range x.listed {
		o.heard, o.listed = o.lastHeard(), false
	}
	x.listed, x.version, x.whole, x.at = x.listed[:0], 0, false, clocksync.Stamp{}
}

// checkMultiplexer checks that a multiplexer which brings a frame speaks for its member.
func (c *Core) checkMultiplexer(in *Input, out *Output) bool {
	m := c.members[in.From]
	switch {
	case in.Kind == InHello:
		if wire.Multiplexes(in.By, in.From) {
			return true
		}
		out.addRefusal(monitor.RejectSender, in.By, fmt.Sprintf("it brings the hello of %q, which has to come from that itself", in.From))
		return false
	case m != nil && m.multiplexer != nil && m.multiplexer.name == in.By:
		m.multiplexer.heard = c.now
		return true
	case m == nil:
		c.introduceBy(in.By, in.From, m, 0, out)
		return false
	case in.Kind == InBatch && in.Batch.Incarnation < m.incarnation:
		told := len(out.Welcomes)
		if c.tellReplaced(m, in.Batch.Incarnation, out); len(out.Welcomes) > told {
			out.Welcomes[told].Via = in.By
		}
		return false
	}
	// If it is here, its hello with the name of the multiplexer may have been lost.
	if c.introduceBy(in.By, in.From, m, m.incarnation, out) && !m.gone {
		out.addRefusal(monitor.RejectSender, in.By, fmt.Sprintf("it does not speak for %q, which has not said so yet", in.From))
	}
	return false
}

// introduceBy is introduce for a member that a multiplexer brings or names. It reports whether
// the member receives something now.
func (c *Core) introduceBy(multiplexer, name string, m *member, incarnation uint64, out *Output) bool {
	told := len(out.Welcomes)
	c.askHello(name, m, incarnation, out)
	if len(out.Welcomes) == told {
		return false
	}
	out.Welcomes[told].Via = multiplexer
	return true
}

// takeHeld takes what a multiplexer says of all its members.
func (c *Core) takeHeld(from string, b *wire.Bundle, out *Output) {
	x := c.multiplexers.byName[from]
	if x == nil {
		if !c.toldLately(from) {
			out.addRefusal(monitor.RejectSender, from, "evidence of members, none of which has said that it speaks for them")
		} else {
			out.Unproven++
		}
		for i := range b.Listed { // What they said may have been lost.
			c.introduceBy(from, b.Listed[i].Member, c.members[b.Listed[i].Member], b.Listed[i].Incarnation, out)
		}
		return
	}
	x.heard = c.now
	if b.Version > 0 {
		c.rosterOf(x, &b.Roster, out)
	}
	if b.Of > 0 {
		c.heldBy(x, &b.Held, out)
	}
}

// rosterOf puts a roster together and then goes by it.
func (c *Core) rosterOf(x *multiplexer, piece *wire.Roster, out *Output) {
	in := &x.incoming
	x.rosters = true
	if piece.First == 0 {
		in.Version, in.Total, in.Listed = piece.Version, piece.Total, in.Listed[:0]
	}
	if piece.Version != in.Version || piece.Total != in.Total || piece.First != uint64(len(in.Listed)) || in.Total > uint64(x.members) {
		in.Listed = in.Listed[:0]
		if piece.Total > uint64(x.members) { //nolint:gosec // A count.
			out.Unproven++
			c.strange(x, piece.Listed, out)
		}
		return
	}
	for i := range piece.Listed {
		l := piece.Listed[i]
		l.Regions = slices.Clone(l.Regions)
		in.Listed = append(in.Listed, l)
	}
	if uint64(len(in.Listed)) < in.Total {
		return
	}
	c.enlist(x, in, out)
	in.Listed = in.Listed[:0]
}

// strange asks those on a roster that are not known by it for a hello.
func (c *Core) strange(x *multiplexer, listed []wire.Listed, out *Output) {
	for i := range listed {
		l := &listed[i]
		if m := c.members[l.Member]; m == nil || m.multiplexer != x || m.gone || m.incarnation < l.Incarnation {
			c.introduceBy(x.name, l.Member, m, l.Incarnation, out)
		}
	}
}

// enlist goes by a roster from now on, if every member on it is known. What of their
// reports is missing is asked for.
func (c *Core) enlist(x *multiplexer, in *wire.Roster, out *Output) {
	for _, m := range x.listed {
		m.heard, m.listed = m.lastHeard(), false
	}
	x.listed, x.version, x.whole = x.listed[:0], 0, false
	known := true
	for i := range in.Listed {
		l := &in.Listed[i]
		m := c.members[l.Member]
		if m == nil || m.gone || m.multiplexer != x || m.incarnation != l.Incarnation || m.listed || len(x.listed) > 0 && m.domain != x.listed[0].domain {
			known = false
			continue
		}
		m.heard, m.listed = c.now, true
		m.regions = append(m.regions[:0], l.Regions...)
		c.reports.regions.Note("", l.Regions)
		x.listed = append(x.listed, m)
		if l.Seq > m.last {
			c.askReports(m, l.Seq)
		}
	}
	if !known {
		for _, m := range x.listed {
			m.listed = false
		}
		x.listed = x.listed[:0]
		c.strange(x, in.Listed, out)
		return
	}
	x.version, x.at, x.sum = in.Version, clocksync.Stamp{}, 0
	for _, m := range x.listed {
		x.sum += m.last * m.weight
	}
	c.coverRoster(x)
}

// coverRoster looks whether the detectors know the members on a roster, and nobody else, under
// its number.
func (r *membership) coverRoster(x *multiplexer) {
	there := 0
	for _, m := range r.inEpoch {
		if m.number == x.number {
			there++
		}
	}
	for _, m := range x.listed {
		switch {
		case m.hasAside():
			x.whole = false
			return
		case m.index == noIndex:
		case m.number != x.number || m.astray:
			x.whole = false
			return
		default:
			there--
		}
	}
	x.whole = there == 0
}

// heldBy takes evidence of all members on a roster. It counts if their reports are all
// here.
func (c *Core) heldBy(x *multiplexer, h *wire.Held, out *Output) {
	if h.Of != x.version || len(x.listed) == 0 || h.Sum != x.sum {
		c.wantRoster(x, out)
		return
	}
	at := h.At
	first := x.listed[0]
	first.ownStamp(&at)
	if !c.timeStamp(first, &at, out) {
		return
	}
	if at.Mono > x.read {
		x.read = at.Mono
		x.answeredBy(&at, c.ondemand.hasFew())
	}
	x.within, x.at = at.Within, at
	if x.whole {
		c.det.Held(x.number, at)
		for _, w := range c.runs {
			w.in.Held(x.number, at)
		}
		return
	}
	for _, m := range x.listed {
		if m.index != noIndex {
			m.astray = c.showEvidence(m, m.last, at) != scgs.Accepted && m.astray
		} else {
			c.beginAside(m, &at, out)
		}
	}
}

// reachReport takes note that the member's reports up to one are taken in.
func (m *member) reachReport(seq uint64) {
	if m.listed {
		m.multiplexer.sum += (seq - m.last) * m.weight
	}
	if seq > m.last+1 && m.last > 0 {
		m.losses.addLoss(seq - m.last - 1)
	}
	m.last = seq
}

// losses are the lost states of a member, through all its incarnations.
type losses struct{ gaps, states uint64 }

func (l *losses) addLoss(states uint64) { l.gaps, l.states = l.gaps+1, l.states+states }

// wantRoster asks a multiplexer for its roster.
func (c *Core) wantRoster(x *multiplexer, out *Output) {
	if x.wanted != clocksync.MinInstant && c.now.Sub(x.wanted) < rosterAgain {
		return
	}
	x.wanted = c.now
	out.Probes = append(out.Probes, wire.Addressed[wire.Probe]{To: x.name, Msg: wire.Probe{AfterMono: clocksync.MinInstant, AfterTime: clocksync.MinInstant}})
}

// lastHeard is when something was heard of a member.
func (m *member) lastHeard() clocksync.Instant {
	if m.listed {
		return max(m.heard, m.multiplexer.heard)
	}
	return m.heard
}

// lastRead is the newest reading of a member's clock.
func (m *member) lastRead() clocksync.Instant {
	if m.listed {
		return max(m.read, m.multiplexer.read)
	}
	return m.read
}

// probingOf is what evidence a member was asked for, or who speaks for it.
func (m *member) probingOf() *probing {
	if m.listed {
		return &m.multiplexer.probing
	}
	return &m.probing
}
