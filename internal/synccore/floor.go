package synccore

import (
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// KeptFloor is the instant that no hold time begins before: the last change of members, memory,
// parameters or the parent's signals. A condition may have been false until then, although the
// states of the global state are older.
type KeptFloor struct {
	Domain clocksync.Domain  `json:"domain,omitempty"` // of all members; empty: they are in several
	Mono   clocksync.Instant `json:"mono"`             // on the clock of Domain
	Time   clocksync.Instant `json:"time"`             // reference time
}

var noFloor = KeptFloor{Mono: clocksync.MinInstant, Time: clocksync.MinInstant}

// floorOn is the floor on the clock that measures a span.
func (f *KeptFloor) floorOn(span *scgs.Span) clocksync.Instant {
	if span.SameClock {
		return f.Mono
	}
	return f.Time
}

// raise brings the floor up to instants on its clocks.
func (f *KeptFloor) raise(mono, time clocksync.Instant) {
	f.Mono, f.Time = max(f.Mono, mono), max(f.Time, time)
}

// present is now on the clocks of the floor: the host's clock, where that is the one, else the
// newest evidence of the members.
func (c *Core) present() (mono, time clocksync.Instant) {
	mono, time = c.now, c.now
	if c.floor.Domain != "" && c.floor.Domain != c.opt.Reference && !c.opt.Local {
		mono = clocksync.MinInstant
		for _, m := range c.inEpoch {
			mono = max(mono, m.newestReading())
		}
	}
	if !c.opt.Relative {
		time = clocksync.MinInstant
		for _, m := range c.inEpoch {
			if latest := m.newestTime(); latest.Finite() {
				time = max(time, latest)
			}
		}
	}
	return mono, time
}

// newestTime is the latest reference time of the newest stamp of a member.
func (m *member) newestTime() clocksync.Instant {
	if m.listed && m.multiplexer.within.Latest.Finite() {
		return max(m.within.Latest, m.multiplexer.within.Latest)
	}
	return m.within.Latest
}

// noteChange takes note that memory, a parameter or a signal of the parent has changed. Without
// a judged global state nothing tells how the condition of a hold time fares until the next one.
func (c *Core) noteChange() {
	c.rejudge = true
	c.floor.raise(c.present())
	if c.tuple && c.judged && c.ev.Kind == scgs.Opened {
		return
	}
	for i := range c.states {
		if r, s := c.plan.Rules[i], &c.states[i]; s.holding && (r.When == nil || c.scope.Affects(r.When)) {
			s.release()
		}
	}
}

// holdsLast reports whether hold times may continue in the epoch that is about to begin: the last
// global state was judged, and each member that leaves said so and was in it with its last state.
func (c *Core) holdsLast() bool {
	lasts := c.process == nil
	for _, m := range c.inEpoch {
		if m.state.Seq > 0 {
			m.was = m.state.Seq
			lasts = lasts && c.judged
		}
		lasts = lasts && !m.state.Unknown
	}
	for _, m := range c.removing {
		queue := c.det.States(nil, m.index)
		n := len(queue)
		lasts = lasts && m.why == whyLeft && m.was > 0 && !m.behind() && m.last <= m.was+1 && (n == 0 || queue[n-1].Seq == m.was)
	}
	return lasts
}

// newFloor sets the floor for the epoch that has begun, in which those that are gone no longer
// are. It reports whether hold times are measured on the same clock as before.
func (c *Core) newFloor(gone []*member, entered bool) (same bool) {
	before := c.floor.Domain
	c.floor.Domain = ""
	if n := len(c.inEpoch); n > 0 && !slices.ContainsFunc(c.inEpoch, func(m *member) bool { return m.domain != c.inEpoch[0].domain }) {
		c.floor.Domain = c.inEpoch[0].domain
	}
	same = c.floor.Domain == before
	mono, time := c.present()
	if !same && c.floor.Mono > clocksync.MinInstant {
		c.floor.Mono = mono // The old one is on another clock.
	}
	if entered && c.epoch > 1 {
		c.floor.raise(mono, time)
	}
	for _, m := range gone {
		end, latest := mono, time
		if m.domain == c.floor.Domain {
			end = m.newestReading()
		}
		if t := m.newestTime(); t.Finite() {
			latest = t
		}
		c.floor.raise(end, latest)
	}
	return same
}

// continueHolds ends the hold times of the epoch before, on the first global state of this one,
// unless those that stayed have the same states.
func (c *Core) continueHolds() {
	if !slices.ContainsFunc(c.inEpoch, func(m *member) bool { return m.state.Unknown || m.was > 0 && m.was != m.state.Seq }) {
		return
	}
	for i := range c.states {
		if s := &c.states[i]; !s.told && s.holding {
			s.release()
		}
	}
}
