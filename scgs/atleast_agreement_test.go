package scgs_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/scgs"
)

// counter is a threshold detector under test and what it has delivered.
type counter struct {
	t     rapid.TB
	d     *scgs.Threshold
	first map[scgs.Ref]scgs.Ref
	sets  [][]scgs.Part
	found []string // lines of output
	spans []scgs.Span
}

func newCounter(t rapid.TB, k int, s *system) *counter {
	c := &counter{t: t, d: scgs.NewThreshold(k, scgs.Options{Ends: true}), first: s.firsts()}
	c.d.Epoch(1, nil, s.specs())
	return c
}

// put takes all that the message brings about.
func (c *counter) put(msg message) {
	put(c.d, scgs.Member(msg.member), msg.ofRuns())
	var set scgs.Set
	for c.d.Next(&set) {
		if set.Index != uint64(len(c.found)+1) || set.Epoch != 1 {
			c.t.Fatalf("set %d has number %d/%d", len(c.found)+1, set.Epoch, set.Index)
		}
		c.sets = append(c.sets, slices.Clone(set.Runs))
		c.found = append(c.found, c.line(set.Runs, set.Grows))
		c.spans = append(c.spans, set.Span)
	}
}

func (c *counter) line(parts []scgs.Part, grows bool) string {
	var words []string
	for _, p := range parts {
		words = append(words, word(c.first[p.Ref], p.Unknown))
	}
	if grows {
		words = append(words, "grows")
	}
	return strings.Join(words, " ")
}

// count puts a system's messages into a new detector.
func count(t rapid.TB, k int, s *system) *counter {
	c := newCounter(t, k, s)
	for _, msg := range s.arrived {
		c.put(msg)
	}
	return c
}

// TestAtLeastAgreesWithReference compares line by line after every message, and at
// the end what no later line adds to.
func TestAtLeastAgreesWithReference(t *testing.T) {
	forSystems(t, func(t rapid.TB, d draw) {
		s := newSystem(d, everything)
		n := len(s.domains)
		rule := reporter{k: 1 + d(n)}
		c := newCounter(t, rule.k, s)
		var (
			want  []string
			spans []scgs.Span
			all   [][]state
		)
		for i, msg := range s.arrived {
			c.put(msg)
			all = read(n, once(s.arrived[:i+1]), runs)
			for _, line := range rule.after(all) {
				want, spans = append(want, line.write(all)), append(spans, line.Span)
			}
			same(t, "sets", s, c.found, want)
			if !slices.Equal(c.spans, spans) {
				t.Fatalf("spans %+v, want %+v\n%v", c.spans, spans, s)
			}
		}
		checkEnded(t, c.d.Ended(nil), all, s)
	})
}

// TestAtLeastAllIsDefinitely asks for as many as there are members.
func TestAtLeastAllIsDefinitely(t *testing.T) {
	forSystems(t, func(t rapid.TB, d draw) {
		s := newSystem(d, everything)
		found, tuples := count(t, len(s.domains), s).found, detect(t, s, scgs.Definitely, nil).found
		slices.Sort(found) // of one input, those of a later incarnation can come first
		slices.Sort(tuples)
		same(t, "of all members", s, found, tuples)
	})
}

// TestAtLeastOrderOfArrival compares the sets that no later one adds to.
func TestAtLeastOrderOfArrival(t *testing.T) {
	forSystems(t, func(t rapid.TB, d draw) {
		s := newSystem(d, everything)
		n := len(s.domains)
		k := 1 + d(n)
		first := count(t, k, s).largest()
		s.reorder(d)
		again := count(t, k, s).largest()
		same(t, "in another order", s, again, first)
		all := read(n, once(s.arrived), runs)
		var want []string
		for _, a := range maximalSets(all, k) {
			want = append(want, setLine{runs: a}.write(all))
		}
		slices.Sort(want)
		same(t, "of the whole", s, again, want)
	})
}

// largest gives the sets without those that lie in others.
func (c *counter) largest() []string {
	var lines []string
	for _, a := range c.sets {
		if !slices.ContainsFunc(c.sets, func(b []scgs.Part) bool { return len(b) > len(a) && c.covers(b, a) }) {
			lines = append(lines, c.line(a, false))
		}
	}
	slices.Sort(lines)
	return lines
}

// covers reports whether the runs of the set a are among those of b.
func (c *counter) covers(b, a []scgs.Part) bool {
	return !slices.ContainsFunc(a, func(p scgs.Part) bool {
		return !slices.ContainsFunc(b, func(q scgs.Part) bool { return c.first[p.Ref] == c.first[q.Ref] })
	})
}

func TestAtLeastDuplicatesChangeNothing(t *testing.T) {
	forSystems(t, func(t rapid.TB, d draw) {
		h := everything
		h.duplicates = 40
		s := newSystem(d, h)
		k := 1 + d(len(s.domains))
		doubled := count(t, k, s).found
		s.arrived = once(s.arrived)
		same(t, "doubled", s, doubled, count(t, k, s).found)
	})
}

// TestAtLeastLossNeverAdds looks for every set inside one that there is without
// loss, run inside run.
func TestAtLeastLossNeverAdds(t *testing.T) {
	forSystems(t, func(t rapid.TB, d draw) {
		h := everything
		h.loss = 25
		s := newSystem(d, h)
		k := 1 + d(len(s.domains))
		all := read(len(s.domains), s.bounded(), runs)
		whole := maximalSets(all, k)
		for _, parts := range count(t, k, s).sets {
			if !slices.ContainsFunc(whole, func(a runSet) bool { return a.contains(parts, all) }) {
				t.Fatalf("%+v is in none of those without loss\n%v", parts, s)
			}
		}
	})
}

// contains reports whether each part is a part of that member's run in the set.
func (a runSet) contains(parts []scgs.Part, all [][]state) bool {
	return !slices.ContainsFunc(parts, func(p scgs.Part) bool {
		return !slices.ContainsFunc(a, func(id runID) bool {
			s := all[id.member][id.run]
			return scgs.Member(id.member) == p.Member && slices.Contains(s.refs, p.Ref) &&
				s.start.Mono <= p.Start.Mono && p.End.Mono <= s.end.Mono
		})
	})
}

func TestAtLeastWiderBoundsOnlyRemove(t *testing.T) {
	forSystems(t, func(t rapid.TB, d draw) {
		s := newSystem(d, hazards{ends: 25, restarts: 5})
		k := 1 + d(len(s.domains))
		narrow := count(t, k, s)
		s.widen(d)
		wide := count(t, k, s)
		for _, parts := range wide.sets {
			if !slices.ContainsFunc(narrow.sets, func(b []scgs.Part) bool { return wide.covers(b, parts) }) {
				t.Fatalf("%q is in none of %q\n%v", wide.line(parts, false), narrow.found, s)
			}
		}
	})
}

// TestAtLeastOfMembersThatMove restarts members on other clocks: what is found is
// true.
func TestAtLeastOfMembersThatMove(t *testing.T) {
	forSystems(t, func(t rapid.TB, d draw) {
		h := everything
		h.restarts, h.moves = 20, 50
		s := newSystem(d, h)
		k := 1 + d(len(s.domains))
		c := count(t, k, s)
		all := read(len(s.domains), once(s.arrived), runs)
		whole := maximalSets(all, k)
		for _, parts := range c.sets {
			if len(parts) < k || !slices.ContainsFunc(whole, func(a runSet) bool { return a.contains(parts, all) }) {
				t.Fatalf("%+v is in none of %v\n%v", parts, whole, s)
			}
		}
		checkEnded(t, c.d.Ended(nil), all, s)
	})
}

// TestCountsOfTuplesAgreeWithAtLeast counts, in every tuple that a detector of
// states delivers, partial ones too, the members in whose state the condition
// holds. If they are k, a threshold detector has reported them; and if they cannot
// be k, whatever UNKNOWN is, it has reported of the others that there it does not
// hold. Starts have upper bounds: a run takes its start from its first state.
func TestCountsOfTuplesAgreeWithAtLeast(t *testing.T) {
	var yes, no int
	forSystems(t, func(t rapid.TB, d draw) {
		h := everything
		h.infinite = 0
		s := newSystem(d, h)
		n := len(s.domains)
		k := 1 + d(n)
		inst := newRun(t, scgs.Options{}, s.specs())
		holds := newCounter(t, k, s)
		opposite := s.opposite()
		not := newCounter(t, n-k+1, opposite)
		for i, msg := range s.arrived {
			inst.put(msg)
			inst.drain()
			holds.put(msg)
			not.put(opposite.arrived[i])
			for _, parts := range inst.parts {
				known := slices.DeleteFunc(slices.Clone(parts), func(p scgs.Part) bool { return p.Unknown })
				is := slices.DeleteFunc(slices.Clone(known), func(p scgs.Part) bool { return holds.first[p.Ref] == 0 })
				isNot := slices.DeleteFunc(slices.Clone(known), func(p scgs.Part) bool { return not.first[p.Ref] == 0 })
				switch {
				case len(is) >= k:
					holds.checkReported(is, s)
					yes++
				case len(is)+len(parts)-len(known) < k:
					not.checkReported(isNot, opposite)
					no++
				}
			}
		}
	})
	if systems(t) >= 2000 && (yes == 0 || no == 0) {
		t.Fatalf("%d verdicts of yes, %d of no", yes, no)
	}
}

// checkReported looks for the runs of some states in a set reported.
func (c *counter) checkReported(states []scgs.Part, s *system) {
	if !slices.ContainsFunc(c.sets, func(b []scgs.Part) bool { return c.covers(b, states) }) {
		c.t.Fatalf("%+v is in none of %q\n%v", states, c.found, s)
	}
}

// opposite is the same system with the opposite condition.
func (s *system) opposite() *system {
	o := *s
	o.arrived = slices.Clone(s.arrived)
	for i := range o.arrived {
		o.arrived[i].holds = o.arrived[i].action == start && !o.arrived[i].holds
	}
	return &o
}
