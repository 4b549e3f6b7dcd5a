package synccore

import (
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
)

// asks puts a question, as a host does.
func (c *Core) asks(now clocksync.Instant, q Question) Answer {
	var out Output
	c.Step(now, &Input{Kind: InAsk, Ask: &q}, &out)
	return out.Answer
}

func (c *Core) Status(now clocksync.Instant) monitor.Status {
	return c.asks(now, Question{Status: true}).Status
}

func (c *Core) Explain(now clocksync.Instant, predicate string) (monitor.Explanation, bool) {
	if e := c.asks(now, Question{Explain: predicate}).Explanation; e != nil {
		return *e, true
	}
	return monitor.Explanation{}, false
}

// General makes the machine do everything as in the general case.
func (c *Core) General() { c.general = true }

func (c *Core) Counts() Counts { return c.asks(c.now, Question{Counts: true}).Counts }

func (c *Core) Figures() Figures { return c.asks(c.now, Question{Figures: true}).Figures }

// Heads is the sum that is kept, and as it should be.
func (c *Core) Heads() (kept, want uint64) {
	for _, m := range c.inEpoch {
		weight, seq := wire.Weight(m.name, m.incarnation), m.state.Seq
		if seq == m.same.Seq {
			weight, seq = wire.Weight(m.name, m.same.Incarnation), m.same.Of
		}
		want += seq * weight
	}
	return c.heads, want
}

func (c *Core) Epoch() uint64 { return c.inForce() }

func (c *Core) RunInput(processor string, id, number uint64) (string, bool) {
	a := c.asks(c.now, Question{Run: &RunKey{processor, id, number}})
	return a.Input, a.Found
}

// Incarnation is a member's incarnation, 0 if it is not known.
func (c *Core) Incarnation(name string) uint64 {
	if m := c.members[name]; m != nil {
		return m.incarnation
	}
	return 0
}

// Level is what the machine follows, and Made what it was made with.
func (c *Core) Level() *plan.Level { return c.plan }
func (c *Core) Made() Options      { return c.opt }

func (c *Core) News(now clocksync.Instant, in *Input) bool { return c.hasNews(now, in) }

// Domain is the clock domain of a member, empty if it is not known.
func (c *Core) Domain(name string) clocksync.Domain {
	if m := c.members[name]; m != nil {
		return m.domain
	}
	return ""
}

// Fail ends the machine as the policy of a silent member does.
func (c *Core) Fail() { c.failed = true }

// NextCauses are the numbers of firings of a source on witnesses, earlier terms included.
func NextCauses(of control.Cause, witnesses []uint64, before map[uint64]uint32) (numbers []uint32) {
	e, last := earlier{firings: map[control.Cause]uint32{}}, causes{Cause: control.Cause{Source: of.Source}}
	for w, n := range before {
		e.firings[control.Cause{Source: of.Source, Witness: w}] = n
	}
	for _, w := range witnesses {
		numbers = append(numbers, e.nextCause(&last, w).Firing)
	}
	return numbers
}
