package scgs_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// thresholdRun is a run as the reference sees it.
type thresholdRun struct {
	member     int
	seq        uint64
	place      int // among all runs
	start, end clocksync.Stamp
	closed     bool
}

// thresholdMember is what the reference knows of a member.
type thresholdMember struct {
	seq    uint64
	newest clocksync.Stamp
	finite clocksync.Instant // latest finite Latest
	open   *thresholdRun
	gone   bool
}

// thresholdReference finds sets by looking at every choice of runs after every
// message, all runs that ever were.
type thresholdReference struct {
	k        int
	members  []thresholdMember
	runs     []*thresholdRun
	reported map[string][]*thresholdRun
}

func newThresholdReference(k int, s *system) *thresholdReference {
	r := &thresholdReference{k: k, reported: map[string][]*thresholdRun{}}
	for _, d := range s.domains {
		r.members = append(r.members, thresholdMember{
			newest: clocksync.Stamp{Domain: d, Mono: clocksync.MinInstant, Within: clocksync.Interval{Earliest: clocksync.MinInstant}},
			finite: clocksync.MinInstant,
		})
	}
	return r
}

// take follows the definition of runs: one ends at the first state in which the
// condition does not hold, or at its newest evidence if something is missing.
func (r *thresholdReference) take(msg message) {
	m := &r.members[msg.member]
	lose := func(latest clocksync.Instant) {
		if m.open != nil {
			m.open.end.Within.Latest, m.open.closed, m.open = latest, true, nil
		}
	}
	switch {
	case msg.action == lost:
		lose(clocksync.MaxInstant)
		return
	case msg.action == restart:
		lose(clocksync.MaxInstant)
		if m.seq = 0; msg.domain != m.newest.Domain {
			m.newest.Domain, m.newest.Mono = msg.domain, clocksync.MinInstant
		}
		return
	case msg.action != evidence && msg.seq <= m.seq || msg.seq < m.seq || msg.at.Mono < m.newest.Mono:
		return
	}
	at := msg.at
	at.Within.Earliest = max(at.Within.Earliest, m.newest.Within.Earliest)
	at.Within.Latest = max(at.Within.Latest, m.finite)
	if msg.action == evidence {
		at.Within.Latest = max(at.Within.Latest, at.Within.Earliest)
	}
	if msg.action == evidence && msg.seq > m.seq || m.seq > 0 && msg.seq > m.seq+1 {
		lose(at.Within.Latest)
	}
	m.seq, m.newest = msg.seq, at
	if l := at.Within.Latest; l != clocksync.MaxInstant {
		m.finite = max(m.finite, l)
	}
	if m.open != nil {
		m.open.end = at
	}
	switch {
	case msg.action == end && m.open != nil:
		m.open.closed, m.open = true, nil
	case msg.action == start && m.open == nil:
		m.open = &thresholdRun{member: msg.member, seq: msg.seq, place: len(r.runs), start: at, end: at}
		r.runs = append(r.runs, m.open)
	}
}

func overlapping(a, b *thresholdRun) bool {
	return clocksync.CertainlyBefore(a.start, b.end) && clocksync.CertainlyBefore(b.start, a.end)
}

// qualifying are all sets of k runs or more that overlap pairwise, largest first.
func (r *thresholdReference) qualifying() [][]*thresholdRun {
	var sets [][]*thresholdRun
	var extend func(from int, set []*thresholdRun)
	extend = func(from int, set []*thresholdRun) {
		if len(set) >= r.k {
			sets = append(sets, slices.Clone(set))
		}
	next:
		for i := from; i < len(r.runs); i++ {
			x := r.runs[i]
			if r.members[x.member].gone || !overlapping(x, x) {
				continue
			}
			for _, y := range set {
				if x.member == y.member || !overlapping(x, y) {
					continue next
				}
			}
			extend(i+1, append(slices.Clone(set), x))
		}
	}
	extend(0, nil)
	slices.SortStableFunc(sets, func(a, b []*thresholdRun) int { return len(b) - len(a) })
	return sets
}

func within(small, large []*thresholdRun) bool {
	return !slices.ContainsFunc(small, func(x *thresholdRun) bool { return !slices.Contains(large, x) })
}

// lines are the sets that the output rule of thresholds reports now.
func (r *thresholdReference) lines() []string {
	var maximal, found [][]*thresholdRun
	for _, set := range r.qualifying() {
		if !slices.ContainsFunc(maximal, func(m []*thresholdRun) bool { return within(set, m) }) {
			maximal = append(maximal, set)
		}
	}
	for _, set := range maximal {
		slices.SortFunc(set, compareThresholdRuns)
		if _, known := r.reported[fmt.Sprint(set)]; !known {
			found = append(found, set)
		}
	}
	slices.SortFunc(found, func(a, b []*thresholdRun) int { return slices.CompareFunc(a, b, compareThresholdRuns) })
	var lines []string
	for _, set := range found {
		grows := false
		for _, before := range r.reported {
			grows = grows || len(before) < len(set) && within(before, set)
		}
		lines = append(lines, line(parts(set), span(parts(set)), grows))
	}
	for _, set := range found {
		r.reported[fmt.Sprint(set)] = set
	}
	return lines
}

func compareThresholdRuns(a, b *thresholdRun) int {
	return cmp.Or(a.member-b.member, cmp.Compare(a.seq, b.seq), a.place-b.place)
}

func parts(set []*thresholdRun) []scgs.Part {
	var all []scgs.Part
	for _, x := range set {
		all = append(all, scgs.Part{Member: scgs.Member(x.member), Seq: x.seq, Start: x.start, End: x.end, Open: !x.closed})
	}
	return all
}

// line gives a set as text, without refs.
func line(parts []scgs.Part, held scgs.Span, grows bool) string {
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, "%d.%d %v-%v open=%v; ", p.Member, p.Seq, p.Start, p.End, p.Open)
	}
	fmt.Fprintf(&b, "%+v grows=%v", held, grows)
	return b.String()
}
