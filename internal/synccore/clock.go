package synccore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/scgs"
)

// mixedClocks says why the stamps of a member cannot be compared with the stamps of the
// others; "" if they can.
func (c *Core) mixedClocks(m *member, h *wire.Hello) string {
	timeline := h.Quality.Timeline
	if timeline == "" {
		return ""
	}
	if ours := c.opt.Timeline; ours != "" && timeline != ours {
		return fmt.Sprintf("member %q stamps by the timeline %q, and %s compares by %q: leave agent.Config.Clock unset, or start the synchronizer with that timeline", h.Member, timeline, c.plan.Name, ours)
	}
	// An incarnation may get its timeline late, but only once.
	if m != nil && h.Incarnation == m.incarnation && m.quality.Timeline != "" && m.quality.Timeline != timeline {
		return fmt.Sprintf("member %q has changed its timeline from %q to %q without a new incarnation", h.Member, m.quality.Timeline, timeline)
	}
	return ""
}

// takeHelloQuality takes the quality that a hello tells.
func (c *Core) takeHelloQuality(m *member, q clocksync.Quality, out *Output) {
	if q.Timeline == "" {
		q.Timeline = m.quality.Timeline
	}
	m.quality.Timeline = q.Timeline
	c.enterDomain(m)
	c.takeQuality(m, q, out)
}

// takeQuality takes the present quality of a member's clock; its timeline stays.
func (c *Core) takeQuality(m *member, q clocksync.Quality, out *Output) {
	before := m.quality.Status
	q.Timeline = m.quality.Timeline
	m.quality = q
	if q.Status != before && !c.opt.Local {
		out.Clocks = append(out.Clocks, monitor.Clock{Name: m.name, Quality: q})
	}
}

// changeTimeline takes out all members that measured their clocks against the reference
// clock before it stood still: they come back when they have measured again. Members
// that read the reference clock itself stay.
func (c *Core) changeTimeline(timeline clocksync.Timeline) {
	if !c.opt.Relative || timeline == c.opt.Timeline {
		return
	}
	c.opt.Timeline = timeline
	for _, m := range c.sorted {
		if !m.gone && m.quality.Timeline != "" {
			c.removeMember(m, "the reference clock stood still, and what was measured against it is void")
		}
	}
}

// readsReference reports whether a member reads the very clock that is the reference.
func (c *Core) readsReference(m *member) bool {
	return c.opt.Relative && m.domain == c.opt.Reference
}

// timeStamp makes a stamp comparable with the stamps of other members. The readings of the
// reference clock are the reference time. A bound without a timeline is left out. It
// is false for a stamp that is too old to be put in the order of its domain, and lost.
func (c *Core) timeStamp(m *member, at *clocksync.Stamp, out *Output) bool {
	switch {
	case !at.Within.Valid() || at.Domain != m.domain: // It is refused later.
	case m.shared != nil:
		m.read = max(m.read, at.Mono)
		next, ok := m.shared.orderStamp(*at)
		if !ok {
			out.addRefusal(monitor.RejectOrder, m.name, fmt.Sprintf("the reading %v is older than the stamps of its clock domain that are kept: taken for lost", at.Mono))
		}
		*at = next
		return ok
	case c.readsReference(m):
		at.Within = clocksync.Exactly(at.Mono)
	case m.quality.Timeline == "" && c.opt.Timeline != "" && at.Within != clocksync.Unbounded:
		at.Within = clocksync.Unbounded
		if !m.stripped {
			m.stripped = true
			out.addRefusal(monitor.RejectTimeline, m.name, fmt.Sprintf("the intervals of member %q are left out, since its clock names no timeline: clocksync.Quality.Timeline has to", m.name))
		}
	}
	return true
}

// bound is the widest half width of the stamps that the tuple rests on. An end without
// a latest time does not count: only its earliest was used.
func (t *scratch) bound(span scgs.Span) time.Duration {
	var widest time.Duration
	if span.SameClock {
		return 0
	}
	for _, p := range t.parts {
		for _, s := range []clocksync.Stamp{p.Start, p.End} {
			if !p.Unknown && s.Within.Latest.Finite() {
				widest = max(widest, (s.Within.Width()+1)/2)
			}
		}
	}
	return widest
}

// clockSources names the clock sources of the tuple's bounds.
func (c *Core) clockSources(span scgs.Span) string {
	if span.SameClock {
		return ""
	}
	var names []string
	for _, p := range c.parts {
		m := c.byIndex[p.Member]
		if c.readsReference(m) {
			continue
		}
		name := m.quality.Source
		if m.quality.Assumed {
			name += " (assumed)"
		}
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, "+")
}
