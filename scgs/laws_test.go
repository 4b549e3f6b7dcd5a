package scgs_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// TestOrderOfArrivalDoesNotMatter delivers the same messages twice. When members
// are given up is a matter of order under Inst.
func TestOrderOfArrivalDoesNotMatter(t *testing.T) {
	forModalities(t, func(t rapid.TB, d draw, m scgs.Modality) {
		h := everything
		if m == scgs.Inst {
			h.losts, h.crashes = 0, 0
		}
		s := newSystem(d, h)
		first := detect(t, s, m, nil).found
		s.reorder(d)
		same(t, "in another order", s, detect(t, s, m, nil).found, first)
	})
}

// reorder keeps the order of each member's messages.
func (s *system) reorder(d draw) {
	coming := make([][]message, len(s.domains))
	for _, msg := range s.arrived {
		coming[msg.member] = append(coming[msg.member], msg)
	}
	s.streams = coming
	s.deliver(d, hazards{})
}

// TestDuplicatesChangeNothing leaves out what arrives again.
func TestDuplicatesChangeNothing(t *testing.T) {
	forModalities(t, func(t rapid.TB, d draw, m scgs.Modality) {
		h := everything
		h.duplicates = 40
		s := newSystem(d, h)
		doubled := detect(t, s, m, nil).found
		s.arrived = once(s.arrived)
		same(t, "doubled", s, doubled, detect(t, s, m, nil).found)
	})
}

// TestLossNeverAdds looks for every global state among those there are without
// loss, for every tuple of runs inside one of those. Loss does either to what may
// be: where a run ended may be unknown.
func TestLossNeverAdds(t *testing.T) {
	forEach(t, modalities[:2], func(t rapid.TB, d draw, m scgs.Modality) {
		h := everything
		h.loss = 25
		s := newSystem(d, h)
		r := detect(t, s, m, nil)
		whole := slices.Concat(s.streams...)
		if m == scgs.Inst {
			subset(t, s, complete(r.found), reference(m, len(s.domains), whole, true))
			return
		}
		all := read(len(s.domains), s.bounded(), runs)
		certain := tuples(all, overlap)
		for _, parts := range r.parts {
			if !slices.ContainsFunc(certain, func(c tuple) bool { return insideTuple(parts, all, c) }) {
				t.Fatalf("%+v is in none of those without loss\n%v", parts, s)
			}
		}
	})
}

// bounded gives the streams with no event later than the next one of its member
// may be. A run whose first report has no upper bound is in no tuple; if that
// report is lost what is left of the run can be.
func (s *system) bounded() []message {
	var all []message
	for _, stream := range s.streams {
		stream = slices.Clone(stream)
		latest := clocksync.MaxInstant
		for i := len(stream) - 1; i >= 0; i-- {
			if stream[i].action != restart {
				latest = min(latest, stream[i].at.Within.Latest)
				stream[i].at.Within.Latest = latest
			}
		}
		all = append(all, stream...)
	}
	return all
}

func subset(t rapid.TB, s *system, some, all []string) {
	t.Helper()
	for _, found := range some {
		if !slices.Contains(all, found) {
			t.Fatalf("%q is not one of %v\n%v", found, all, s)
		}
	}
}

// insideTuple reports whether each part is a part of that member's run in the tuple.
func insideTuple(parts []scgs.Part, all [][]state, c tuple) bool {
	for _, p := range parts {
		s := all[p.Member][c[p.Member]]
		if !slices.Contains(s.refs, p.Ref) || p.Start.Mono < s.start.Mono || p.End.Mono > s.end.Mono {
			return false
		}
	}
	return true
}

// TestWiderBoundsOnlyRemove widens every stamp by a bound of its own. What may be
// is only more with wider bounds.
func TestWiderBoundsOnlyRemove(t *testing.T) {
	forModalities(t, func(t rapid.TB, d draw, m scgs.Modality) {
		s := newSystem(d, hazards{ends: 25, restarts: 5})
		narrow := detect(t, s, m, nil).found
		s.widen(d)
		wide := detect(t, s, m, nil).found
		switch {
		case m != scgs.Possibly:
			subset(t, s, complete(wide), narrow)
		case len(wide) == 0 && len(narrow) > 0:
			t.Fatalf("nothing with wider bounds, before %v\n%v", narrow, s)
		}
	})
}

// widen keeps the stamps of each domain monotone.
func (s *system) widen(d draw) {
	var order []*message
	for i := range s.arrived {
		if s.arrived[i].at.Domain != "" {
			order = append(order, &s.arrived[i])
		}
	}
	slices.SortStableFunc(order, func(a, b *message) int {
		return cmp.Or(cmp.Compare(a.at.Mono, b.at.Mono), cmp.Compare(a.at.Within.Earliest, b.at.Within.Earliest),
			cmp.Compare(a.at.Within.Latest, b.at.Within.Latest))
	})
	rules := map[clocksync.Domain]*clocksync.Monotone{}
	for _, msg := range order {
		rule := rules[msg.at.Domain]
		if rule == nil {
			rule = &clocksync.Monotone{}
			rules[msg.at.Domain] = rule
		}
		msg.at.Within.Earliest -= clocksync.Instant(d(4))
		msg.at.Within.Latest += clocksync.Instant(d(4))
		msg.at, _ = rule.Next(msg.at)
	}
}

// TestModalitiesImplyEachOther feeds one detector of each: when a global state is
// found in which all states satisfy the condition, that of their runs has been
// found, and then some possible one has been, too. The first is so where starts
// have upper bounds: a run takes its start from its first state.
func TestModalitiesImplyEachOther(t *testing.T) {
	forSystems(t, func(t rapid.TB, d draw) {
		h := everything
		h.infinite *= d(2)
		s := newSystem(d, h)
		first := s.firsts()
		var inst, definitely, possibly *run
		for i, r := range []**run{&inst, &definitely, &possibly} {
			*r = newRun(t, scgs.Options{Modality: modalities[i]}, s.specs())
			(*r).first = first
		}
		for _, msg := range s.arrived {
			for _, r := range []*run{inst, definitely, possibly} {
				r.put(msg)
				r.drain()
			}
			for _, parts := range inst.parts {
				if h.infinite > 0 {
					break
				}
				if f, ok := asRuns(parts, first); ok && !slices.Contains(definitely.found, f) {
					t.Fatalf("after %v: the runs %q are not found\n%v", msg, f, s)
				}
			}
			if len(definitely.found) > 0 && len(possibly.found) == 0 {
				t.Fatalf("after %v: %q is not possible\n%v", msg, definitely.found, s)
			}
		}
	})
}

// asRuns gives a tuple of states by their runs, if all have one.
func asRuns(parts []scgs.Part, first map[scgs.Ref]scgs.Ref) (string, bool) {
	var words []string
	for _, p := range parts {
		f, ok := first[p.Ref]
		if !ok {
			return "", false
		}
		words = append(words, word(f, p.Unknown))
	}
	return strings.Join(words, " "), true
}

// TestModalitiesAgreeOnExactClocks has stamps without any bound: what may be is
// certain.
func TestModalitiesAgreeOnExactClocks(t *testing.T) {
	forSystems(t, func(t rapid.TB, d draw) {
		s := newSystem(d, hazards{ends: 20, duplicates: 10})
		for i := range s.arrived {
			at := &s.arrived[i].at
			at.Within = clocksync.Exactly(at.Mono % 1000) // the true time
		}
		first := s.firsts()
		inst := slices.ContainsFunc(detect(t, s, scgs.Inst, nil).parts, func(parts []scgs.Part) bool {
			_, ok := asRuns(parts, first)
			return ok
		})
		definitely := len(detect(t, s, scgs.Definitely, nil).found) > 0
		possibly := len(detect(t, s, scgs.Possibly, nil).found) > 0
		if inst != definitely || definitely != possibly {
			t.Fatalf("inst %v, definitely %v, possibly %v\n%v", inst, definitely, possibly, s)
		}
	})
}
