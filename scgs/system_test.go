package scgs_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

type action uint8

const (
	start action = iota
	end
	evidence
	restart
	lost
)

// message is one report of a member, or what a synchronizer decides about it.
type message struct {
	member int
	action action
	seq    uint64
	ref    scgs.Ref // names a state over all incarnations
	at     clocksync.Stamp
	domain clocksync.Domain // of a restart
	holds  bool             // the local condition, in the state that starts
}

// system is a random history and the messages about it in order of arrival.
type system struct {
	domains []clocksync.Domain // of each member at the start
	streams [][]message        // of each member, whole
	arrived []message
}

// hazards are percentages.
type hazards struct {
	loss, duplicates, ends, losts int
	crashes                       int // of the messages: from there on there is silence
	restarts, moves               int // moves of the restarts
	infinite                      int // of the events of half the domains
	promises                      int // of the evidence
	longer                        int // no percentage: a member has up to so many messages more
	grid                          int // no percentage: lower ends are multiples of it, so that many are equal
}

// occurrence is an event before it has a stamp.
type occurrence struct {
	member, place int
	t             clocksync.Instant
	domain        int
}

// newSystem draws a history of 2 to 5 members on 1 to 4 clocks with small
// numbers, so that ties and empty states are frequent.
func newSystem(d draw, h hazards) *system { return newSystemOf(2+d(4), 1+d(4), d, h) }

func newSystemOf(members, clocks int, d draw, h hazards) *system {
	s := &system{}
	var when []occurrence
	for m := range members {
		domain := d(clocks)
		s.domains = append(s.domains, name(domain))
		stream, occurrences := history(d, h, m, domain, clocks)
		s.streams = append(s.streams, stream)
		when = append(when, occurrences...)
	}
	s.stamp(d, h, when, clocks)
	s.promise(d, h)
	s.deliver(d, h)
	return s
}

func name(domain int) clocksync.Domain { return clocksync.Domain(fmt.Sprintf("d%d", domain)) }

// history draws what one member does.
func history(d draw, h hazards, m, domain, clocks int) ([]message, []occurrence) {
	var (
		stream []message
		when   []occurrence
		t      = clocksync.Instant(d(8))
		seq    uint64
		open   bool
	)
	for n := 1 + d(7+h.longer); n > 0; n-- {
		if open && d.chance(h.restarts) {
			if d.chance(h.moves) {
				domain = d(clocks)
			}
			stream = append(stream, message{member: m, action: restart, domain: name(domain)})
			seq, open = 0, false
		}
		msg := message{member: m, action: start}
		switch {
		case open && d.chance(35):
			msg.action = evidence
		case open && d.chance(h.ends):
			msg.action, open = end, false
			seq++
		default:
			open, msg.holds = true, d.chance(60)
			seq++
		}
		msg.seq = seq
		msg.ref = scgs.Ref(100*m + len(stream) + 1)
		when = append(when, occurrence{m, len(stream), t, domain})
		stream = append(stream, msg)
		t += clocksync.Instant(d(7))
	}
	return stream, when
}

// stamp gives each event its stamp. The readings of a clock are its own; its
// intervals contain the true time and are monotone over all its members, and over
// all clocks of a member.
func (s *system) stamp(d draw, h hazards, when []occurrence, clocks int) {
	rules := make([]clocksync.Monotone, clocks)
	infinite := make([]int, clocks)
	for c := range infinite {
		infinite[c] = d(2) * h.infinite
		if h.infinite > 0 && d(12) == 0 {
			infinite[c] = 100
		}
	}
	reached := make([]clocksync.Interval, len(s.streams))
	for m := range reached {
		reached[m] = clocksync.Interval{Earliest: clocksync.MinInstant, Latest: clocksync.MinInstant}
	}
	slices.SortStableFunc(when, func(a, b occurrence) int { return cmp.Compare(a.t, b.t) })
	for _, o := range when {
		at := clocksync.Stamp{
			Domain: name(o.domain),
			Mono:   o.t + clocksync.Instant(1000*(3-o.domain)),
			Within: clocksync.Interval{Earliest: o.t - clocksync.Instant(d(5)), Latest: o.t + clocksync.Instant(d(5))},
		}
		if h.grid > 0 {
			at.Within = clocksync.Interval{Earliest: o.t - o.t%clocksync.Instant(h.grid), Latest: o.t}
		}
		if d.chance(infinite[o.domain]) {
			at.Within.Latest = clocksync.MaxInstant
			if d(2) == 0 {
				at.Within.Earliest = clocksync.MinInstant
			}
		}
		r := &reached[o.member]
		at.Within.Earliest = max(at.Within.Earliest, r.Earliest)
		at.Within.Latest = max(at.Within.Latest, r.Latest)
		at, ok := rules[o.domain].Next(at)
		if !ok {
			panic("the generator's clock ran backwards")
		}
		r.Earliest = at.Within.Earliest
		if at.Within.Latest != clocksync.MaxInstant {
			r.Latest = at.Within.Latest
		}
		s.streams[o.member][o.place].at = at
	}
}

// promise makes some evidence a promise that the state lasts until a time, at most
// to where the next report begins.
func (s *system) promise(d draw, h hazards) {
	for _, stream := range s.streams {
		for i := range stream {
			if stream[i].action != evidence || !d.chance(h.promises) {
				continue
			}
			w := &stream[i].at.Within
			until := w.Earliest + clocksync.Instant(d(12))
			for _, later := range stream[i+1:] {
				if later.action != restart {
					until = min(until, later.at.Within.Earliest)
				}
			}
			w.Earliest = max(w.Earliest, until)
			w.Latest = clocksync.MaxInstant
		}
	}
}

// deliver draws the order of arrival: any between members, in order for each,
// with what is lost and doubled. Of a member that crashes nothing more arrives,
// and it is given up some time later.
func (s *system) deliver(d draw, h hazards) {
	s.arrived = nil
	coming := slices.Clone(s.streams)
	for {
		var ready []int
		for m := range coming {
			if len(coming[m]) > 0 {
				ready = append(ready, m)
			}
		}
		if len(ready) == 0 {
			return
		}
		m := ready[d(len(ready))]
		msg := coming[m][0]
		coming[m] = coming[m][1:]
		if msg.action == restart || msg.action == lost || !d.chance(h.loss) {
			s.arrived = append(s.arrived, msg)
		}
		if d.chance(h.duplicates) && len(s.arrived) > 0 {
			if i := d(len(s.arrived)); s.current(i) {
				s.arrived = append(s.arrived, s.arrived[i])
			}
		}
		switch {
		case d.chance(h.losts):
			s.arrived = append(s.arrived, message{member: m, action: lost})
		case d.chance(h.crashes) && len(coming[m]) > 0:
			coming[m] = []message{{member: m, action: lost}}
		}
	}
}

// current reports whether an arrived message is one of its member's newest
// incarnation, and the newest with its reading: of several the last to arrive
// counts.
func (s *system) current(i int) bool {
	m := s.arrived[i]
	for _, msg := range s.arrived[i:] {
		switch {
		case msg.member != m.member:
		case msg.action == restart, msg.at.Mono == m.at.Mono && msg.at != m.at:
			return false
		}
	}
	return m.action != lost
}

func (s *system) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "members in %v\n", s.domains)
	for _, msg := range s.arrived {
		fmt.Fprintln(&b, msg)
	}
	return b.String()
}

func (m message) String() string {
	verb := [...]string{"start", "end", "evidence", "restart", "lost"}[m.action]
	if m.holds {
		verb = "start of a true"
	}
	return fmt.Sprintf("%s m=%d seq=%d ref=%d at=%v %s", verb, m.member, m.seq, m.ref, m.at, m.domain)
}

// listener is told of everything but the start of a state, which differs.
type listener interface {
	End(m scgs.Member, seq uint64, at clocksync.Stamp) scgs.Reason
	Evidence(m scgs.Member, seq uint64, at clocksync.Stamp) scgs.Reason
	Lost(m scgs.Member) scgs.Reason
	Restart(m scgs.Member, domain clocksync.Domain, ended clocksync.Instant) scgs.Reason
}

// intake is what a detector of states or runs takes.
type intake interface {
	listener
	Start(m scgs.Member, seq uint64, at clocksync.Stamp, ref scgs.Ref) scgs.Reason
}

// ofRuns is the message to a detector of runs.
func (m message) ofRuns() message {
	if m.action == start && !m.holds {
		m.action = end
	}
	return m
}

// put gives a message to a detector.
func put(d intake, m scgs.Member, msg message) scgs.Reason {
	if msg.action == start {
		return d.Start(m, msg.seq, msg.at, msg.ref)
	}
	return hand(d, m, msg)
}

// hand gives one a message that starts no state.
func hand(d listener, m scgs.Member, msg message) scgs.Reason {
	switch msg.action {
	case end:
		return d.End(m, msg.seq, msg.at)
	case evidence:
		return d.Evidence(m, msg.seq, msg.at)
	case restart:
		return d.Restart(m, msg.domain, clocksync.MaxInstant)
	case lost:
		return d.Lost(m)
	case start:
	}
	panic("no such action")
}

// specs are the members of the system as a detector wants them.
func (s *system) specs() []scgs.Spec {
	var specs []scgs.Spec
	for _, d := range s.domains {
		specs = append(specs, scgs.Spec{Domain: d})
	}
	return specs
}

// once leaves out what arrives again.
func once(arrived []message) []message {
	first := make([]message, 0, len(arrived))
	for _, msg := range arrived {
		again := func(m message) bool { return m.ref == msg.ref }
		if msg.ref == 0 || !slices.ContainsFunc(first, again) {
			first = append(first, msg)
		}
	}
	return first
}

// firsts names each run by its first state.
func (s *system) firsts() map[scgs.Ref]scgs.Ref {
	first := map[scgs.Ref]scgs.Ref{}
	for _, list := range read(len(s.domains), once(s.arrived), runs) {
		for _, r := range list {
			for _, ref := range r.refs {
				first[ref] = r.ref
			}
		}
	}
	return first
}
