package tracecore

import (
	"fmt"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/trace"
	"github.com/gopegasus/pegasus/scgs"
)

// unheard is the clock domain of a participant that has not reported.
const unheard clocksync.Domain = "?"

// member is what a participant's lines are checked against, and its open state.
type member struct {
	name        string
	domain      clocksync.Domain // unheard before the first line, if not known
	incarnation uint64           // 0 before the first line
	seen        seen
	newest      clocksync.Stamp // its infinite ends are left out
	left        bool
	gone        bool // has left for ever
	// open is its state or run that has not ended, or 0.
	open scgs.Ref
}

func newMember(p Participant) member {
	return member{
		name: p.Name, domain: p.Domain,
		newest: clocksync.Stamp{
			Mono:   clocksync.MinInstant,
			Within: clocksync.Interval{Earliest: clocksync.MinInstant, Latest: clocksync.MinInstant},
		},
	}
}

// dropped reports whether the line is passed over, and counts it.
func (m *member) dropped(l *trace.Line, s *Stats) bool {
	switch {
	case m.gone:
		s.Gone++
	case l.Incarnation < m.incarnation:
		s.OldIncarnations++
	case l.Incarnation > m.incarnation:
		return false
	case l.Type == trace.Alive && l.Seq < m.seen.newest:
		s.OldAlive++
	case l.Type != trace.Alive && m.seen.has(l.Seq):
		s.Duplicates++
	default:
		return false
	}
	return true
}

// check says what is wrong with the line.
func (m *member) check(l *trace.Line) error {
	if l.Within.Earliest > l.Within.Latest {
		return faultf("earliest %d is after latest %d", l.Within.Earliest, l.Within.Latest)
	}
	if l.Incarnation == m.incarnation {
		switch {
		case string(l.Domain) != string(m.domain):
			return faultf("%s moves from clock domain %q to %q: only a higher incarnation can", m.title(), m.domain, l.Domain)
		case m.left:
			return faultf("%s has left: only a higher incarnation can come back", m.title())
		case l.Type != trace.Alive && l.Seq <= m.seen.newest:
			return faultf("seq %d of %s is not above %d and never came before: the lines of a participant stand in its order", l.Seq, m.title(), m.seen.newest)
		}
	}
	return m.regress(l)
}

// regress says which part of the stamp goes back. On another clock, which only
// another incarnation can have, no readings are compared, and an interval may be
// wider or narrower.
func (m *member) regress(l *trace.Line) error {
	last := m.newest
	if string(l.Domain) == string(m.domain) {
		switch {
		case l.Mono < last.Mono:
			return m.goesBack("mono", l.Mono, last.Mono)
		case l.Within.Earliest.Finite() && l.Within.Earliest < last.Within.Earliest:
			return m.goesBack("earliest", l.Within.Earliest, last.Within.Earliest)
		case l.Within.Latest < last.Within.Latest:
			return m.goesBack("latest", l.Within.Latest, last.Within.Latest)
		}
	}
	if l.Within.Latest < last.Within.Earliest {
		return faultf("latest %d of %s is before %d, the earliest of a line before it", l.Within.Latest, m.title(), last.Within.Earliest)
	}
	return nil
}

func (m *member) goesBack(what string, to, from clocksync.Instant) error {
	return faultf("%s of %s goes back from %d to %d", what, m.title(), from, to)
}

// title names the participant in a message.
func (m *member) title() string {
	const most = 64
	name := []rune(m.name)
	if len(name) > most {
		return fmt.Sprintf("%q...", string(name[:most]))
	}
	return fmt.Sprintf("%q", m.name)
}

func faultf(format string, args ...any) *trace.Error {
	return &trace.Error{Reason: fmt.Sprintf(format, args...)}
}

// stamp returns the line's stamp, no part of which is before the newest: of two
// events of one participant the later one is not earlier, so to raise the lower
// end narrows the interval rightly, and to raise the upper one widens it.
func (m *member) stamp(l *trace.Line) clocksync.Stamp {
	return clocksync.Stamp{
		Domain: m.domain, Mono: l.Mono,
		Within: clocksync.Interval{
			Earliest: max(l.Within.Earliest, m.newest.Within.Earliest),
			Latest:   max(l.Within.Latest, m.newest.Within.Latest),
		},
	}
}

// note keeps the newest stamp.
func (m *member) note(at clocksync.Stamp) {
	if at.Within.Latest == clocksync.MaxInstant {
		at.Within.Latest = m.newest.Within.Latest
	}
	m.newest = at
}
