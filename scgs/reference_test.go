package scgs_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// The references follow the definitions by enumeration and share no code with
// the package.

// state is a member's state, or a run of them, as the reference sees it.
type state struct {
	ref        scgs.Ref
	seq, last  uint64     // of a run's first and last state
	refs       []scgs.Ref // of all states of a run
	start, end clocksync.Stamp
	closed     bool
	unknown    bool
	// mayEnd is, while it is open, the least upper end that its end can turn
	// out to have, as far as is known.
	mayEnd clocksync.Instant
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
		switch msg.action {
		case lost:
			if newest.Domain == "" { // nothing is known before the first
				continue
			}
			lose(clocksync.MaxInstant)
			continue
		case restart:
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

// runs reads a member's stream for runs of states in which the condition holds. A
// run ends with a state in which it does not, however short, with a leave, and
// where something is missing.
func runs(stream []message) []state {
	var (
		all    []state
		seq    uint64
		finite = clocksync.MinInstant
		open   = false
		last   = func() *state { return &all[len(all)-1] }
		lose   = func(latest clocksync.Instant) {
			if open {
				last().closed, open = true, false
				last().end.Within.Latest = latest
			}
		}
		extend = func(at clocksync.Stamp) {
			last().end = at
			last().mayEnd = max(finite, at.Within.Earliest)
		}
	)
	for _, msg := range stream {
		switch msg.action {
		case lost:
			lose(clocksync.MaxInstant)
			continue
		case restart:
			lose(clocksync.MaxInstant)
			seq = 0
			continue
		}
		if msg.seq > seq+1 || msg.action == evidence && msg.seq > seq {
			lose(msg.at.Within.Latest)
		}
		seq = msg.seq
		if l := msg.at.Within.Latest; l != clocksync.MaxInstant {
			finite = max(finite, l)
		}
		if open {
			extend(msg.at)
		}
		switch {
		case msg.action == evidence:
		case open && msg.holds:
			last().last = seq
			last().refs = append(last().refs, msg.ref)
		case open:
			last().closed, open = true, false
		case msg.holds:
			open = true
			all = append(all, state{ref: msg.ref, seq: seq, last: seq, refs: []scgs.Ref{msg.ref}, start: msg.at})
			extend(msg.at)
		}
	}
	return all
}

// read reads what arrived, member by member.
func read(members int, arrived []message, how func(stream []message) []state) [][]state {
	streams := make([][]message, members)
	for _, msg := range arrived {
		streams[msg.member] = append(streams[msg.member], msg)
	}
	all := make([][]state, members)
	for m := range streams {
		all[m] = how(streams[m])
	}
	return all
}

// overlap is the pairwise test of the definition.
func overlap(a, b state) bool {
	return clocksync.CertainlyBefore(a.start, b.end) && clocksync.CertainlyBefore(b.start, a.end)
}

// mayOverlap is the pairwise test of Possibly. An open run whose newest evidence
// has no upper bound may last for ever.
func mayOverlap(a, b state) bool { return startsInTime(a, b.end) && startsInTime(b, a.end) }

func startsInTime(s state, end clocksync.Stamp) bool {
	if s.start.Domain == end.Domain {
		return s.start.Mono < end.Mono
	}
	return s.start.Within.Earliest < end.Within.Latest
}

// tuple is one state of each member, by place in its list.
type tuple []int

// tuples enumerates every combination of states and keeps those that pass the
// test pair by pair, each state with itself too.
func tuples(all [][]state, test func(a, b state) bool) []tuple {
	var found []tuple
	var extend func(t tuple)
	extend = func(t tuple) {
		if len(t) == len(all) {
			found = append(found, slices.Clone(t))
			return
		}
	next:
		for k, s := range all[len(t)] {
			if !test(s, s) {
				continue
			}
			for m, j := range t {
				if !test(s, all[m][j]) {
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

// expect gives what a detector of states must have found from the messages.
func expect(members int, arrived []message) []string {
	all := read(members, arrived, states)
	return write(tuples(all, overlap), all)
}

func write(found []tuple, all [][]state) []string {
	var lines []string
	for _, t := range found {
		lines = append(lines, t.write(all))
	}
	return lines
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
