package synccore

import (
	"slices"

	"github.com/gopegasus/pegasus/balance"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/outbox"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/planner"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
)

// The machine's side of a program that runs on its members: the inputs of the executor, and the
// use of its answers.

// world is what the executor sees of the current global state.
type world struct{ *Core }

// Processor implements [plan.World].
func (w world) Processor(name string) (p plan.Processor, ok bool) {
	m := w.members[name]
	if m == nil || m.gone || m.index == noIndex || m.state.Seq == 0 || m.state.Unknown {
		return p, false
	}
	return plan.Processor{Incarnation: m.incarnation, Row: w.row(m, m.state.Ref), Regions: m.regions, Seq: m.state.Seq, Newest: m.state.Seq == m.last && !m.behind(), Heard: m.lastHeard(), Obeys: m.obeys == w.opt.Term}, true
}

// Decision implements [plan.World].
func (w world) Decision() control.Decision { return w.decision() }

// Pending implements [plan.World].
func (w world) Pending(d control.Decision, member string) bool { return w.outbox.Pending(d, member) }

// programDone sends and tells what the executor has asked for.
func (c *Core) programDone(out *Output) {
	done := &c.done
	out.Program = append(out.Program, done.Events...)
	signals := done.Signals
	done.Events, done.Signals = done.Events[:0], nil
	for i, s := range signals {
		c.postOwn(outbox.Program, s, s.Cause, out)
		signals[i] = nil
	}
	done.Signals = signals[:0]
}

// postOwn sends a signal of the program or the balance, unless its target has had it in an
// earlier term.
func (c *Core) postOwn(owner outbox.Owner, s *control.Signal, cause control.Cause, out *Output) {
	m := c.members[s.Target]
	l := outbox.Letter{Owner: owner, Incarnation: m.incarnation, Signal: s}
	s.Cause = control.Cause{}
	if fate, why := c.addCause(m, s, cause); fate != 0 {
		c.noteFate(&outbox.Settled{Letter: l, Fate: fate, Detail: why}, out)
		return
	}
	c.postSignal(l, out)
}

// programVerdict notes a verdict that the program reads.
func (c *Core) programVerdict(r *plan.Rule, s *ruleState, v *monitor.Verdict) {
	if c.exec == nil || !r.Read {
		return
	}
	truth := v.Truth
	if truth == predicates.True && r.Hold > 0 && !v.Fired && (s.armed || !r.Detector.Exists()) {
		truth = predicates.Unknown // It has not held for long enough.
	}
	c.exec.Verdict(r.Name, truth, v.Decision)
}

// programMoved notes the members whose states a global state has changed.
func (c *Core) programMoved() {
	for _, ch := range c.ev.Changed {
		if m := c.byIndex[ch.Member]; m != c.process && !ch.Unknown {
			c.exec.Moved(m.name, m.incarnation)
		}
	}
}

// programAdvance lets the program continue, if there is a current global state to decide on.
func (c *Core) programAdvance(out *Output) {
	if c.exec != nil && c.tuple && c.mayDecide() {
		c.exec.Advance(c.now, world{c}, &c.done)
		c.programDone(out)
	}
}

// epochBegun names the epoch in place of a decision.
func (c *Core) epochBegun() control.Decision {
	return control.Decision{Synchronizer: c.plan.Name, Term: c.opt.Term, Epoch: c.epoch}
}

// programRenewed voids the verdicts on predicates that another configuration has
// changed.
func (c *Core) programRenewed(fresh []int) {
	if c.exec == nil {
		return
	}
	var names []string
	for _, i := range fresh {
		if r := c.plan.Rules[i]; r.Read {
			names = append(names, r.Name)
		}
	}
	c.exec.Renewed(c.now, names, world{c}, &c.done)
}

// programOverdue gives up members that did not come back after a restart. The group was
// complete once before: so the minimum of a later epoch is enough from now on.
func (c *Core) programOverdue() {
	if c.exec != nil && c.exec.Overdue(c.now, c.plan.Silence.After, &c.done) && !c.begun {
		c.begun, c.paused, c.changed = true, true, true
	}
}

// callAgain has a member say hello again that has not said yet that it takes this term, while
// the program waits for that; and a member that has not said hello in this term, though the
// term was announced to all: it may not have heard that.
func (c *Core) callAgain(m *member, out *Output) {
	awaited := c.exec != nil && c.exec.Awaits() && m.obeys != c.opt.Term
	if !m.gone && (awaited || m.greeted != c.opt.Term && c.now.Sub(c.termAt) >= resendWait && !c.toldLately(m.name)) {
		c.addWelcome(m.name, m.incarnation, out)
	}
}

// noteObeyed notes which term a member says it has taken.
func (c *Core) noteObeyed(m *member, h *wire.Hello) {
	if h.Leader != c.plan.Name || m.obeys == h.Term {
		return
	}
	m.obeys = h.Term
	if c.exec != nil && m.index != noIndex {
		c.exec.Moved(m.name, m.incarnation)
	}
}

// toProgram hands over what a run has come to, or ends the program, or says why that is
// refused.
func (c *Core) toProgram(in *Input, out *Output) {
	switch {
	case c.exec == nil:
		out.Refused = c.plan.Name + " runs no program"
	case in.Kind == InCancel:
		c.exec.Cancel(c.now, in.Reason, &c.done)
	default:
		var isNew bool
		isNew, out.Refused = c.exec.Take(in.From, in.Body, &c.done)
		if m := c.members[in.From]; isNew && m != nil && m.index != noIndex {
			c.exec.Moved(m.name, m.incarnation)
		}
	}
}

// actsOn reports whether a rule acts on a member: a rule that guards blocks of the program acts
// on no other members.
func (c *Core) actsOn(r *plan.Rule, member string) bool {
	return c.exec == nil || !r.Attached || c.exec.Under(r.Name, member)
}

// The machine's side of the section balance.

// balanceBy goes over to another section balance, or to none.
func (c *Core) balanceBy(b *plan.Balance) {
	if b == nil || c.opt.Local || c.opt.Follows {
		c.planner = nil
		return
	}
	c.planner = planner.New(b, c.planner)
	if source := sourceOf(config.BalanceName, b.Text); source != c.ordered.Source {
		c.ordered = causes{control.Cause{Source: source}, c.ordered.most} // It may be one of before.
	}
}

// planMembers are the members of the epoch as the planner sees them, in the current global
// state.
func (c *Core) planMembers() []planner.Member {
	c.planned = c.planned[:0]
	for _, m := range c.inEpoch {
		c.planned = append(c.planned, planner.Member{
			Name: m.name, Incarnation: m.incarnation, Seq: m.state.Seq, Unknown: m.state.Unknown,
			Entry: plan.EntryAt(m.regions, c.planner.Set.Region, m.state.Seq),
		})
	}
	return c.planned
}

// moveLoads has loads moved, if it is time.
func (c *Core) moveLoads(out *Output) {
	if c.planner == nil || !c.planner.Due(c.now, c.tuple, c.mayDecide()) {
		return
	}
	next := c.epochBegun()
	next.Number = c.decisions + 1
	made, tell, signals := c.planner.Look(c.now, &planner.State{
		Epoch: c.ev.Epoch, Index: c.ev.Index, Partial: c.ev.Partial, Members: c.planMembers(), Scope: c.scope,
		Room: outbox.Limit - c.outbox.Len(), Decision: next,
	})
	if made == nil {
		return
	}
	if made.Decision.Number > 0 {
		c.decisions++
	}
	var cause control.Cause
	if len(signals) > 0 {
		cause = c.earlier.nextCause(&c.ordered, c.heads)
	}
	for _, s := range signals {
		c.postOwn(outbox.Balance, s, cause, out)
	}
	c.balanced[slices.Index(balance.Names, c.planner.Config.Strategy)].countPlan(&made.Plan)
	if tell {
		out.Plans = append(out.Plans, *made)
	}
}

// balanceWake is when the planner next has something to do without an input.
func (c *Core) balanceWake() clocksync.Instant {
	if c.planner == nil || !c.mayDecide() {
		return clocksync.MaxInstant
	}
	return c.planner.Wake(c.tuple)
}
