package scgs_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// draw is a source of choices: a number in [0, n). A seed, rapid and the fuzzer
// each give one.
type draw func(n int) int

func (d draw) chance(percent int) bool { return d(100) < percent }

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
	restarts, moves               int // moves of the restarts
	infinite                      int // of the events of half the domains
	longer                        int // no percentage: a member has up to so many messages more
}

// occurrence is an event before it has a stamp.
type occurrence struct {
	member, place int
	t             clocksync.Instant
	domain        int
}

// newSystem draws a history of 1 to 5 members on 1 to 4 clocks with small
// numbers, so that ties and empty states are frequent.
func newSystem(d draw, h hazards) *system { return newSystemOf(1+d(5), 1+d(4), d, h) }

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
			open = true
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
// intervals contain the true time and are monotone over all its members.
func (s *system) stamp(d draw, h hazards, when []occurrence, clocks int) {
	rules := make([]clocksync.Monotone, clocks)
	infinite := make([]int, clocks)
	for c := range infinite {
		infinite[c] = d(2) * h.infinite
		if h.infinite > 0 && d(12) == 0 {
			infinite[c] = 100
		}
	}
	slices.SortStableFunc(when, func(a, b occurrence) int { return cmp.Compare(a.t, b.t) })
	for _, o := range when {
		at := clocksync.Stamp{
			Domain: name(o.domain),
			Mono:   o.t + clocksync.Instant(1000*(3-o.domain)),
			Within: clocksync.Interval{Earliest: o.t - clocksync.Instant(d(5)), Latest: o.t + clocksync.Instant(d(5))},
		}
		if d.chance(infinite[o.domain]) {
			at.Within.Latest = clocksync.MaxInstant
			if d(2) == 0 {
				at.Within.Earliest = clocksync.MinInstant
			}
		}
		at, ok := rules[o.domain].Next(at)
		if !ok {
			panic("the generator's clock ran backwards")
		}
		s.streams[o.member][o.place].at = at
	}
}

// deliver draws the order of arrival: any between members, in order for each,
// with what is lost and doubled.
func (s *system) deliver(d draw, h hazards) {
	next := make([]int, len(s.streams))
	for {
		var ready []int
		for m := range next {
			if next[m] < len(s.streams[m]) {
				ready = append(ready, m)
			}
		}
		if len(ready) == 0 {
			return
		}
		m := ready[d(len(ready))]
		msg := s.streams[m][next[m]]
		next[m]++
		if msg.action == restart || !d.chance(h.loss) {
			s.arrived = append(s.arrived, msg)
		}
		if d.chance(h.duplicates) && len(s.arrived) > 0 {
			if i := d(len(s.arrived)); s.current(i) {
				s.arrived = append(s.arrived, s.arrived[i])
			}
		}
		if d.chance(h.losts) {
			s.arrived = append(s.arrived, message{member: m, action: lost})
		}
	}
}

// current reports whether an arrived message is one of its member's newest
// incarnation.
func (s *system) current(i int) bool {
	for _, msg := range s.arrived[i:] {
		if msg.action == restart && msg.member == s.arrived[i].member {
			return false
		}
	}
	return s.arrived[i].action != lost
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
	return fmt.Sprintf("%s m=%d seq=%d ref=%d at=%v %s", verb, m.member, m.seq, m.ref, m.at, m.domain)
}

// put gives a message to the detector.
func put(d *scgs.Detector, m scgs.Member, msg message) scgs.Reason {
	switch msg.action {
	case start:
		return d.Start(m, msg.seq, msg.at, msg.ref)
	case end:
		return d.End(m, msg.seq, msg.at)
	case evidence:
		return d.Evidence(m, msg.seq, msg.at)
	case restart:
		return d.Restart(m, msg.domain)
	case lost:
		return d.Lost(m)
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

// state is a member's state as the reference sees it.
type state struct {
	ref        scgs.Ref
	seq        uint64
	start, end clocksync.Stamp
	closed     bool
	unknown    bool
}

// states reads a member's stream of messages, of which some may be missing but
// none is doubled, by the definitions: a state ends where the next begins, or at
// its newest evidence if something is missing in between.
func states(stream []message) []state {
	var (
		all    []state
		seq    uint64
		newest clocksync.Stamp
		finite = clocksync.MinInstant
		open   = func() *state {
			if n := len(all); n > 0 && !all[n-1].closed {
				return &all[n-1]
			}
			return nil
		}
	)
	lose := func(latest clocksync.Instant) { // from here on nothing is known
		s := open()
		if s != nil && s.unknown {
			return
		}
		gap := state{unknown: true, start: newest, end: newest}
		if s != nil {
			s.closed = true
			s.end.Within.Latest = latest
		}
		gap.start.Within.Latest = max(finite, gap.start.Within.Earliest)
		all = append(all, gap)
	}
	for _, msg := range stream {
		if msg.action == restart {
			if newest.Domain != "" {
				lose(clocksync.MaxInstant)
			}
			seq = 0
			continue
		}
		if newest.Domain == "" {
			newest = clocksync.Stamp{Domain: msg.at.Domain, Mono: clocksync.MinInstant, Within: clocksync.Interval{Earliest: clocksync.MinInstant}}
		}
		jump := msg.seq > seq+1 || msg.action == evidence && msg.seq > seq
		if jump && (seq > 0 || msg.action == evidence) { // nothing is known before the first
			lose(msg.at.Within.Latest)
		}
		if s := open(); s != nil {
			s.end = msg.at
			s.closed = msg.action != evidence
		}
		if msg.action == start {
			all = append(all, state{ref: msg.ref, seq: msg.seq, start: msg.at, end: msg.at})
		}
		seq, newest = msg.seq, msg.at
		if l := msg.at.Within.Latest; l != clocksync.MaxInstant {
			finite = max(finite, l)
		}
	}
	return all
}

// overlap is the pairwise test of the definition.
func overlap(a, b state) bool {
	return clocksync.CertainlyBefore(a.start, b.end) && clocksync.CertainlyBefore(b.start, a.end)
}

// tuple is one state of each member, by place in its list.
type tuple []int

// tuples enumerates every combination of states and keeps those that pairwise
// certainly overlap, each state with itself too.
func tuples(all [][]state) []tuple {
	var found []tuple
	var extend func(t tuple)
	extend = func(t tuple) {
		if len(t) == len(all) {
			found = append(found, slices.Clone(t))
			return
		}
	next:
		for k, s := range all[len(t)] {
			if !clocksync.CertainlyBefore(s.start, s.end) {
				continue
			}
			for m, j := range t {
				if !overlap(s, all[m][j]) {
					continue next
				}
			}
			extend(append(slices.Clone(t), k))
		}
	}
	if len(all) > 0 {
		extend(tuple{})
	}
	slices.SortFunc(found, slices.Compare)
	return found
}

// write gives a tuple as refs, "?" for UNKNOWN.
func (t tuple) write(all [][]state) string {
	var words []string
	for m, k := range t {
		words = append(words, word(all[m][k].ref, all[m][k].unknown))
	}
	return strings.Join(words, " ")
}

func word(ref scgs.Ref, unknown bool) string {
	if unknown {
		return "?"
	}
	return fmt.Sprint(ref)
}

// expect gives what a detector must have found from the messages.
func expect(members int, arrived []message) []string {
	streams := make([][]message, members)
	for _, msg := range arrived {
		streams[msg.member] = append(streams[msg.member], msg)
	}
	all := make([][]state, members)
	for m := range streams {
		all[m] = states(streams[m])
	}
	var found []string
	for _, t := range tuples(all) {
		found = append(found, t.write(all))
	}
	return found
}

// span is what a span must be, computed from the witness.
func span(parts []scgs.Part) scgs.Span {
	s := scgs.Span{
		SameClock: true, MonoFrom: clocksync.MinInstant, MonoTo: clocksync.MaxInstant,
		CoreFrom: clocksync.MinInstant, CoreTo: clocksync.MaxInstant,
		EnvelopeFrom: clocksync.MinInstant, EnvelopeTo: clocksync.MaxInstant,
	}
	for _, p := range parts {
		s.SameClock = s.SameClock && p.Start.Domain == parts[0].Start.Domain
		s.MonoFrom, s.MonoTo = max(s.MonoFrom, p.Start.Mono), min(s.MonoTo, p.End.Mono)
		s.CoreFrom, s.CoreTo = max(s.CoreFrom, p.Start.Within.Latest), min(s.CoreTo, p.End.Within.Earliest)
		s.EnvelopeFrom = max(s.EnvelopeFrom, p.Start.Within.Earliest)
		if !p.Open {
			s.EnvelopeTo = min(s.EnvelopeTo, p.End.Within.Latest)
		}
	}
	if s.SameClock {
		s.Domain = parts[0].Start.Domain
	} else {
		s.MonoFrom, s.MonoTo = 0, 0
	}
	s.HasCore = s.CoreFrom < s.CoreTo && s.CoreFrom.Finite() && s.CoreTo.Finite()
	if !s.HasCore {
		s.CoreFrom, s.CoreTo = 0, 0
	}
	return s
}

// bound is what Bound must be.
func bound(parts []scgs.Part) time.Duration {
	var widest time.Duration
	same := true
	for _, p := range parts {
		same = same && p.Start.Domain == parts[0].Start.Domain
		for _, s := range []clocksync.Stamp{p.Start, p.End} {
			switch {
			case p.Unknown:
			case !s.Within.Bounded():
				widest = s.Within.Width()
			default:
				widest = max(widest, s.Within.Width()/2)
			}
		}
	}
	if same {
		return 0
	}
	return widest
}
