package synccore

import (
	"fmt"
	"math"
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/scgs"
)

// takeBatch takes in a batch of a member.
func (c *Core) takeBatch(from string, b *wire.Batch, out *Output) {
	m := c.findSender(from, b.Member, b.Incarnation, out)
	if m == nil {
		return
	}
	if b.Tagged {
		c.takeQuality(m, b.Quality, out)
	}
	for i := c.inOrder(m, b.Reports, out); i < len(b.Reports); i++ {
		r := &b.Reports[i]
		if r.Seq <= m.last {
			continue // a duplicate
		}
		at := r.At
		m.ownStamp(&at)
		switch {
		case c.timeStamp(m, &at, out):
			m.within.Earliest, m.within.Latest = at.Within.Earliest, at.Within.Latest
			c.takeReport(m, r, &at, out)
		case !ahead(m, r.Seq):
			c.lose(m, r.Seq)
			setAside(m, r)
			c.takeStashed(m, out)
		}
	}
	if !b.Again && !slices.Equal(m.regions, b.Regions) {
		m.regions = append(m.regions[:0], b.Regions...)
		c.reports.regions.Note("", b.Regions)
	}
	if b.Evidence.Seq > 0 {
		c.evidence(m, b.Evidence, out)
	}
	if b.Leaving {
		c.removeMember(m, whyLeft)
	}
}

// inOrder takes in the first reports of a batch as long as each is the member's next one and
// begins a state that can be handed to the detector at once. It returns how many those are: it
// does with them what report does, and looks once at the parts that are the same for all of
// them.
func (c *Core) inOrder(m *member, reports []wire.Report, out *Output) int {
	if c.general || m.index == noIndex || m.behind() || m.late.Seq > m.last {
		return 0
	}
	exact, state := m.shared == nil && c.readsReference(m), c.plan.State
	asIs := m.shared == nil && (m.quality.Timeline != "" || c.opt.Timeline == "")
	for i := range reports {
		r := &reports[i]
		at := r.At
		m.ownStamp(&at)
		if r.Seq != m.last+1 || r.End || at.Domain != m.domain || !at.Within.Valid() || !c.plain(r.Row) && state.Accepts(r.Row) != nil {
			return i
		}
		switch {
		case exact:
			at.Within = clocksync.Exactly(at.Mono)
		case asIs || c.timeStamp(m, &at, out):
		default:
			c.lose(m, r.Seq)
			continue
		}
		m.within.Earliest, m.within.Latest = at.Within.Earliest, at.Within.Latest
		c.hand(m, r, &at, out)
	}
	return len(reports)
}

// plain reports whether a row has numbers and conditions alone, as declared, one for each
// field: what the schema accepts most often.
func (r *membership) plain(row []scgs.Value) bool {
	if len(row) != len(r.reports.kinds) {
		return false
	}
	for i := range row {
		if row[i].Type() != r.reports.kinds[i] {
			return false
		}
	}
	return true
}

// kindsOf are the types of the fields whose values fit if they are of that type, and of the
// others a type that no value has.
func kindsOf(state scgs.Schema) []scgs.Type {
	kinds := make([]scgs.Type, len(state))
	for i, f := range state {
		kinds[i] = math.MaxUint8
		if f.Type >= scgs.Bool && f.Type <= scgs.Float || f.Type == scgs.Duration {
			kinds[i] = f.Type
		}
	}
	return kinds
}

// ownStamp gives a stamp without a clock domain the domain of its member.
func (m *member) ownStamp(at *clocksync.Stamp) {
	if at.Domain == "" {
		at.Domain = m.domain
	}
}

// findSender finds the member a frame comes from. A member that is not known under this
// incarnation is asked to introduce itself, or learns that it was dropped.
func (c *Core) findSender(from, member string, incarnation uint64, out *Output) *member {
	if member != from {
		out.addRefusal(monitor.RejectSender, from, fmt.Sprintf("a frame of %q on the subject of %q", member, from))
		return nil
	}
	m := c.member(from)
	if m != nil && incarnation < m.incarnation {
		why := fmt.Sprintf("a frame of incarnation %d, which incarnation %d has replaced", incarnation, m.incarnation)
		switch before := m.replaced; {
		case m.process == 0 || before.process == 0:
		case before.incarnation != incarnation:
			why = fmt.Sprintf("a frame of an earlier process, in whose place %v has joined", m.on())
		default:
			why = fmt.Sprintf("a frame of %v, in whose place %v has joined", before, m.on())
		}
		out.addRefusal(monitor.RejectReplaced, from, why)
		c.tellReplaced(m, incarnation, out)
		return nil
	}
	if m == nil || m.gone || incarnation > m.incarnation {
		c.askHello(from, m, incarnation, out)
		return nil
	}
	m.heard = c.now
	return m
}

// tellReplaced tells a process that a newer one has its name.
func (c *Core) tellReplaced(m *member, incarnation uint64, out *Output) {
	if c.toldLately(m.name + "#replaced") {
		return
	}
	w := c.addWelcome(m.name, incarnation, out)
	other := "another process"
	if m.process > 0 {
		other = m.on().String()
	}
	w.Refused, w.Reason = true, fmt.Sprintf("%s has joined as %q since: give one of them another name", other, m.name)
	w.Replaced = m.replaced.process > 0 && m.replaced.incarnation == incarnation
}

// askHello asks a sender for its hello, at most every resendWait.
func (c *Core) askHello(from string, m *member, incarnation uint64, out *Output) {
	if c.toldLately(from) {
		return
	}
	if m != nil && m.gone && incarnation == m.incarnation {
		c.dismissMember(from, m, out)
		return
	}
	c.addWelcome(from, incarnation, out)
}

// dismissMember tells an incarnation of a member that it is gone.
func (c *Core) dismissMember(from string, m *member, out *Output) {
	c.addWelcome(from, m.incarnation, out).Reason = m.why
}

// toldLately reports whether a sender received an answer within the last resendWait, and notes
// that it receives one now.
func (c *Core) toldLately(from string) bool {
	if asked, ok := c.strangers[from]; ok && c.now.Sub(asked) < resendWait {
		return true
	}
	if len(c.strangers) >= maxStrangers {
		clear(c.strangers)
	}
	c.strangers[from] = c.now
	return false
}

const maxStrangers = 4096

// takeReport takes one report at once, keeps it behind a gap, or refuses it. Its state began at
// the stamp at, which is r's stamp made comparable.
func (c *Core) takeReport(m *member, r *wire.Report, at *clocksync.Stamp, out *Output) {
	switch {
	case r.Seq <= m.last:
		return // a duplicate
	case ahead(m, r.Seq):
		c.stashReport(m, r, at, out)
	default:
		c.takeNext(m, r, at, out)
		c.takeStashed(m, out)
	}
}

// ahead reports whether reports before that one are missing. The first report of a member may
// have any number.
func ahead(m *member, seq uint64) bool {
	return seq > m.last+1 && seq > m.lost && (m.last > 0 || len(m.stash) > 0 || m.index != noIndex)
}

// lose takes note that the member's next report is here and of no use. It is not asked for
// again, and what it said is unknown: the detectors see the jump in the numbers with the
// next report or evidence.
func (c *Core) lose(m *member, seq uint64) {
	c.compare(m, seq)
	m.reachReport(seq)
	m.stray()
	c.rows.free(m.newest.ref)
	m.newest = newest{}
}

// compare counts the reports missing between two incarnations of a process.
func (r *membership) compare(m *member, seq uint64) {
	if m.last == 0 && m.before > 0 && seq > m.before+1 {
		r.between++
		m.losses.addLoss(seq - m.before - 1)
	}
}

// setAside keeps a report whose stamp is too old to be put in the order of its clock domain,
// of a member outside the epoch. Its state begins at the first stamp at which it still held
// ([Core.beginAside]): of that a detector knows nothing yet, so no state before it becomes longer.
func setAside(m *member, r *wire.Report) {
	if m.aside = (wire.Report{}); m.index == noIndex && !r.End {
		m.aside = *r
		m.aside.Row = slices.Clone(r.Row)
	}
}

// beginAside begins the state that was set aside at evidence of it.
func (c *Core) beginAside(m *member, at *clocksync.Stamp, out *Output) {
	if r := m.aside; m.hasAside() {
		m.aside = wire.Report{}
		r.At = *at
		c.takeNext(m, &r, at, out)
	}
}

// hasAside reports whether the newest report of a member was set aside.
func (m *member) hasAside() bool { return m.index == noIndex && m.aside.Seq == m.last && m.last > 0 }

// stray takes note that the detectors do not know the newest report of a member. Evidence
// of it would count for the state before, unless it comes with the report's number.
func (m *member) stray() {
	if m.astray = true; m.listed {
		m.multiplexer.whole = false
	}
}

// takeNext hands the next report to the detector, or keeps it until the member
// enters an epoch.
func (c *Core) takeNext(m *member, r *wire.Report, at *clocksync.Stamp, out *Output) {
	if err := c.valid(m, r, at); err != nil {
		out.addRefusal(monitor.RejectReport, m.name, err.Error())
		c.lose(m, r.Seq)
		return
	}
	if m.index == noIndex {
		m.noteTaken(r.Seq, c.now)
		c.keep(m, r, at)
		return
	}
	c.hand(m, r, at, out)
}

// noteTaken notes when the member's newest reports were taken in.
func (m *member) noteTaken(seq uint64, now clocksync.Instant) {
	if m.took != now || m.tookFrom == 0 {
		m.took, m.tookFrom = now, seq
	}
}

// hand hands the next report to the detectors.
func (c *Core) hand(m *member, r *wire.Report, at *clocksync.Stamp, out *Output) {
	m.noteTaken(r.Seq, c.now)
	var reason scgs.Reason
	if r.End {
		reason = c.det.End(m.index, r.Seq, *at)
	} else {
		ref := c.rows.put(r.Row)
		if reason = c.det.Start(m.index, r.Seq, *at, ref); reason != scgs.Accepted {
			c.rows.free(ref)
		}
	}
	if reason == scgs.Accepted {
		c.taken++
	} else {
		out.addRefusal(monitor.RejectOrder, m.name, fmt.Sprintf("report %d at %v: %v", r.Seq, *at, reason))
		m.stray()
	}
	c.tellRuns(m, r, at, at)
	if c.planner != nil && !r.End && c.planner.Awaits(m.name) {
		c.scopeAlone(m, r.Row)
		c.planner.Reported(m.name, m.incarnation, r.Seq, c.local.scope)
	}
	m.reachReport(r.Seq)
	m.began, m.beganBy = at.Mono, at.Within.Latest
	c.ondemand.touchMember(m)
}

func (c *Core) valid(m *member, r *wire.Report, at *clocksync.Stamp) error {
	if at.Domain != m.domain {
		return fmt.Errorf("report %d: stamp of clock domain %q from a member of %q", r.Seq, at.Domain, m.domain)
	}
	if !at.Within.Valid() {
		return fmt.Errorf("report %d: stamp %v ends before it begins", r.Seq, *at)
	}
	if r.End || m == c.process {
		return nil
	}
	if err := c.plan.State.Accepts(r.Row); err != nil {
		return fmt.Errorf("report %d: %w", r.Seq, err)
	}
	return nil
}

// keep remembers the newest state of a member outside the epoch.
func (c *Core) keep(m *member, r *wire.Report, at *clocksync.Stamp) {
	c.rows.free(m.newest.ref)
	m.newest = newest{}
	c.compare(m, r.Seq)
	m.reachReport(r.Seq)
	m.began, m.beganBy = at.Mono, at.Within.Latest
	c.taken++
	if !r.End {
		m.newest = newest{known: true, ref: c.rows.put(r.Row), at: *at, alive: *at}
		c.changed = true
	}
}

// takeAlive is for agents of releases before: their multiplexers have no roster, and give evidence
// of each member.
func (c *Core) takeAlive(from string, alive []wire.Alive, out *Output) {
	for i := range alive {
		a := &alive[i]
		m := c.members[a.Member]
		if m == nil || m.gone || m.incarnation != a.Incarnation || m.multiplexer == nil || m.multiplexer.name != from {
			out.addRefusal(monitor.RejectSender, from, fmt.Sprintf("evidence of incarnation %d of %q, for which it does not speak", a.Incarnation, a.Member))
			continue
		}
		m.heard = c.now
		c.evidence(m, a.Evidence, out)
	}
}

// evidence takes a stamp at which a member's newest state still held.
func (c *Core) evidence(m *member, e wire.Evidence, out *Output) {
	m.ownStamp(&e.At)
	if !c.timeStamp(m, &e.At, out) {
		return
	}
	m.within = e.At.Within
	if e.Seq < m.last && e.At.Mono > m.began || e.Seq < m.late.Seq && e.At.Mono > m.late.At.Mono {
		told := len(out.Welcomes)
		if c.askHello(m.name, m, m.incarnation, out); len(out.Welcomes) > told {
			out.addRefusal(monitor.RejectSender, m.name, fmt.Sprintf("evidence that its state %d held when it had state %d already: another process may use its name", e.Seq, max(m.last, m.late.Seq)))
		}
		return
	}
	switch {
	case e.At.Mono > m.shown && (e.Seq == m.last || e.Seq > max(m.last, m.late.Seq)):
		m.shown = e.At.Mono
		m.answeredBy(&e.At, c.ondemand.hasFew())
	case !c.asksFor(m):
		m.idle = true
	}
	switch {
	case e.Seq > m.last:
		m.late = e
		c.askReports(m, e.Seq)
	case e.Seq != m.last:
	case m.index == noIndex:
		if c.beginAside(m, &e.At, out); m.newest.known {
			m.newest.alive = e.At
		}
	default:
		c.showEvidence(m, e.Seq, e.At)
	}
}

// evidenceOfAll takes one reading of the clock that all members share, under a
// lock that orders it with their reports. It says nothing of a member whose
// newest reports are behind a gap.
func (c *Core) evidenceOfAll(at clocksync.Stamp) {
	for _, m := range c.byIndex {
		if m != nil && m.index != noIndex && !m.behind() {
			c.showEvidence(m, m.last, at)
		}
	}
}

// processState takes a state of the process that hosts the threads.
func (c *Core) processState(at clocksync.Stamp, row []scgs.Value, out *Output) {
	if c.process == nil {
		c.process = &member{name: "process", domain: at.Domain, index: noIndex}
	}
	if err := c.plan.Process.Accepts(row); err != nil {
		out.addRefusal(monitor.RejectReport, "process", err.Error())
		c.lose(c.process, c.process.last+1)
		return
	}
	c.takeNext(c.process, &wire.Report{Seq: c.process.last + 1, Row: row}, &at, out)
}
