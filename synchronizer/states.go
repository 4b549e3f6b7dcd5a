package synchronizer

import (
	"cmp"
	"maps"
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/scgs"
)

// maxEarly is how many reports of a member wait for a missing report. Then the missing report
// is lost.
const maxEarly = 1024

// stateLog finds the states of members in the inputs of a journal. It reads no clock and hands each state to emit once,
// when its end is known or will not be known.
type stateLog struct {
	opt     synccore.Options // of the recorded run
	schema  scgs.Schema
	members map[string]*loggedMember
	emit    func(memberState)
}

// memberState is a state with times of the reference clock. From start.From to start.To it began, from end.From to
// end.To it ended.
type memberState struct {
	member, host string
	start, end   monitor.Range
	open         bool // it had not ended at end.From
	state        monitor.Values
}

type loggedMember struct {
	name, host  string
	incarnation uint64
	domain      clocksync.Domain
	timed       bool         // its stamps have bounds on the reference time
	next        uint64       // number of the next report; 0: any
	early       []earlyEvent // reports behind a missing one, by number
	state       *memberState // begun, not ended; nil: none is known
	seq         uint64       // of state
}

// earlyEvent is a report that waits for an earlier one. The state is nil for an end.
type earlyEvent struct {
	seq   uint64
	at    monitor.Range
	state monitor.Values
	end   bool
}

// noteInput takes an input of a journal.
func (l *stateLog) noteInput(now clocksync.Instant, in *synccore.Input) {
	switch {
	case in.Group != "":
	case in.Kind == synccore.InHello:
		l.hello(in.From, in.Hello)
	case in.Kind == synccore.InBatch:
		l.batch(now, in.From, in.Batch)
	case in.Kind == synccore.InGone:
		if m := l.members[in.From]; m != nil && m.incarnation == in.Gone.Incarnation {
			l.lose(m, in.Gone.First)
		}
	case in.Kind == synccore.InAlive:
		for i := range in.Alive {
			a := &in.Alive[i]
			if m := l.members[a.Member]; m != nil && m.incarnation == a.Incarnation {
				l.evidence(now, m, &a.Evidence)
			}
		}
	case in.Kind == synccore.InRestart: // Its clock may be another one.
		l.finishStates(false)
		l.opt = in.Restart.Resolved()
	}
}

func (l *stateLog) hello(name string, h *wire.Hello) {
	m := l.members[name]
	if m != nil && m.incarnation > h.Incarnation {
		return
	}
	if m != nil && m.incarnation == h.Incarnation {
		m.host, m.domain, m.timed = h.Host, h.Domain, h.Quality.Timeline != ""
		return
	}
	if m != nil {
		l.lose(m, m.next)
		l.forget(m)
	}
	l.members[name] = &loggedMember{name: name, host: h.Host, incarnation: h.Incarnation, domain: h.Domain, timed: h.Quality.Timeline != ""}
}

func (l *stateLog) batch(now clocksync.Instant, name string, b *wire.Batch) {
	m := l.members[name]
	if m == nil || m.incarnation != b.Incarnation {
		return
	}
	for i := range b.Reports {
		r := &b.Reports[i]
		e := earlyEvent{seq: r.Seq, at: l.when(now, m, &r.At), end: r.End}
		if !r.End {
			e.state = monitor.NewValues(l.schema, r.Row)
		}
		switch {
		case m.next == 0 || r.Seq == m.next:
			l.take(m, &e)
			l.drain(m)
		case r.Seq > m.next:
			l.keep(m, e)
		}
	}
	if b.Evidence.Seq > 0 {
		l.evidence(now, m, &b.Evidence)
	}
	if b.Leaving {
		l.forget(m)
	}
}

// when is the time of a stamp. What it does not bound is bounded by the arrival of the message that has it.
func (l *stateLog) when(now clocksync.Instant, m *loggedMember, at *clocksync.Stamp) monitor.Range {
	within := clocksync.Unbounded
	switch {
	case l.opt.Reference != "" && m.domain == l.opt.Reference: // Stamps of a journal do not repeat the domain.
		within = clocksync.Exactly(at.Mono)
	case l.opt.Relative && m.timed:
		within = at.Within
	}
	if within.Earliest > now || !within.Valid() { // The member's clock is wrong.
		within = clocksync.Unbounded
	}
	return monitor.Range{From: within.Earliest, To: min(within.Latest, now)}
}

// take ends the state of a member, and begins the next one.
func (l *stateLog) take(m *loggedMember, e *earlyEvent) {
	at := e.at
	if s := m.state; s != nil {
		at.From = max(at.From, s.start.From, s.end.From) // It held at its last evidence.
		at.To = max(at.To, at.From)
		s.end, s.open = at, false
		l.emit(*s)
		m.state = nil
	}
	m.next = e.seq + 1
	if e.end {
		return
	}
	m.seq = e.seq
	m.state = &memberState{member: m.name, host: m.host, start: at, end: monitor.Range{From: at.From, To: at.From}, open: true, state: e.state}
}

func (l *stateLog) evidence(now clocksync.Instant, m *loggedMember, e *wire.Evidence) {
	if m.state != nil && m.seq == e.Seq {
		at := l.when(now, m, &e.At)
		m.state.end.From = max(m.state.end.From, at.From)
		m.state.end.To = m.state.end.From
	}
}

// keep puts a report aside until those before it come.
func (l *stateLog) keep(m *loggedMember, e earlyEvent) {
	i, found := slices.BinarySearchFunc(m.early, e.seq, func(a earlyEvent, seq uint64) int { return cmp.Compare(a.seq, seq) })
	if found {
		return
	}
	if m.early = slices.Insert(m.early, i, e); len(m.early) > maxEarly {
		l.lose(m, m.early[0].seq)
	}
}

// drain takes the reports that waited and have their turn.
func (l *stateLog) drain(m *loggedMember) {
	n := 0
	for n < len(m.early) && m.early[n].seq <= m.next {
		if m.early[n].seq == m.next {
			l.take(m, &m.early[n])
		}
		n++
	}
	m.early = slices.Delete(m.early, 0, n)
}

// lose gives up the reports before a number: the state before them has an unknown end.
func (l *stateLog) lose(m *loggedMember, first uint64) {
	if m.next == 0 || first <= m.next {
		return
	}
	l.forget(m)
	for len(m.early) > 0 && m.early[0].seq < first {
		e := m.early[0]
		if e.seq > m.next {
			l.forget(m)
		}
		m.early = m.early[1:]
		l.take(m, &e)
	}
	if m.next < first {
		l.forget(m)
		m.next = first
	}
	l.drain(m)
}

// forget emits the state of a member, of whose end nothing is known but that it is after the last evidence.
func (l *stateLog) forget(m *loggedMember) {
	if m.state != nil {
		m.state.open = false
		l.emit(*m.state)
		m.state = nil
	}
}

// finishStates emits the states that have not ended. They are open if the journal ends here.
func (l *stateLog) finishStates(open bool) {
	for _, name := range slices.Sorted(maps.Keys(l.members)) {
		m := l.members[name]
		if n := len(m.early); n > 0 {
			l.lose(m, m.early[n-1].seq+1)
		}
		if m.state != nil && open {
			l.emit(*m.state)
			continue
		}
		l.forget(m)
	}
	clear(l.members)
}
