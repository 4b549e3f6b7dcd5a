package tracedetect

import (
	"fmt"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/tracefile"
	"github.com/gopegasus/pegasus/scgs"
)

// member is what a participant's lines are checked against, and its open state.
type member struct {
	name        string
	domain      clocksync.Domain // empty before the core's first line, if not known
	incarnation uint64           // 0 before the first line
	seen        seen
	last        stamp              // as the lines of its clock have it
	newest      clocksync.Interval // that no event to come is before
	left        bool
	gone        bool // has left for ever
	// open is its state or run that has not ended, or 0.
	open scgs.Ref
}

// stamp is the newest reading and ends on one clock; infinite ends are left out.
type stamp struct {
	mono   clocksync.Instant
	within clocksync.Interval
}

// never is before every event.
var never = clocksync.Interval{Earliest: clocksync.MinInstant, Latest: clocksync.MinInstant}

func newMember(p Participant) member {
	m := member{name: p.Name, newest: never}
	m.move(p.Domain)
	return m
}

// move takes the member to another clock.
func (m *member) move(to clocksync.Domain) {
	m.domain, m.last = to, stamp{clocksync.MinInstant, never}
}

// dropped reports whether the line is passed over, and counts it.
func (m *member) dropped(l *tracefile.Line, s *Stats) bool {
	switch {
	case m.gone:
		s.Gone++
	case l.Incarnation < m.incarnation:
		s.OldIncarnations++
	case l.Incarnation > m.incarnation:
		return false
	case l.Type == tracefile.Alive && l.Seq < m.seen.newest:
		s.OldAlive++
	case l.Type != tracefile.Alive && m.seen.has(l.Seq):
		s.Duplicates++
	default:
		return false
	}
	return true
}

// check says what is wrong with the line.
func (m *member) check(l *tracefile.Line) error {
	if l.Within.Earliest > l.Within.Latest {
		return faultf("earliest %d is after latest %d", l.Within.Earliest, l.Within.Latest)
	}
	if l.Incarnation == m.incarnation {
		switch {
		case string(l.Domain) != string(m.domain):
			return faultf("%s moves from clock domain %q to %q: only a higher incarnation can", m.title(), m.domain, l.Domain)
		case m.left:
			return faultf("%s has left: only a higher incarnation can come back", m.title())
		case l.Type != tracefile.Alive && l.Seq <= m.seen.newest:
			return faultf("seq %d of %s is not above %d and never came before: the lines of a participant stand in its order", l.Seq, m.title(), m.seen.newest)
		}
	}
	return m.regress(l)
}

// regress says which part of the stamp goes back. On another clock, which only
// another incarnation can have, no readings are compared, and an interval may be
// wider or narrower.
func (m *member) regress(l *tracefile.Line) error {
	if string(l.Domain) == string(m.domain) {
		switch last := m.last.within; {
		case l.Mono < m.last.mono:
			return m.goesBack("mono", l.Mono, m.last.mono)
		case l.Within.Earliest.Finite() && l.Within.Earliest < last.Earliest:
			return m.goesBack("earliest", l.Within.Earliest, last.Earliest)
		case l.Within.Latest < last.Latest:
			return m.goesBack("latest", l.Within.Latest, last.Latest)
		}
	}
	if l.Within.Latest < m.newest.Earliest {
		return faultf("latest %d of %s is before %d, the earliest of a line before it", l.Within.Latest, m.title(), m.newest.Earliest)
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

func faultf(format string, args ...any) *tracefile.Error {
	return &tracefile.Error{Reason: fmt.Sprintf(format, args...)}
}

// stamp returns the line's stamp, no part of which is before the newest: of two
// events of one participant the later one is not earlier, so to raise the lower
// end narrows the interval rightly, and to raise the upper one widens it.
func (m *member) stamp(l *tracefile.Line) clocksync.Stamp {
	return clocksync.Stamp{Domain: m.domain, Mono: l.Mono, Within: raised(m.newest, l.Within)}
}

// note keeps the line's stamp.
func (m *member) note(l *tracefile.Line) {
	m.last = stamp{l.Mono, raised(m.last.within, finite(l.Within))}
	m.newest = raised(m.newest, finite(l.Within))
}

func raised(last, i clocksync.Interval) clocksync.Interval {
	return clocksync.Interval{Earliest: max(last.Earliest, i.Earliest), Latest: max(last.Latest, i.Latest)}
}

// finite leaves an infinite upper end out.
func finite(i clocksync.Interval) clocksync.Interval {
	if i.Latest == clocksync.MaxInstant {
		i.Latest = clocksync.MinInstant
	}
	return i
}
