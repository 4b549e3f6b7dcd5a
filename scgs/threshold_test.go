package scgs_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// newThresholdSystem draws a history that is denser than newSystem's: members
// take turns at holding the condition, show evidence often, and promise at times.
func newThresholdSystem(d draw, h hazards) *system {
	members, clocks, pace, width := 2+d(4), 1+d(4), 1+d(5), 1+d(9)*d(2)
	s := &system{streams: make([][]message, members)}
	domains := make([]int, members)
	for m := range members {
		domains[m] = d(clocks)
		s.domains = append(s.domains, name(domains[m]))
	}
	rules := make([]clocksync.Monotone, clocks)
	seq, open, promised := make([]uint64, members), make([]bool, members), make([]*message, members)
	now := clocksync.Instant(0)
	for n := 5 + d(60); n > 0; n-- {
		now += clocksync.Instant(d(pace))
		m := d(members)
		if d.chance(h.restarts) && promised[m] == nil {
			if d.chance(h.moves) {
				domains[m] = d(clocks)
			}
			s.streams[m] = append(s.streams[m], message{member: m, action: restart, domain: name(domains[m])})
			seq[m], open[m] = 0, false
		}
		msg := message{member: m, ref: scgs.Ref(100*m + len(s.streams[m]) + 1)}
		switch {
		case seq[m] > 0 && d.chance(50):
			msg.action = evidence
		case d.chance(h.ends):
			msg.action, open[m] = end, false
			seq[m]++
		default:
			msg.action, open[m] = start, true
			seq[m]++
		}
		msg.seq = seq[m]
		msg.at = clocksync.Stamp{
			Domain: name(domains[m]), Mono: now + clocksync.Instant(1000*domains[m]),
			Within: clocksync.Interval{Earliest: now - clocksync.Instant(d(width)), Latest: now + clocksync.Instant(d(width))},
		}
		if d.chance(h.infinite) {
			msg.at.Within.Latest = clocksync.MaxInstant
		}
		msg.at, _ = rules[domains[m]].Next(msg.at)
		if p := promised[m]; p != nil { // it lasts until here
			p.at.Within.Earliest = max(p.at.Within.Earliest, msg.at.Within.Earliest)
			p.at.Within.Latest = max(p.at.Within.Latest, p.at.Within.Earliest)
			promised[m] = nil
		}
		s.streams[m] = append(s.streams[m], msg)
		if msg.action == evidence && d(12) == 0 {
			promised[m] = &s.streams[m][len(s.streams[m])-1]
		}
	}
	s.deliver(d, h)
	return s
}

// putThreshold gives a message to the detector.
func putThreshold(d *scgs.Threshold, m scgs.Member, msg message) scgs.Reason {
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

func drainThreshold(d *scgs.Threshold) []string {
	var lines []string
	var set scgs.Set
	for d.Next(&set) {
		lines = append(lines, line(set.Runs, set.Span, set.Grows))
	}
	return lines
}

func TestThresholdFollowsItsOutputRule(t *testing.T) {
	forSystems(t, func(t rapid.TB, d draw) {
		h := hazards{loss: d(2) * 15, duplicates: d(2) * 10, ends: 20 + d(40), losts: d(2) * 5, restarts: d(2) * 10, moves: 50, infinite: d(3) * 15}
		s := newThresholdSystem(d, h)
		k := 1 + d(3)
		reference := newThresholdReference(k, s)
		detector := scgs.NewThreshold(k, scgs.Options{})
		detector.Epoch(1, nil, s.specs())
		for i, msg := range s.arrived {
			putThreshold(detector, scgs.Member(msg.member), msg)
			reference.take(msg)
			got, want := drainThreshold(detector), reference.lines()
			if !slices.Equal(got, want) {
				t.Fatalf("k=%d, %v\nafter message %d, %v:\ngot\n%s\nwant\n%s", k, s, i, msg, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	})
}

var _ = clocksync.MinInstant
