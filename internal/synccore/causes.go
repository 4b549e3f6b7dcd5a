package synccore

import (
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/outbox"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// A firing is named by its cause, which the synchronizer finds again in its next life, from
// the states that its members tell then: who was sent a signal for it does not obey it twice.

// earlier is what members tell of the firings of earlier terms. Both maps together have at
// most [outbox.Limit] entries from each of them; what is beyond is left to the members.
type earlier struct {
	firings map[control.Cause]uint32 // of a source on a witness, the last one; by a cause without its Firing
	fates   map[earlierID]control.Fate
}

// earlierID names a signal of a firing.
type earlierID struct {
	control.Cause

	name, target string
	incarnation  uint64 // of the target
	entry        uint64
}

// sourceOf is the source of a cause: what has fired, by its name and text.
func sourceOf(name, text string) uint64 { return wire.Weight(name+"\n"+text, 0) }

// moved takes over a member's state in the global state in force.
func (c *Core) moved(m *member, to *scgs.Change) {
	c.heads += (to.Seq - m.state.Seq) * m.weight
	m.state = *to
}

// witnessed is the witness of what a predicate fires on: the global state in force, or the
// runs that its own detector has found, whose first states are in c.parts.
func (c *Core) witnessed(o *occasion) uint64 {
	if o.seqs == nil {
		return c.heads
	}
	sum := uint64(0)
	for i := range c.parts {
		sum += c.parts[i].Seq * c.byIndex[c.parts[i].Member].weight
	}
	return sum
}

// caused is the cause of the next firing of a source, whose last one is in last. On a
// witness on which it has fired in an earlier term its first firing is the last of that
// time, which was made: it may not have reached everybody.
func (c *Core) caused(last *control.Cause, witness uint64) control.Cause {
	switch {
	case last.Source == 0:
	case last.Firing > 0 && last.Witness == witness:
		last.Firing++
	default:
		last.Witness, last.Firing = witness, max(1, c.earlier.firings[control.Cause{Source: last.Source, Witness: witness}])
	}
	return *last
}

// recollect takes what a member tells of the signals of this synchronizer's earlier terms.
func (c *Core) recollect(h *wire.Hello) {
	if h.Leader != c.plan.Name || h.Term >= c.opt.Term {
		return
	}
	e := &c.earlier
	if len(h.Fates) > 0 && e.fates == nil {
		e.firings, e.fates = map[control.Cause]uint32{}, map[earlierID]control.Fate{}
	}
	for i := range h.Fates {
		if f := &h.Fates[i]; len(e.fates) < outbox.Limit {
			at := control.Cause{Source: f.Cause.Source, Witness: f.Cause.Witness}
			e.firings[at] = max(e.firings[at], f.Cause.Firing)
			e.fates[earlierID{f.Cause, f.Name, h.Member, h.Incarnation, f.Entry}] = f.Fate
		}
	}
}

// made gives a signal its cause, if its target can read it, and reports whether that has it
// from an earlier term, with its final fate.
func (c *Core) made(m *member, s *control.Signal, cause control.Cause) (control.Fate, bool) {
	if !m.causes || cause.Source == 0 {
		return 0, false
	}
	s.Cause = cause
	fate := c.earlier.fates[earlierID{cause, s.Name, m.name, m.incarnation, s.Entry}]
	return fate, fate.Final()
}

const madeBefore = "the same firing was made in an earlier term"
