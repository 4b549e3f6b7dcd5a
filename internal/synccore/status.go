package synccore

import (
	"maps"
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// status describes the machine at an instant, which is not before the last step. It changes
// nothing and costs O(members).
func (c *Core) status(now clocksync.Instant) monitor.Status {
	s := monitor.Status{
		Synchronizer: c.plan.Name, Group: c.plan.Members.Group, Term: c.opt.Term, Epoch: c.inForce(),
		Awaited: c.awaited(), State: c.stateStatus(), Waiting: c.outbox.Len(),
		Members: c.memberStatus(now), Predicates: []monitor.PredicateStatus{}, Groups: c.groupStatus(now),
	}
	if c.exec != nil {
		s.Program = c.exec.Status(now)
	}
	if c.planner != nil {
		s.Balance = c.planner.Status(now)
	}
	for _, name := range c.plan.Predicates() {
		s.Predicates = append(s.Predicates, c.predicateStatus(now, c.ruleIndex(name)))
	}
	for i := range c.plan.Params {
		s.Params = append(s.Params, c.plan.ParamStatus(i))
	}
	s.Memory = monitor.NewValues(c.plan.Memory(), c.memory)
	return s
}

func (c *Core) awaited() int {
	if c.begun {
		return c.plan.Members.Min
	}
	return c.plan.Members.Count
}

// stateStatus is the newest global state, nil if there is none in this epoch. While there are
// too few members the detector continues, and its findings belong to no current epoch.
func (c *Core) stateStatus() *monitor.StateStatus {
	if c.paused || c.ev.Epoch != c.epoch || c.ev.Index == 0 {
		return nil
	}
	span, open := c.det.Current()
	if !open && !c.spanless {
		span = c.ev.Span
	}
	return &monitor.StateStatus{
		Epoch: c.ev.Epoch, Index: c.ev.Index, Partial: c.ev.Partial, InForce: open && c.tuple,
		Held: span.Certain().Seconds(), SameClock: span.SameClock,
	}
}

func (c *Core) memberStatus(now clocksync.Instant) []monitor.MemberStatus {
	heads := make(map[*member]scgs.Part, len(c.sorted))
	c.parts = c.det.Witness(c.parts[:0])
	for _, p := range c.parts {
		heads[c.byIndex[p.Member]] = p
	}
	all, together := make([]monitor.MemberStatus, 0, len(c.sorted)), c.oneDomain()
	for _, m := range c.sorted {
		one := monitor.MemberStatus{
			Name: m.name, Host: m.host, Incarnation: m.incarnation, Standing: m.standing(), Why: m.why,
			Heard: secondsAgo(now, m.lastHeard()), Silent: c.isQuiet(m, now), Clock: c.clockStatus(m, together),
			Seq: m.last, Behind: len(m.stash), Gaps: m.losses.gaps, Lost: m.losses.states, Regions: regionNames(m.regions),
		}
		if c.paused && one.Standing == monitor.InEpoch {
			one.Standing = monitor.Ready
		}
		if m.isReady() && c.admittedAt(m) > now {
			one.Why = c.putOffText(m, now)
		}
		if since, lacks := m.lacksSince(); lacks {
			one.Gap = secondsAgo(now, since)
		}
		stamp := m.newest.alive
		row := c.row(m, m.newest.ref)
		if m.index != noIndex {
			head, ok := heads[m]
			one.Unknown = head.Unknown || !ok
			one.Pending = c.det.Pending(m.index)
			stamp, row = head.End, c.row(m, head.Ref)
			if !one.Unknown {
				began, ended := stampTimes(&c.opt, now, m, &head.Start, m.heardAt(head.Seq)), stampTimes(&c.opt, now, m, &head.End, m.lastHeard())
				one.Began, one.Ended, one.Open, one.Report = &began, &ended, head.Open, head.Seq
			}
		}
		one.State = monitor.NewValues(c.plan.State, row)
		if bound := stamp.Within.Width(); stamp.Domain != "" && stamp.Within.Bounded() {
			one.Clock.Bound = new(((bound + 1) / 2).Seconds())
		}
		all = append(all, one)
	}
	return all
}

// stampTimes bounds when a stamp of a member was taken, relative to now. A stamp without a bound was taken before its message came.
func stampTimes(o *Options, now clocksync.Instant, m *member, at *clocksync.Stamp, came clocksync.Instant) monitor.Range {
	within := clocksync.Unbounded
	switch {
	case o.Reference != "" && m.domain == o.Reference:
		within = clocksync.Exactly(at.Mono)
	case o.Relative && m.quality.Timeline != "":
		within = at.Within
	}
	if within.Earliest > now || !within.Valid() { // The member's clock is wrong.
		within = clocksync.Unbounded
	}
	if !within.Bounded() && came.Finite() {
		within.Latest = min(within.Latest, came)
	}
	return since(now, within.Earliest, min(within.Latest, now))
}

func (c *Core) groupStatus(now clocksync.Instant) []monitor.GroupStatus {
	var all []monitor.GroupStatus
	for _, name := range slices.Sorted(maps.Keys(c.others)) {
		g := c.others[name]
		one := monitor.GroupStatus{Group: name, Max: g.max, Members: make([]monitor.HeardMember, 0, len(g.sorted))}
		for _, m := range g.sorted {
			one.Members = append(one.Members, monitor.HeardMember{Name: m.name, Incarnation: m.incarnation, Heard: secondsAgo(now, m.heard), Regions: regionNames(m.regions)})
		}
		all = append(all, one)
	}
	return all
}

func regionNames(regions []wire.Region) []string {
	names := make([]string, len(regions))
	for i, r := range regions {
		names[i] = r.Name
	}
	return names
}

func (m *member) standing() monitor.Standing {
	switch {
	case m.gone && m.index != noIndex:
		return monitor.Leaving
	case m.gone:
		return monitor.Gone
	case m.index != noIndex:
		return monitor.InEpoch
	case m.newest.known:
		return monitor.Ready
	}
	return monitor.NoState
}

// isQuiet reports whether nothing was heard from a member for two heartbeats, of which it
// sends one each even if it has nothing to say; it is silent only by the silence of the plan.
func (c *Core) isQuiet(m *member, now clocksync.Instant) bool {
	return !c.opt.Local && !m.gone && now.Sub(m.lastHeard()) > 2*c.plan.Heartbeat()
}

func (c *Core) clockStatus(m *member, together bool) monitor.ClockStatus {
	s := monitor.ClockStatus{Status: m.quality.Status.String(), Source: m.quality.Source, Domain: string(m.domain)}
	switch {
	case c.readsReference(m):
		s.Status = "exact"
	case m.quality.Timeline == "" && m.quality.Status == clocksync.Unknown && together:
		s.Status = "local"
	}
	return s
}

// oneDomain reports whether one clock orders the states of all members.
func (r *membership) oneDomain() bool {
	return !slices.ContainsFunc(r.inEpoch, func(m *member) bool { return m.domain != r.inEpoch[0].domain })
}

func (c *Core) predicateStatus(now clocksync.Instant, i int) monitor.PredicateStatus {
	r, s := c.plan.Rules[i], &c.states[i]
	out := monitor.PredicateStatus{Name: r.Name, Truth: s.truth.String(), Armed: s.armed || r.Every || r.Detector.Exists() && r.Until == nil, Hold: c.running(i)}
	p := s.past
	if s.told {
		out.Since, out.Reason = new(secondsAgo(now, p.since)), p.reason
	}
	if p.fired > 0 {
		out.Fired, out.Decision, out.Ago = p.fired, p.last.Decision.String(), secondsAgo(now, p.at)
	}
	for _, v := range p.vainReasons(r, c.plan, &c.reports.regions) {
		text := v.Text
		if v.Member != "" {
			text = v.Member + ": " + text
		}
		out.Notes = append(out.Notes, text)
	}
	return out
}

// running is the hold time of a predicate, nil if it does not run.
func (c *Core) running(i int) *monitor.Hold {
	s := &c.states[i]
	if !s.holding {
		return nil
	}
	h := &monitor.Hold{Wanted: c.plan.Rules[i].Hold.Seconds()}
	span, open := c.det.Current()
	if _, to, ok := stretch(&span); open && ok {
		h.Certain = max(0, to.Sub(s.since)).Seconds()
	}
	return h
}

// ruleIndex is -1 if there is no predicate of that name.
func (c *Core) ruleIndex(name string) int {
	return slices.IndexFunc(c.plan.Rules, func(r *plan.Rule) bool { return r.Name == name })
}

// secondsAgo is an age in seconds.
func secondsAgo(now, then clocksync.Instant) float64 { return max(0, now.Sub(then)).Seconds() }

// maxKept is how many states of the last witness of a predicate are kept.
const maxKept = 64

// history is a predicate's past: all that is kept of it beside its present standing.
type history struct {
	epoch   uint64 // 0: not judged yet
	truth   predicates.Truth
	reason  string
	since   clocksync.Instant // it has come to that truth
	fired   uint64
	last    monitor.Verdict // that fired, with at most maxKept states
	leftOut int
	refused []refusal // at most one for each signal
	at      clocksync.Instant
}

// keepRemarks keeps what a step has told about the predicates.
func (c *Core) keepRemarks(out *Output) {
	for i := range out.Verdicts {
		v := &out.Verdicts[i]
		p := c.states[c.ruleIndex(v.Predicate)].past
		if v.Modality == "" { // else it is not on a global state
			if v.Truth != p.truth || v.Epoch != p.epoch {
				p.truth, p.epoch, p.since = v.Truth, v.Epoch, c.now
			}
			p.reason = v.Reason
		}
		if v.Fired {
			p.fired++
			p.last, p.at = *v, c.now
			p.last.Witness, p.leftOut = kept(v.Witness, v.Span.SameClock)
		}
	}
}

// kept is a witness truncated to maxKept states, among them the state that began last and the
// state that ended first, which bound the core, and how many were left out.
func kept(witness []monitor.Part, sameClock bool) (parts []monitor.Part, leftOut int) {
	outside := func(p monitor.Part) bool { return p.Outside }
	if slices.ContainsFunc(witness, outside) {
		witness = slices.DeleteFunc(slices.Clone(witness), outside)
	}
	if len(witness) <= maxKept {
		return witness, 0
	}
	late, early := 0, 0
	for i := range witness {
		if heldFrom(&witness[i].State, sameClock) > heldFrom(&witness[late].State, sameClock) {
			late = i
		}
		if heldTo(&witness[i].State, sameClock) < heldTo(&witness[early].State, sameClock) {
			early = i
		}
	}
	keep := []int{late, early}
	for i := range maxKept - len(keep) {
		keep = append(keep, i)
	}
	slices.Sort(keep)
	keep = slices.Compact(keep)
	for _, i := range keep {
		parts = append(parts, witness[i])
	}
	return parts, len(witness) - len(parts)
}

// heldFrom is when a part certainly held, by readings or in reference time; to is
// until when.
func heldFrom(p *scgs.Part, sameClock bool) clocksync.Instant {
	if sameClock {
		return p.Start.Mono
	}
	return p.Start.Within.Latest
}

func heldTo(p *scgs.Part, sameClock bool) clocksync.Instant {
	if sameClock {
		return p.End.Mono
	}
	return p.End.Within.Earliest
}
