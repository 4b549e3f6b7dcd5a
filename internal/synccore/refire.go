package synccore

import (
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/outbox"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// In a new epoch a predicate that stays true fires only for newcomers, the members that entered
// after its last firing: the others have had its signals.

// address is a member that signals go to.
type address struct{ group, member string }

// noteOwed notes whom the signals under way do not reach any more, as the epoch that begins fences
// them off. A predicate that stays true sends them again.
func (c *Core) noteOwed() {
	for l := range c.outbox.Letters {
		i := c.ruleIndex(l.Signal.Predicate)
		if l.Owner != outbox.Rule || i < 0 {
			continue
		}
		to := address{l.Group, l.Signal.Target}
		if s := &c.states[i]; !slices.Contains(s.owed, to) {
			s.owed = append(s.owed, to)
		}
	}
}

// settleOwed notes that a signal of an earlier epoch has reached its target after all.
func (c *Core) settleOwed(s *outbox.Settled) {
	if s.Fate == control.OldEpoch || s.Signal.Decision.Epoch == c.epoch {
		return
	}
	if i := c.ruleIndex(s.Signal.Predicate); i >= 0 {
		to := address{s.Group, s.Signal.Target}
		c.states[i].owed = slices.DeleteFunc(c.states[i].owed, func(a address) bool { return a == to })
	}
}

// settledTill is the epoch of the last firing, if the predicate is judged again in a later epoch and was
// not ready to fire again in between; 0: it fires for all.
func (s *ruleState) settledTill(r *plan.Rule) uint64 {
	if r.Refires || r.Every || s.first == 0 {
		return 0
	}
	return s.epoch
}

// isTarget reports whether a signal of a rule goes to a member that is among its targets.
func (c *Core) isTarget(r *plan.Rule, m *member, on *occasion) bool {
	return (m.joined > on.since || slices.Contains(on.owed, address{member: m.name})) && c.actsOn(r, m.name)
}

// reachesNewcomer reports whether a signal of a rule goes to a newcomer, or to a member that is owed it.
func (c *Core) reachesNewcomer(r *plan.Rule, on *occasion) bool {
	receives := func(m *member) bool { return c.isTarget(r, m, on) }
	some := slices.ContainsFunc(c.inEpoch, receives)
	return slices.ContainsFunc(r.Signals, func(o plan.Send) bool {
		switch {
		case o.Group != "":
			return slices.ContainsFunc(on.owed, func(to address) bool { return to.group == o.Group })
		case !some:
			return false
		case slices.ContainsFunc(o.Names, func(name string) bool {
			return slices.ContainsFunc(c.inEpoch, func(m *member) bool { return m.name == name && receives(m) })
		}):
			return true
		}
		c.findTargets(&o, on)
		return slices.ContainsFunc(c.targets, func(i int) bool { return receives(c.inEpoch[i]) })
	})
}

// passOver ends what a firing waits for that would reach no newcomer. A program, which waits for
// the hold time, learns that it is over.
func (c *Core) passOver(r *plan.Rule, s *ruleState) {
	s.armed = false
	s.release()
	if c.exec != nil && r.Read && r.Hold > 0 {
		c.exec.Verdict(r.Name, predicates.True, control.Decision{})
	}
}

// settledTill is the epoch of the rule's last firing, if the set found held in an earlier epoch
// in which it has fired; 0: it is new.
func (w *runs) settledTill(f *found, r *plan.Rule, s *ruleState) uint64 {
	switch {
	case r.Until != nil:
		return s.settledTill(r)
	case r.Refires || !f.again:
		return 0
	}
	return s.epoch
}

// denyModality takes note that the condition of a modality is false on a global state: a set found in a
// later epoch is new. In the epoch of its firing the end of the tuple tells that, since a global state
// can be found after a tuple that is later.
func denyModality(w *runs, s *ruleState, epoch uint64) {
	if w != nil && w.tuples != nil && s.epoch < epoch {
		w.stands = false
	}
}

// standing reports whether as many members as a threshold is of hold its condition as an epoch
// ends, and all that was found has fired. Of a member that leaves its last state counts.
func (w *runs) standing(remove []scgs.Member) bool {
	n := 0
	for m := range w.indexes {
		m := scgs.Member(m) //nolint:gosec // There are at most 100,000.
		if _, open := w.sets.Run(m); open || w.known[m].holds && slices.Contains(remove, m) {
			n++
		}
	}
	return n >= w.k && !slices.ContainsFunc(w.found, func(f *found) bool { return !f.again && !f.held })
}

// lasts reports whether each run began before the epoch, or with the first state of a member in it.
func (w *runs) lasts(f *found) bool {
	return !slices.ContainsFunc(f.runs, func(p scgs.Part) bool { return p.Seq > w.known[p.Member].begun })
}

// joinRuns adds the runs of newcomers to a set that has fired in an earlier epoch: a set that grows is
// no new one to the detector. It is false while it is not certain yet of each that it overlaps.
func (c *Core) joinRuns(w *runs, f *found) bool {
	since := w.settledTill(f, c.plan.Rules[w.rule], &c.states[w.rule])
	if since == 0 {
		return true
	}
	certain := true
	for _, m := range c.inEpoch {
		n := w.numbers[m.index]
		p, open := w.sets.Run(n)
		i, in := slices.BinarySearchFunc(f.runs, n, func(p scgs.Part, n scgs.Member) int { return int(p.Member - n) })
		switch {
		case m.joined <= since, in, !open, p.Seq > w.known[n].begun:
		case !slices.ContainsFunc(f.runs, func(q scgs.Part) bool {
			return !clocksync.CertainlyBefore(p.Start, q.End) || !clocksync.CertainlyBefore(q.Start, p.End)
		}):
			f.runs = slices.Insert(f.runs, i, p)
			f.rows = slices.Insert(f.rows, i, slices.Clone(w.row(p.Ref)))
		case !slices.ContainsFunc(f.runs, func(q scgs.Part) bool { return !q.Open }):
			certain = false // There may be evidence yet.
		}
	}
	return certain
}

// newcomers says for whom a rule that stays true fires in a new epoch, unless that is for all.
func newcomers(r *plan.Rule) string {
	if r.Refires {
		return ""
	}
	return " for its new members"
}

// ifTrue says when a rule fires again that was judged by another machine.
func ifTrue(r *plan.Rule) string {
	if r.Refires || r.Every {
		return " if it is true"
	}
	return " if it becomes true, and while it stays true for new members"
}
