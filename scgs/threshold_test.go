package scgs_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// newThresholdSystem draws a history of states in some of which the condition
// does not hold: those are ends. Some evidence is a promise.
func newThresholdSystem(d draw, h hazards) *system {
	s := newSystem(d, h)
	ends := d(80)
	for m, stream := range s.streams {
		for i := range stream {
			msg := &s.streams[m][i]
			if msg.action == start && d.chance(ends) {
				msg.action = end
			}
			if msg.action == evidence && d(6) == 0 {
				until := msg.at.Within.Earliest.Add(30)
				if i+1 < len(stream) {
					until = stream[i+1].at.Within.Earliest
				}
				msg.at.Within.Earliest = max(msg.at.Within.Earliest, until)
				msg.at.Within.Latest = max(msg.at.Within.Latest, msg.at.Within.Earliest)
			}
		}
	}
	s.arrived = nil
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
		h := hazards{loss: d(2) * 15, duplicates: d(2) * 10, ends: 20, losts: d(2) * 5, restarts: d(2) * 10, moves: 50, infinite: d(3) * 15}
		s := newThresholdSystem(d, h)
		k := 1 + d(4)
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
