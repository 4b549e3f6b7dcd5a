package synccore

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
)

// pending is a signal whose final fate is not known.
type pending struct {
	signal      *control.Signal
	group       string  // another one's; empty: the synchronizer's own
	member      *member // of the own group
	incarnation uint64
	deadline    clocksync.Instant
	next        clocksync.Instant
	attempts    int
	waiting     bool // the target has it and will tell its fate
}

// backoff is the wait before each further attempt to deliver a signal; the last
// one is repeated.
var backoff = []time.Duration{
	20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
}

// waitingAgain is how often a target that has a signal is asked for its fate.
const waitingAgain = time.Second

// emit sends one signal of a decision to each of its targets.
func (c *Core) emit(r *plan.Rule, o *plan.Send, d control.Decision, on *occasion, out *Output) {
	data := make([]control.Datum, 0, len(o.Data))
	for _, x := range o.Data {
		v, reason := x.Value.EvalValue(on.scope)
		if reason != "" {
			out.reject(c.plan.Name, "signal "+o.Name+": datum "+x.Name+" is unknown: "+reason)
			return
		}
		data = append(data, control.Datum{Name: x.Name, Value: v})
	}
	if err := control.CheckData(data); err != nil {
		out.reject(c.plan.Name, "signal "+o.Name+": "+err.Error())
		return
	}
	signal := func(target string, entry uint64) *control.Signal {
		return &control.Signal{
			Decision: d, Name: o.Name, Predicate: r.Name, Kind: o.Kind,
			Target: target, Region: o.Region, Entry: entry, TTL: o.Expires, Data: data,
		}
	}
	if o.Group != "" {
		c.emitOther(o, signal, out)
		return
	}
	for _, name := range o.Names {
		if !c.under(r, name) {
			continue
		}
		i, found := slices.BinarySearchFunc(c.inEpoch, name, func(m *member, name string) int { return cmp.Compare(m.name, name) })
		if !found {
			out.fate("", signal(name, 0), control.NoSuchEntry, fmt.Sprintf("no member of that name is in epoch %d", c.epoch))
			continue
		}
		c.post("", c.inEpoch[i].incarnation, signal(name, c.entry(i, o.Region, on)), out)
	}
	c.aim(o, on)
	for _, i := range c.targets {
		m := c.inEpoch[i]
		if !c.under(r, m.name) {
			continue
		}
		c.post("", m.incarnation, signal(m.name, c.entry(i, o.Region, on)), out)
	}
}

// aim finds the places in the epoch of those that an expression gives. On what a
// rule's own detector has found, that is about its members alone; all is all.
func (c *Core) aim(o *plan.Send, on *occasion) {
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
// 0 if that state has none: the region was entered in a later state, or left. Of a
// member that was not judged it is the newest entry that is known.
func (c *Core) entry(i int, region string, on *occasion) uint64 {
	m := c.inEpoch[i]
	seq := m.state.Seq
	if on.seqs != nil {
		seq = on.seqs[i]
	}
	for _, r := range m.regions {
		if r.Name == region && r.Since <= seq {
			return r.Entry
		}
	}
	return 0
}

// post sends a signal to an incarnation of its target and waits for its fate. It is
// false if the signal has its fate at once.
func (c *Core) post(group string, incarnation uint64, s *control.Signal, out *Output) bool {
	switch {
	case s.Entry == 0:
		out.fate(group, s, control.NoSuchEntry, "the target was in no such region")
		return false
	case len(c.outbox) >= outboxLimit:
		out.fate(group, s, control.Refused, "too many signals wait for their fate")
		return false
	}
	p := &pending{signal: s, group: group, incarnation: incarnation, deadline: c.now.Add(s.TTL)}
	if group == "" {
		p.member = c.members[s.Target]
	}
	c.outbox, c.again = append(c.outbox, p), clocksync.MinInstant
	c.transmit(p, out)
	return true
}

// transmit sends a signal, in one frame with what else goes to the same member
// in this step, and sets the time of the next attempt. A signal of an older epoch
// goes out like any other: only its target knows whether it came in time, and the
// frame tells it the epoch in force.
func (c *Core) transmit(p *pending, out *Output) {
	p.next = min(p.deadline, c.now.Add(backoff[min(p.attempts, len(backoff)-1)]))
	p.attempts++
	to := p.signal.Target
	for i := range out.Signals {
		if a := &out.Signals[i]; a.To == to && a.Group == p.group && a.Msg.Incarnation == p.incarnation && len(a.Msg.Signals) < wire.MaxSignals {
			a.Msg.Signals = append(a.Msg.Signals, *p.signal)
			return
		}
	}
	out.Signals = append(out.Signals, Addressed[wire.Signals]{To: to, Group: p.group, Msg: wire.Signals{
		Synchronizer: c.plan.Name, Term: c.opt.Term, Epoch: c.epoch, Incarnation: p.incarnation,
		Signals: []control.Signal{*p.signal},
	}})
}

// ack takes the fates a member tells.
func (c *Core) ack(from string, a *wire.Ack, out *Output) {
	m := c.members[from]
	if m == nil || a.Member != from || a.Incarnation != m.incarnation {
		out.refuse(monitor.ClassSender, from, "acknowledgement of an unknown incarnation")
		return
	}
	m.heard = c.now
	for _, answer := range a.Answers {
		c.answer("", from, answer, out)
	}
}

func (c *Core) answer(group, from string, a wire.Answer, out *Output) {
	i := slices.IndexFunc(c.outbox, func(p *pending) bool {
		return p.signal.Decision == a.Decision && p.signal.Name == a.Name && p.signal.Target == from && p.group == group
	})
	if i < 0 {
		return // its fate is known: a late copy of the answer
	}
	p := c.outbox[i]
	switch {
	case a.Fate == control.Waiting:
		p.waiting = true
		p.next = min(p.deadline, c.now.Add(waitingAgain))
		c.again = clocksync.MinInstant
	case a.Fate == control.Duplicate:
		c.conclude(i, control.Applied, a.Detail, out)
	case a.Fate.Final():
		c.conclude(i, a.Fate, a.Detail, out)
	}
}

func (c *Core) conclude(i int, f control.Fate, detail string, out *Output) {
	s := c.outbox[i].signal
	out.fate(c.outbox[i].group, s, f, detail)
	c.outbox, c.again = slices.Delete(c.outbox, i, i+1), clocksync.MinInstant
	c.execFate(s, f)
	c.orderFate(s, f)
}

// retry repeats what was not answered and gives up what is past its time, or whose
// target is another one.
func (c *Core) retry(out *Output) {
	if c.now < c.again {
		return
	}
	next := clocksync.MaxInstant
	for i := 0; i < len(c.outbox); {
		p := c.outbox[i]
		switch {
		case c.gave(p):
			c.conclude(i, control.Unconfirmed, "the target is gone", out)
		case c.now >= p.deadline && p.waiting:
			c.conclude(i, control.Expired, "the target did not get to it in time", out)
		case c.now >= p.deadline:
			c.conclude(i, control.Unconfirmed, "no answer", out)
		default:
			if c.now >= p.next {
				c.transmit(p, out)
				if p.waiting {
					p.next = min(p.deadline, c.now.Add(waitingAgain))
				}
			}
			next = min(next, p.next)
			i++
		}
	}
	c.again = next
}

// gave reports whether the signal's target is no longer what it was.
func (c *Core) gave(p *pending) bool {
	if p.group != "" {
		return c.others[p.group].gave(p)
	}
	// One that is forgotten has been gone for long.
	return p.member == nil || p.member.gone || p.member.incarnation != p.incarnation
}

func (o *Output) fate(group string, s *control.Signal, f control.Fate, detail string) {
	o.Fates = append(o.Fates, monitor.Fate{Signal: s, Fate: f, Detail: detail, Group: group})
}
