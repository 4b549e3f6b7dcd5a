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
		alarms := scgs.NewThreshold(k, scgs.Options{Alarms: true})
		alarms.Epoch(1, nil, s.specs())
		for i, msg := range s.arrived {
			put(detector, scgs.Member(msg.member), msg)
			put(alarms, scgs.Member(msg.member), msg)
			reference.take(msg)
			got, want := drainThreshold(detector), reference.lines()
			if !slices.Equal(got, want) {
				t.Fatalf("k=%d, %v\nafter message %d, %v:\ngot\n%s\nwant\n%s", k, s, i, msg, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			got = drainThreshold(alarms)
			want = slices.DeleteFunc(want, func(line string) bool { return strings.HasSuffix(line, "grows=true") })
			if !slices.Equal(got, want) {
				t.Fatalf("alarms, k=%d, %v\nafter message %d, %v:\ngot\n%s\nwant\n%s", k, s, i, msg, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	})
}

// hoping pretends that no open run has ended.
func (r *thresholdReference) hoping() *thresholdReference {
	hope := &thresholdReference{k: r.k, members: r.members}
	for _, x := range r.runs {
		y := *x
		if !y.closed {
			y.end = clocksync.Stamp{
				Domain: y.start.Domain, Mono: clocksync.MaxInstant,
				Within: clocksync.Interval{Earliest: clocksync.MaxInstant, Latest: clocksync.MaxInstant},
			}
		}
		hope.runs = append(hope.runs, &y)
	}
	return hope
}

// Of each set that evidence could still complete, the runs that lack it are
// asked, and with k up to 2 no others are.
func TestThresholdNeedsWhatCouldCompleteASet(t *testing.T) {
	forSystems(t, func(t rapid.TB, d draw) {
		s := newThresholdSystem(d, hazards{loss: d(2) * 15, ends: 20 + d(40), losts: d(2) * 5, infinite: d(3) * 15})
		k := 1 + d(3)
		reference := newThresholdReference(k, s)
		detector := scgs.NewThreshold(k, scgs.Options{})
		detector.Epoch(1, nil, s.specs())
		for _, msg := range s.arrived {
			put(detector, scgs.Member(msg.member), msg)
			reference.take(msg)
			drainThreshold(detector)
			asked := map[int]scgs.Need{}
			for _, n := range detector.Needs(nil) {
				asked[int(n.Member)] = n
			}
			wanted := map[int]bool{}
			for _, set := range reference.hoping().qualifying() {
				for _, x := range set {
					for _, y := range set {
						known := reference.runs[x.place]
						if known.closed || clocksync.CertainlyBefore(y.start, known.end) {
							continue
						}
						wanted[x.member] = true
						n, is := asked[x.member]
						after := clocksync.Stamp{Domain: x.start.Domain, Mono: n.AfterMono, Within: clocksync.Interval{Earliest: n.AfterTime, Latest: clocksync.MaxInstant}}
						after.Mono = after.Mono.Add(1)
						after.Within.Earliest = max(after.Within.Earliest.Add(1), known.end.Within.Earliest)
						if !is || !clocksync.CertainlyBefore(y.start, after) {
							t.Fatalf("k=%d, %v\nafter %v: %v is not asked for evidence past %v, but %+v", k, s, msg, x, y.start, asked)
						}
					}
				}
			}
			if k <= 2 && len(wanted) != len(asked) {
				t.Fatalf("k=%d, %v\nafter %v: asked %v, wanted %v", k, s, msg, asked, wanted)
			}
		}
	})
}

// Who wants the alarms alone is asked for what a set lacks that contains none.
func TestThresholdNeedsWhatCouldCompleteAnAlarm(t *testing.T) {
	forSystems(t, func(t rapid.TB, d draw) {
		s := newThresholdSystem(d, hazards{loss: d(2) * 15, ends: 20 + d(40), losts: d(2) * 5, infinite: d(3) * 15})
		k := 1 + d(3)
		reference := newThresholdReference(k, s)
		detector := scgs.NewThreshold(k, scgs.Options{Alarms: true})
		detector.Epoch(1, nil, s.specs())
		for _, msg := range s.arrived {
			put(detector, scgs.Member(msg.member), msg)
			reference.take(msg)
			drainThreshold(detector)
			reference.lines()
			asked := map[int]bool{}
			for _, n := range detector.Needs(nil) {
				asked[int(n.Member)] = true
			}
			all := reference.hoping().qualifying()
			for _, set := range all {
				if reference.contains(set) || slices.ContainsFunc(all, func(x []*thresholdRun) bool { return len(x) > len(set) && within(set, x) }) {
					continue
				}
				for _, x := range set {
					known := reference.runs[x.place]
					lacks := slices.ContainsFunc(set, func(y *thresholdRun) bool { return !clocksync.CertainlyBefore(y.start, known.end) })
					if lacks && !known.closed && !asked[x.member] {
						t.Fatalf("k=%d, %v\nafter %v: %v is not asked, but %v", k, s, msg, x, asked)
					}
				}
			}
		}
	})
}

// contains reports whether a set of runs, maybe with other ends, contains one that
// was reported.
func (r *thresholdReference) contains(set []*thresholdRun) bool {
	places := map[int]bool{}
	for _, x := range set {
		places[x.place] = true
	}
	for _, before := range r.reported {
		if !slices.ContainsFunc(before, func(x *thresholdRun) bool { return !places[x.place] }) {
			return true
		}
	}
	return false
}

// With k the number of members the sets are the global states of runs.
func TestThresholdOfAllIsDefinitely(t *testing.T) {
	forSystems(t, func(t rapid.TB, d draw) {
		s := newThresholdSystem(d, hazards{loss: d(2) * 10, duplicates: 5, ends: 20, infinite: d(2) * 10})
		all := scgs.NewThreshold(len(s.domains), scgs.Options{})
		all.Epoch(1, nil, s.specs())
		definitely := scgs.NewDetector(scgs.Options{Modality: scgs.Definitely})
		definitely.Epoch(1, nil, s.specs())
		var got, want []string
		for _, msg := range s.arrived {
			put(all, scgs.Member(msg.member), msg)
			put(definitely, scgs.Member(msg.member), msg)
			var set scgs.Set
			for all.Next(&set) {
				got = append(got, keyOf(set.Runs))
			}
			var ev scgs.Event
			for definitely.Next(&ev) {
				if ev.Kind == scgs.Opened {
					want = append(want, keyOf(definitely.Witness(nil)))
				}
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("%v\ngot %q, want %q", s, got, want)
		}
	})
}
