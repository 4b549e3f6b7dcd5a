package synccore

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// noIndex is the detector number of a member that is not in the epoch.
const noIndex scgs.Member = -1

// whyLeft is why a member is gone that said so.
const whyLeft = "left"

// member is one participant as the synchronizer knows it.
type member struct {
	name, host  string
	multiplexer *multiplexer // of its process; nil: it has none
	listed      bool         // it is on that one's roster
	weight      uint64       // of its reports in the sum of that, and of its state in [judgement].heads
	causes      bool         // it takes signals with a cause
	over        bool         // it takes signals that are over
	common      bool         // it answers a probe of its clock domain
	obeys       uint64       // the term that it has last said to have taken
	greeted     uint64       // the term in which it has said hello last
	number      int32        // of the multiplexer, by which the detectors know it; 0: none
	astray      bool         // the detector does not know its newest report
	incarnation uint64
	process     uint64 // its number on its host; 0: not known
	replaced    lifeOn // the process that had the name before, if that did not say that it leaves
	life        uint64 // the first incarnation of its process
	domain      clocksync.Domain
	quality     clocksync.Quality
	stripped    bool              // a bound without a timeline was left out
	shared      *clockOrder       // whose stamps are put in order; nil if there is nothing to
	read        clocksync.Instant // the newest reading, of a member with a shared domain
	heard       clocksync.Instant
	gone        bool   // left or dropped; a stranger until it says hello again
	why         string // why it is gone
	waits       waiting

	index scgs.Member       // in the detector, noIndex outside the epoch
	pos   int               // in the scope
	last  uint64            // the newest report taken in
	began clocksync.Instant // the reading with that
	// beganBy is the latest time of that stamp.
	beganBy clocksync.Instant
	shown   clocksync.Instant // the newest reading at which it still held
	// The step that the newest reports were taken in by, and the first of them.
	took     clocksync.Instant
	tookFrom uint64
	within   clocksync.Interval // of the newest stamp
	// Outside the epoch only the newest state is kept, until the member joins.
	newest newest
	aside  wire.Report // its newest report, if that could not be taken in: see setAside
	lacked
	flighty
	before  uint64 // the newest report taken in of the incarnations of its process before; 0: none is known
	losses  losses
	late    wire.Evidence // of a state behind the gap
	regions []wire.Region
	state   scgs.Change // in the current tuple
	share   uint64      // of that in [judgement].heads
	same    wire.Same   // the last state of it that began again
	joined  uint64      // the epoch that it entered with
	was     uint64      // the number of its state in the last tuple of earlier epochs; 0: it was in none
	probing
}

// lifeOn is a life of a member as people find it.
type lifeOn struct {
	host        string
	process     uint64 // 0: none is known
	incarnation uint64
}

// String names the process.
func (l lifeOn) String() string { return fmt.Sprintf("process %d on host %q", l.process, l.host) }

// on is the life of the member that is here.
func (m *member) on() lifeOn { return lifeOn{m.host, m.process, m.incarnation} }

// by reports whether another process than the member's says hello, as far as both are known.
func (m *member) by(h *wire.Hello) bool {
	return m.process > 0 && h.Process > 0 && (m.process != h.Process || m.host != h.Host)
}

// waiting is a life of a member that was refused because a newer incarnation holds the name. Only
// the last refused life is kept.
type waiting struct {
	incarnation uint64 // 0: nobody waits
	via         string // the multiplexer of that life, or empty
}

// newest is a state that waits for its member to enter an epoch.
type newest struct {
	known bool
	ref   scgs.Ref
	at    clocksync.Stamp
	alive clocksync.Stamp // evidence, if it is later
}

// isReady reports whether the member can enter an epoch: it is there and has a
// state.
func (m *member) isReady() bool { return !m.gone && m.index == noIndex && m.newest.known }

// takeHello takes a member in, or says why not.
func (c *Core) takeHello(from string, h *wire.Hello, out *Output) {
	if h.Member != from {
		out.addRefusal(monitor.RejectSender, from, fmt.Sprintf("hello of %q on the subject of %q", h.Member, from))
		return
	}
	m := c.members[from]
	if m != nil && m.gone && h.Incarnation == m.incarnation {
		c.dismissMember(from, m, out) // Whoever says hello gets an answer, or its next one comes late.
		return
	}
	reference, timeline := c.opt.Reference, c.opt.Timeline
	if !c.opt.Relative {
		reference, timeline = "", "" // No member could measure itself against it.
	}
	if class, reason := c.unwelcome(m, h); reason != "" {
		out.addRefusal(class, from, reason)
		if class == monitor.RejectState && m != nil && (m.gone || m.incarnation == h.Incarnation) {
			c.removeMember(m, reason) // It was taken in before it said which type its state has.
			m.heard = c.now
		}
		w := c.addWelcome(from, h.Incarnation, out)
		w.Refused, w.Reason, w.Timeline = true, reason, timeline
		switch {
		case class != monitor.RejectReplaced:
		case m.gone || h.Term == 0: // It continues at once.
			// A new life, whose clock may be behind, goes above. An incarnation that was taken in
			// before, and replaced, waits for the other to be gone: so two living processes do not
			// contend for the name.
			w.NextSeq = m.incarnation
		default:
			m.waits = waiting{h.Incarnation, h.Multiplexer}
			w.Replaced = h.Process > 0
		}
		out.Welcomes[len(out.Welcomes)-1].Via = h.Multiplexer // Another one may speak for the member that is here.
		return
	}
	if h.Quality.Status == clocksync.Untrusted && !c.retold && (m == nil || h.Incarnation > m.incarnation) {
		c.distrustDomain(from, h.Domain)
	}
	switch {
	case m == nil:
		m = c.addMember(from)
		c.enter(m, h)
	case h.Incarnation > m.incarnation:
		before, why := m.replaced, "came back as a new incarnation"
		switch other := m.by(h); {
		case m.process == 0 || h.Process == 0 || !other && h.Term > 0: // The same process comes back.
		case m.gone && m.why == whyLeft:
			before = lifeOn{}
		default:
			if before = m.on(); other {
				why = fmt.Sprintf("%v has joined under its name; it was %v", lifeOn{h.Host, h.Process, 0}, before)
			}
		}
		c.removeMember(m, why)
		c.enter(m, h)
		m.replaced = before
	}
	m.late, m.told = wire.Evidence{}, 0 // It tells its newest state again,
	m.read = m.began                    // and those before it, of which readings of since then are no sign that they are here.
	c.speaksFor(m, h.Multiplexer)
	c.takeHelloQuality(m, h.Quality, out)
	c.recollectFates(h)
	if h.Same.Seq > 0 {
		m.same = h.Same
	}
	m.heard, m.greeted = c.now, c.opt.Term
	c.peers.noteRecalled(c, h)
	c.noteObeyed(m, h)
	next := uint64(0)
	if m.last > 0 {
		next = m.last + 1
	}
	w := c.addWelcome(from, h.Incarnation, out)
	w.Accepted, w.Schema, w.NextSeq, w.Heartbeat = true, c.plan.State, next, int64(c.plan.Heartbeat())
	w.Section, w.SectionHash = c.plan.Below, plan.SectionHash(c.plan.Below)
	w.Domain, w.Timeline = reference, m.quality.Timeline
	if h.Asks {
		w.Aims = c.plan.Aims()
	}
	w.Untold = uint64(c.outbox.Untold(h.Had, from)) //nolint:gosec // A count.
	if w.Work = c.plan.WorkHash; c.peers.renewRoster(c) {
		c.peers.tellTo(m.name, true, c, out)
	}
	c.callAgain(m, out)
}

// unwelcome says why a member is refused; "" if it is not.
func (c *Core) unwelcome(m *member, h *wire.Hello) (monitor.RejectReason, string) {
	if h.Incarnation >= wire.MaxIncarnation {
		return monitor.RejectReport, fmt.Sprintf("member %q says that it is incarnation %d: it is to be below 2^62", h.Member, h.Incarnation)
	}
	if m != nil && h.Incarnation < m.incarnation {
		if m.by(h) {
			return monitor.RejectReplaced, fmt.Sprintf("%v has joined as %q since: give %v another name", m.on(), h.Member, lifeOn{h.Host, h.Process, 0})
		}
		return monitor.RejectReplaced, fmt.Sprintf("member %q is here under a newer incarnation: give this process another name", h.Member)
	}
	if reason := c.mixedClocks(m, h); reason != "" {
		return monitor.RejectTimeline, reason
	}
	if m == nil || m.gone {
		if len(c.sorted)-c.absent >= c.plan.Members.Max {
			return monitor.RejectFull, fmt.Sprintf("member %q is one too many: %s takes at most %d members", h.Member, c.plan.Name, c.plan.Members.Max)
		}
	}
	if h.Threads && len(c.plan.Below) == 0 && !c.opt.Local {
		return monitor.RejectState, fmt.Sprintf("member %q has threads, and no thread-level synchronizer is declared below %s: add a section with parent: %s and members: {threads: N}", h.Member, c.plan.Name, c.plan.Name)
	}
	if h.Typed && len(c.plan.Below) == 0 { // else it may be the type of a process's state
		if err := c.plan.State.Match(h.Schema); err != nil {
			return monitor.RejectState, fmt.Sprintf("member %q: %v", h.Member, err)
		}
	}
	return 0, ""
}

// addMember makes a member of that name. Of those that are gone at most so many are remembered as may
// be here, and maxGone more, since names can be invented.
func (c *Core) addMember(name string) *member {
	if c.absent >= c.plan.Members.Max+maxGone {
		c.forgetSome()
	}
	m := &member{name: name, index: noIndex}
	c.members[name] = m
	i, _ := slices.BinarySearchFunc(c.sorted, m, byName)
	c.sorted = slices.Insert(c.sorted, i, m)
	delete(c.strangers, name)
	return m
}

func byName(a, b *member) int { return cmp.Compare(a.name, b.name) }

// enter starts an incarnation of a member.
func (c *Core) enter(m *member, h *wire.Hello) {
	c.rows.free(m.newest.ref)
	c.detachMember(m)
	if m.gone {
		c.absent--
	}
	old := *m
	*m = member{
		name: m.name, host: h.Host, incarnation: h.Incarnation, process: h.Process, life: lifeOf(h, &old), domain: h.Domain,
		heard: c.now, index: noIndex, read: clocksync.MinInstant, began: clocksync.MinInstant, beganBy: clocksync.MinInstant, shown: clocksync.MinInstant,
		within: clocksync.Unbounded, lacked: lacked{repairing: m.repairing}, flighty: m.flighty, losses: m.losses,
		weight: wire.Weight(m.name, h.Incarnation), causes: h.Causes, over: h.Over, common: h.Common,
	}
	if h.Term > 0 && h.Leader == c.plan.Name { // It was taken in before, and its numbers continue.
		m.before = max(old.before, old.last)
	}
	c.outbox.Look() // For signals to the old one.
	if old.index != noIndex {
		// The old incarnation is in the detector until the next epoch.
		c.byIndex[old.index] = &old
		replace(c.removing, m, &old)
		replace(c.inEpoch, m, &old)
	}
}

func replace(list []*member, m, with *member) {
	if i := slices.Index(list, m); i >= 0 {
		list[i] = with
	}
}

// removeMember takes a member out of the next epoch.
func (c *Core) removeMember(m *member, why string) {
	if m.gone {
		return
	}
	c.leaveDomain(m)
	c.unlistMember(m)
	m.gone, m.why = true, why
	c.absent++
	c.changed = true
	c.outbox.Look()
	c.dropped = append(c.dropped, monitor.Dropped{Name: m.name, Reason: why})
	if m.index != noIndex {
		c.removing = append(c.removing, m)
		c.countStay(m)
	}
	m.newest.known = false
}

// dropSilent looks for members that have said nothing for too long.
func (c *Core) dropSilent(out *Output) {
	limit := c.plan.Silence
	c.forget()
	for _, m := range c.sorted {
		if m.gone || c.heardUpTo().Sub(m.lastHeard()) <= limit.After {
			continue
		}
		why := fmt.Sprintf("silent for %v", limit.After)
		switch limit.Then {
		case config.Drop:
			if m.index != noIndex {
				c.det.Lost(m.index)
				c.ondemand.touchMember(m)
			}
			c.removeMember(m, why)
			c.callWaiting(m, why, out)
		case config.Fail:
			out.Failed = fmt.Sprintf("member %q was %s, and the policy is to fail", m.name, why)
			c.failed = true
			return
		case config.Block:
			c.callWaiting(m, why, out) // It comes back as that life.
		}
	}
}

// callWaiting invites the refused life of a member to say hello again as a newer one, now that the life
// which has the name is silent. If the invitation is lost, that life's next periodic hello has the same effect.
func (c *Core) callWaiting(m *member, why string, out *Output) {
	w := m.waits
	if w.incarnation == 0 {
		return
	}
	m.waits = waiting{}
	to := c.addWelcome(m.name, w.incarnation, out)
	to.Refused, to.Reason, to.NextSeq = true, "the process that had its name is "+why, m.incarnation
	out.Welcomes[len(out.Welcomes)-1].Via = w.via
}

// forget drops the records of members that have been gone for long.
func (c *Core) forget() {
	c.forgetThose(func(m *member) bool { return c.now.Sub(m.heard) > goneKept })
}

// forgetSome drops the records of some members that are gone, many at once: those that were
// heard the longest ago, and before them those that need not wait to come back.
func (c *Core) forgetSome() {
	gone := make([]*member, 0, c.absent)
	for _, m := range c.sorted {
		if m.gone && m.index == noIndex {
			gone = append(gone, m)
		}
	}
	slices.SortStableFunc(gone, func(a, b *member) int {
		return cmp.Or(cmp.Compare(min(a.stays, 1), min(b.stays, 1)), cmp.Compare(a.heard, b.heard))
	})
	old := make(map[*member]bool, maxGone)
	for _, m := range gone[:min(len(gone), maxGone/2)] {
		old[m] = true
	}
	c.forgetThose(func(m *member) bool { return old[m] })
}

// forgetThose drops the records of the members that are gone and old.
func (c *Core) forgetThose(old func(*member) bool) {
	c.sorted = slices.DeleteFunc(c.sorted, func(m *member) bool {
		if !m.gone || m.index != noIndex || !old(m) {
			return false
		}
		c.rows.free(m.newest.ref)
		c.detachMember(m)
		delete(c.members, m.name)
		c.recent[nameSlot(m.name)] = nil
		c.absent--
		return true
	})
}

// nextEpoch begins a new epoch if members are ready or gone, and reports whether it did.
func (c *Core) nextEpoch(out *Output) bool {
	if !c.changed && c.now < c.putOff {
		return false
	}
	c.changed = false
	staying := len(c.inEpoch) - len(c.removing)
	ready := c.findEntering(staying)
	resized := c.begun && c.paused == c.makesEpoch(staying) // a reload has another minimum
	if len(c.removing) == 0 && !resized && (len(ready) == 0 || !c.makesEpoch(staying+len(ready))) {
		if len(c.dropped) > 0 { // before they entered an epoch
			c.tellEpoch(nil, out)
		}
		return false
	}
	if !c.makesEpoch(staying + len(ready)) {
		ready = nil
	}
	c.sweepDetector(out)
	if c.tuple {
		c.summaryClosed()
	}
	lasts, gone := c.holdsLast(), slices.Clone(c.removing)
	c.epoch++
	c.switchDetector(ready)
	lasts = c.newFloor(gone, len(ready) > 0) && lasts
	if c.exec != nil {
		c.exec.Epoch(c.now, c.epochBegun(), &c.done)
	}
	c.paused = !c.makesEpoch(len(c.inEpoch))
	c.begun = c.begun || !c.paused
	c.noteOwed()
	c.rearmAll(lasts)
	c.resetScope()
	if c.planner != nil {
		c.planner.Regroup(c.planMembers())
	}
	c.tellEpoch(ready, out)
	c.sweepDetector(out)
	return true
}

// resetScope gives the scope the members of the epoch, with unknown states.
func (c *Core) resetScope() {
	names := make([]predicates.Member, len(c.inEpoch))
	for i, m := range c.inEpoch {
		names[i] = predicates.Member{Name: m.name, Host: m.host}
	}
	c.scope.Reset(names)
	c.ondemand.resetMembers(c.inEpoch, names)
}

// tellEpoch tells of the epoch by now: which members take part, have joined, and are gone.
func (c *Core) tellEpoch(joined []*member, out *Output) {
	e := monitor.Epoch{Epoch: c.inForce(), Dropped: slices.Clone(c.dropped)}
	for _, m := range c.inEpoch {
		e.Members = append(e.Members, m.name)
	}
	for _, m := range joined {
		e.Joined = append(e.Joined, m.name)
	}
	c.dropped = c.dropped[:0]
	out.Epochs = append(out.Epochs, e)
	if c.exec != nil {
		c.exec.Left(c.now, c.plan.Silence.After, e.Dropped, &c.done)
	}
}

func (r *membership) readyMembers() []*member {
	var ready []*member
	for _, m := range r.sorted {
		if m.isReady() {
			ready = append(ready, m)
		}
	}
	return ready
}

// makesEpoch reports whether n members make an epoch.
func (c *Core) makesEpoch(n int) bool {
	return n >= c.awaited()
}

// switchDetector begins the detector's next epoch, with the states of new members.
func (c *Core) switchDetector(ready []*member) {
	remove := make([]scgs.Member, len(c.removing))
	for i, m := range c.removing {
		remove[i] = m.index
		m.index = noIndex
	}
	c.inEpoch = slices.DeleteFunc(c.inEpoch, func(m *member) bool { return m.index == noIndex })
	c.removing = c.removing[:0]
	entering := ready
	if c.process != nil && c.process.isReady() {
		entering = append(slices.Clone(ready), c.process)
	}
	for _, m := range entering {
		if m.multiplexer != nil {
			m.number = m.multiplexer.number
		}
	}
	numbers := c.det.Epoch(c.epoch, remove, specs(entering))
	for i, m := range entering {
		m.index = numbers[i]
		for int(m.index) >= len(c.byIndex) {
			c.byIndex = append(c.byIndex, nil)
		}
		c.byIndex[m.index] = m
	}
	for _, w := range c.runs {
		c.beginEpoch(w, remove, ready)
	}
	for _, m := range entering {
		c.letIn(m)
	}
	c.inEpoch = append(c.inEpoch, ready...)
	slices.SortFunc(c.inEpoch, byName)
	for i, m := range c.inEpoch {
		m.pos = i
	}
	c.tuple, c.heads = false, 0
	for _, m := range c.inEpoch {
		m.state, m.share = scgs.Change{}, 0
	}
	for _, x := range c.multiplexers.byName {
		c.coverRoster(x)
	}
}

// specs are what a detector wants to know of those that enter.
func specs(entering []*member) []scgs.Spec {
	specs := make([]scgs.Spec, len(entering))
	for i, m := range entering {
		specs[i] = scgs.Spec{Domain: m.domain, Multiplexer: m.number}
	}
	return specs
}

func (c *Core) letIn(m *member) {
	n := m.newest
	m.newest, m.entered, m.joined, m.was = newest{}, c.now, c.epoch, 0
	if m.listed && m.multiplexer.at.Domain != "" {
		n.alive = m.multiplexer.at
	}
	if reason := c.det.Start(m.index, m.last, n.at, n.ref); reason != scgs.Accepted {
		panic(fmt.Sprintf("synccore: the first state of %q is refused: %v", m.name, reason))
	}
	held := n.at
	if clocksync.CertainlyBefore(n.at, n.alive) {
		held = n.alive
	}
	c.tellRuns(m, &wire.Report{Seq: m.last, Row: c.row(m, n.ref)}, &n.at, &held)
	if held != n.at {
		c.showEvidence(m, m.last, held)
	}
}

// addReject tells why an expression of the configuration has no value.
func (o *Output) addReject(from, detail string) { o.addRefusal(monitor.RejectValue, from, detail) }

func (o *Output) addRefusal(reason monitor.RejectReason, from, detail string) {
	o.Rejected = append(o.Rejected, monitor.Rejection{From: from, Reason: reason, Detail: detail})
}

// addWelcome adds a welcome that says no more than who speaks to whom; the rest is filled
// in by the caller.
func (c *Core) addWelcome(to string, incarnation uint64, out *Output) *wire.Welcome {
	out.Welcomes = append(out.Welcomes, wire.Addressed[wire.Welcome]{To: to, Msg: wire.Welcome{
		Synchronizer: c.plan.Name, Term: c.opt.Term, Epoch: c.epoch, Member: to, Incarnation: incarnation,
	}})
	return &out.Welcomes[len(out.Welcomes)-1].Msg
}
