package synccore

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/outbox"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
)

// emitSignal sends one signal of a decision to each of its targets.
func (c *Core) emitSignal(r *plan.Rule, o *plan.Send, d control.Decision, on *occasion, out *Output) {
	data := make([]control.Datum, 0, len(o.Data))
	for _, x := range o.Data {
		v, reason := x.Value.EvalValue(on.scope)
		if reason != "" {
			out.addReject(c.plan.Name, "signal "+o.Name+": datum "+x.Name+" is unknown: "+reason)
			return
		}
		data = append(data, control.Datum{Name: x.Name, Value: v})
	}
	if err := control.CheckData(data); err != nil {
		out.addReject(c.plan.Name, "signal "+o.Name+": "+err.Error())
		return
	}
	signal := func(target string, entry uint64) control.Signal {
		return control.Signal{
			Decision: d, Name: o.Name, Predicate: r.Name, Kind: o.Kind,
			Target: target, Region: o.Region, Entry: entry, TTL: o.Expires, Data: data,
		}
	}
	if o.Group != "" {
		c.emitOther(o, signal, on, out)
		return
	}
	for _, name := range o.Names {
		if !c.actsOn(r, name) {
			continue
		}
		i, found := slices.BinarySearchFunc(c.inEpoch, name, func(m *member, name string) int { return cmp.Compare(m.name, name) })
		switch {
		case found && !c.isTarget(r, c.inEpoch[i], on), !found && on.since > 0:
			continue
		case !found:
			out.addFate("", new(signal(name, 0)), control.NoSuchEntry, fmt.Sprintf("no member of that name is in epoch %d", c.epoch))
			continue
		}
		c.sendTo(c.inEpoch[i], new(signal(name, c.entry(i, o.Region, on))), on, out)
	}
	c.findTargets(o, on)
	for _, i := range c.targets {
		if m := c.inEpoch[i]; c.isTarget(r, m, on) {
			c.sendTo(m, new(signal(m.name, c.entry(i, o.Region, on))), on, out)
		}
	}
}

// sendTo sends a rule's signal to a member of the epoch, unless that has had it in an
// earlier term.
func (c *Core) sendTo(m *member, s *control.Signal, on *occasion, out *Output) {
	s.Over = on.over && m.over
	switch fate, why := c.addCause(m, s, on.cause); {
	case fate != 0:
		out.addFate("", new(*s), fate, why)
	case !c.opt.Once || c.general:
		c.postSignal(outbox.Letter{Owner: outbox.Rule, Incarnation: m.incarnation, Signal: new(*s)}, out)
	case s.Entry > 0: // else the target was in no such region
		head := c.head()
		c.outbox.AddTo(&out.Signals, &head, "", m.incarnation, s)
	}
}

// findTargets finds the places in the epoch of the members that a signal goes to. An expression
// over what a rule's own detector has found sees the members of the runs only; "all"
// is every member of the epoch.
func (c *Core) findTargets(o *plan.Send, on *occasion) {
	c.targets = c.targets[:0]
	switch {
	case o.Holders:
		c.targets = append(c.targets, on.holders...)
	case o.To == nil:
	case on.holders == nil:
		c.targets, _ = o.To.EvalMembers(c.targets, on.scope)
	case o.ToAll:
		for i := range c.inEpoch {
			c.targets = append(c.targets, i)
		}
	default:
		c.targets, _ = o.To.EvalMembers(c.targets, on.scope)
		for i, place := range c.targets {
			c.targets[i] = on.holders[place]
		}
	}
}

// entry is the entry of a region in which a member is in the state that was judged,
// 0 if that state has none. Of a member that was not judged it is the newest entry
// that is known.
func (r *membership) entry(i int, region string, on *occasion) uint64 {
	m := r.inEpoch[i]
	seq := m.state.Seq
	if on.seqs != nil {
		seq = on.seqs[i]
	}
	return plan.EntryAt(m.regions, region, seq)
}

// head is what the frames of signals have in common.
func (c *Core) head() wire.Signals {
	return wire.Signals{Synchronizer: c.plan.Name, Term: c.opt.Term, Epoch: c.epoch}
}

// postSignal sends a signal and waits for its fate.
func (c *Core) postSignal(l outbox.Letter, out *Output) {
	if l.Group == "" {
		l.Recalls = c.members[l.Signal.Target].causes
	}
	head := c.head()
	if s, sent := c.outbox.Post(c.now, &head, l, &out.Signals); !sent {
		c.noteFate(&s, out)
	}
}

// noteFate tells the fate of a signal, also to what has sent it.
func (c *Core) noteFate(s *outbox.Settled, out *Output) {
	out.addFate(s.Group, s.Signal, s.Fate, s.Detail)
	if s.Fate == control.NoSuchEntry && s.Owner != outbox.Program && !c.plan.Reserves(s.Signal.Region) {
		out.Fates[len(out.Fates)-1].Hint = c.reports.regions.Lacks(s.Group, s.Signal.Region)
	}
	switch {
	case s.Owner == outbox.Rule:
		c.settleOwed(s)
		if i := c.ruleIndex(s.Signal.Predicate); i >= 0 {
			c.states[i].past.noteRefusal(s, len(c.plan.Rules[i].Signals))
		}
	case s.Owner == outbox.Program && c.exec != nil:
		c.exec.Settled(c.now, s.Signal, s.Fate)
	case s.Owner == outbox.Balance && c.planner != nil:
		c.planner.Settled(c.now, s.Signal, s.Fate)
	}
}

// takeAck takes the fates a member tells.
func (c *Core) takeAck(from string, a *wire.Ack, out *Output) {
	m := c.members[from]
	if m == nil || a.Member != from || a.Incarnation != m.incarnation {
		out.addRefusal(monitor.RejectSender, from, "acknowledgement of an unknown incarnation")
		return
	}
	m.heard = c.now
	c.takeAnswers("", from, m.causes, a, out)
}

// takeAnswers takes the fates that a member tells. If it keeps them until they are recorded, it
// learns which are.
func (c *Core) takeAnswers(group, from string, keeps bool, a *wire.Ack, out *Output) {
	left := 0
	for i := range a.Answers {
		x := &a.Answers[i]
		d, known, full := x.Decision, false, false
		if s := x.Lapse(); s != nil && group == "" && s.Target == from && x.Fate.Final() {
			full = c.takeLapse(s, a, x, out)
			d, known = control.Decision{Term: s.Entry}, !full
		} else if s, ok := c.outbox.Answer(c.now, group, from, x); ok {
			c.noteFate(&s, out)
			known = true
		} else if x.Fate.Final() && !c.outbox.UnderWay(group, from, x) { // Else another copy may be applied yet.
			known, full = c.isRecorded(group, from, x, out)
		}
		if full {
			left++
		}
		if known && keeps {
			c.outbox.Record(c.now, group, from, a.Incarnation, d, x.Name)
		}
	}
	if left > 0 {
		out.addRefusal(monitor.RejectFull, from, fmt.Sprintf("%d fates that it tells are not recorded: there is room for %d of a member, and %d in all, within an hour", left, maxTold, outbox.Limit))
	}
}

// retrySignals repeats signals that were not answered. It gives up those that have expired or
// whose target is another incarnation.
func (c *Core) retrySignals(out *Output) {
	if c.now < c.outbox.Due() {
		return
	}
	head := c.head()
	c.over = c.outbox.Retry(c.now, c.heardUpTo(), &head, c.left, &out.Signals, c.over[:0])
	for i := range c.over {
		c.noteFate(&c.over[i], out)
	}
}

// left reports whether the target of a signal is no longer what it was. A forgotten target has
// been gone for long.
func (c *Core) left(l *outbox.Letter) bool {
	if l.Group != "" {
		return c.others[l.Group].targetChanged(l)
	}
	m := c.members[l.Signal.Target]
	return m == nil || m.gone || m.incarnation != l.Incarnation
}

func (o *Output) addFate(group string, s *control.Signal, f control.Fate, detail string) {
	o.Fates = append(o.Fates, monitor.Fate{Signal: s, Fate: f, Detail: detail, Group: group})
}
