package scgs_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/scgs"
)

// runID names a run: which one of which member's. Their order is that of the
// numbers of their first states; these restart at 1 in a new incarnation.
type runID struct {
	member int
	seq    uint64
	run    int
}

func (p runID) compare(q runID) int {
	return cmp.Or(cmp.Compare(p.member, q.member), cmp.Compare(p.seq, q.seq), cmp.Compare(p.run, q.run))
}

// runSet is a set of runs, at most one of each member, in order of members.
type runSet []runID

func (a runSet) in(b runSet) bool {
	return !slices.ContainsFunc(a, func(p runID) bool { return !slices.Contains(b, p) })
}

// maximalSets enumerates the sets of at least k runs that pairwise certainly overlap,
// and keeps those to which no run can be added; in ascending order.
func maximalSets(all [][]state, k int) []runSet {
	var found []runSet
	fits := func(a runSet, p runID) bool {
		s := all[p.member][p.run]
		return overlap(s, s) && !slices.ContainsFunc(a, func(q runID) bool {
			return p.member == q.member || !overlap(s, all[q.member][q.run])
		})
	}
	var extend func(a runSet, m int)
	extend = func(a runSet, m int) {
		if len(a)+len(all)-m < k {
			return
		}
		if m == len(all) {
			if !growable(all, a, fits) {
				found = append(found, slices.Clone(a))
			}
			return
		}
		for r, s := range all[m] {
			if p := (runID{m, s.seq, r}); fits(a, p) {
				extend(append(slices.Clip(a), p), m+1)
			}
		}
		extend(a, m+1)
	}
	extend(nil, 0)
	slices.SortFunc(found, func(a, b runSet) int { return slices.CompareFunc(a, b, runID.compare) })
	return found
}

func growable(all [][]state, a runSet, fits func(a runSet, p runID) bool) bool {
	for m := range all {
		for r, s := range all[m] {
			if fits(a, runID{m, s.seq, r}) {
				return true
			}
		}
	}
	return false
}

// reporter is the output rule: what is maximal and was not reported before.
type reporter struct {
	k        int
	reported []runSet
}

// setLine is a line of output.
type setLine struct {
	runs  runSet
	grows bool
	scgs.Span
}

func (r *reporter) after(all [][]state) []setLine {
	var lines []setLine
	known := len(r.reported)
	for _, a := range maximalSets(all, r.k) {
		if slices.ContainsFunc(r.reported[:known], func(b runSet) bool { return slices.Equal(a, b) }) {
			continue
		}
		var parts []scgs.Part
		for _, p := range a {
			s := all[p.member][p.run]
			parts = append(parts, scgs.Part{Start: s.start, End: s.end, Open: !s.closed})
		}
		lines = append(lines, setLine{
			runs:  a,
			grows: slices.ContainsFunc(r.reported[:known], func(b runSet) bool { return b.in(a) }),
			Span:  span(parts),
		})
		r.reported = append(r.reported, a)
	}
	return lines
}

func (s setLine) write(all [][]state) string {
	var words []string
	for _, p := range s.runs {
		words = append(words, fmt.Sprint(all[p.member][p.run].ref))
	}
	if s.grows {
		words = append(words, "grows")
	}
	return strings.Join(words, " ")
}
