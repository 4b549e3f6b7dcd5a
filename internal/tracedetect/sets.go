package tracedetect

import (
	"cmp"
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// pumpSets takes out the sets of atLeast that have become certain.
func (c *Core) pumpSets() {
	for c.sets.Next(&c.set) {
		if c.o.Final {
			c.keepSet()
			continue
		}
		c.reset()
		for _, p := range c.set.Runs {
			c.add(p.Ref, p.Open)
		}
		c.fill(&c.set.Span)
		c.state.Grows = c.set.Grows
		c.deliver()
	}
}

// keepSet lets a set wait for the end.
func (c *Core) keepSet() {
	set := make([]scgs.Ref, len(c.set.Runs))
	for i, p := range c.set.Runs {
		set[i] = p.Ref
		c.records[p.Ref].holds++
	}
	c.found = append(c.found, set)
}

// flushSets delivers the sets that are in no other one, in order.
func (c *Core) flushSets() {
	sets := c.maximal()
	slices.SortFunc(sets, func(a, b []scgs.Ref) int { return slices.CompareFunc(a, b, c.compare) })
	for _, set := range sets {
		c.show(set)
	}
	c.found = nil
}

// compare orders runs by participant and by their first numbers.
func (c *Core) compare(a, b scgs.Ref) int {
	r, s := &c.records[a], &c.records[b]
	return cmp.Or(cmp.Compare(r.member, s.member), cmp.Compare(r.incarnation, s.incarnation), cmp.Compare(r.first, s.first))
}

// maximal returns the sets found that are in no other one. Of the sets that
// could contain one, those that have the rarest of its runs are looked at.
func (c *Core) maximal() (sets [][]scgs.Ref) {
	with := make(map[scgs.Ref][][]scgs.Ref)
	for _, set := range c.found {
		for _, ref := range set {
			with[ref] = append(with[ref], set)
		}
	}
	for _, set := range c.found {
		rarest := slices.MinFunc(set, func(a, b scgs.Ref) int { return cmp.Compare(len(with[a]), len(with[b])) })
		if !slices.ContainsFunc(with[rarest], func(other []scgs.Ref) bool { return within(set, other) }) {
			sets = append(sets, set)
		}
	}
	return sets
}

// within reports whether a set is a part of a larger one. Both are in order of
// members.
func within(set, other []scgs.Ref) bool {
	if len(set) >= len(other) {
		return false
	}
	for _, ref := range other {
		if len(set) > 0 && set[0] == ref {
			set = set[1:]
		}
	}
	return len(set) == 0
}

// fill gives the state the times that a detector knows.
func (c *Core) fill(s *scgs.Span) {
	c.state.HasCore = s.HasCore
	c.state.Core = clocksync.Interval{Earliest: s.CoreFrom, Latest: s.CoreTo}
	c.state.Envelope = clocksync.Interval{Earliest: s.EnvelopeFrom, Latest: s.EnvelopeTo}
}
