package synccore

import (
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// summary is the state of the virtual member that the group is for its parent:
// it holds from the latest start to the earliest end in each global state.
// Consecutive global states with equal summaries that a single event separates
// are one state of it.
type summary struct {
	open   bool
	row    []scgs.Value
	alive  clocksync.Stamp
	ended  clocksync.Stamp // of a state that the next global state may prolong
	ending bool
	last   clocksync.Stamp // end of the state before; no state begins earlier
	events []SummaryEvent
}

// summaryOpened starts a virtual state, or prolongs the last one.
func (c *Core) summaryOpened() {
	s := &c.summary
	if c.ev.Partial {
		s.end()
		return
	}
	row := make([]scgs.Value, len(c.plan.Summaries))
	for i, t := range c.plan.Summaries {
		if row[i] = t.Default; t.Expr != nil {
			row[i], _ = t.Expr.EvalValue(c.scope)
		}
	}
	if s.ending && c.ev.Step && slices.Equal(row, s.row) {
		s.ending = false
		return
	}
	s.end()
	c.parts = c.det.Witness(c.parts[:0])
	s.open, s.row, s.alive = true, row, clocksync.Stamp{}
	s.events = append(s.events, SummaryEvent{SummaryStart, notBefore(c.latestStart(), s.last), row})
}

// summaryClosed ends the virtual state with the global state. It is called before an
// epoch changes, too: the state of a member that leaves has no part in the detector
// afterwards.
func (c *Core) summaryClosed() {
	if s := &c.summary; c.plan.Summary() && s.open && !s.ending {
		c.parts = c.det.Witness(c.parts[:0])
		s.ended, s.ending = c.earliestEnd(), true
	}
}

// end tells the end that was held back.
func (s *summary) end() {
	if s.ending {
		s.events = append(s.events, SummaryEvent{Kind: SummaryEnd, At: s.ended})
		s.open, s.ending, s.last = false, false, s.ended
	}
}

// summarizeSweep hands over what the sweep has found and the newest evidence.
func (c *Core) summarizeSweep(out *Output) {
	s := &c.summary
	if !c.plan.Summary() {
		return
	}
	s.end()
	out.Summary = append(out.Summary, s.events...)
	s.events = s.events[:0]
	if !s.open || !c.tuple {
		return
	}
	c.parts = c.det.Witness(c.parts[:0])
	if alive := c.earliestEnd(); clocksync.CertainlyBefore(s.alive, alive) || s.alive.Domain == "" {
		s.alive = alive
		out.Summary = append(out.Summary, SummaryEvent{Kind: SummaryAlive, At: alive})
	}
}

// notBefore moves a start up to the end of the state before: when a member has
// gone, the states of the others may reach further back than that.
func notBefore(at, end clocksync.Stamp) clocksync.Stamp {
	if at.Domain == end.Domain && at.Mono < end.Mono {
		return later(at, end)
	}
	return at
}

// latestStart is the start of the virtual state: all members have theirs. The
// members of a thread-level synchronizer share one clock domain.
func (s *scratch) latestStart() clocksync.Stamp {
	at := s.parts[0].Start
	for _, p := range s.parts[1:] {
		at = later(at, p.Start)
	}
	return at
}

// later is an instant at or after both.
func later(at, other clocksync.Stamp) clocksync.Stamp {
	at.Mono = max(at.Mono, other.Mono)
	at.Within.Earliest = max(at.Within.Earliest, other.Within.Earliest)
	at.Within.Latest = max(at.Within.Latest, other.Within.Latest)
	return at
}

// earliestEnd is the end of the virtual state, or the newest evidence for it.
func (s *scratch) earliestEnd() clocksync.Stamp {
	at := s.parts[0].End
	for _, p := range s.parts[1:] {
		at.Mono = min(at.Mono, p.End.Mono)
		at.Within.Earliest = min(at.Within.Earliest, p.End.Within.Earliest)
		at.Within.Latest = min(at.Within.Latest, p.End.Within.Latest)
	}
	return at
}
