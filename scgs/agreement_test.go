package scgs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/scgs"
)

var modalities = []scgs.Modality{scgs.Inst, scgs.Definitely, scgs.Possibly}

// forModalities checks a property of each modality.
func forModalities(t *testing.T, property func(t rapid.TB, d draw, m scgs.Modality)) {
	t.Helper()
	forEach(t, modalities, property)
}

func forEach(t *testing.T, modalities []scgs.Modality, property func(t rapid.TB, d draw, m scgs.Modality)) {
	t.Helper()
	for _, m := range modalities {
		t.Run(m.String(), func(t *testing.T) {
			forSystems(t, func(t rapid.TB, d draw) { property(t, d, m) })
		})
	}
}

// everything can go wrong, but that no member moves to another clock.
var everything = hazards{loss: 15, duplicates: 10, ends: 15, restarts: 10, losts: 3, crashes: 3, infinite: 15, promises: 30}

// reading gives what a detector looks at.
func reading(m scgs.Modality) func(stream []message) []state {
	if m == scgs.Inst {
		return states
	}
	return runs
}

// reference gives what a detector must have found from the messages, of which
// none is doubled: of Inst, the tuples without UNKNOWN.
func reference(m scgs.Modality, members int, arrived []message, ended bool) []string {
	switch m {
	case scgs.Definitely:
		all := read(members, arrived, runs)
		return write(tuples(all, overlap), all)
	case scgs.Possibly:
		all, ends := read(members, arrived, runs), mayEndSoon
		if ended {
			ends = mayLast
		}
		return write(greedy(all, ends), all)
	case scgs.Inst:
	}
	return complete(expect(members, arrived))
}

func complete(found []string) []string {
	return slices.DeleteFunc(slices.Clone(found), func(f string) bool { return strings.Contains(f, "?") })
}

// TestAgreesWithReference compares each modality with its definition, for up to
// three members after every message.
func TestAgreesWithReference(t *testing.T) {
	forModalities(t, func(t rapid.TB, d draw, m scgs.Modality) {
		s := newSystem(d, everything)
		if d.chance(30) {
			s.deliver(d, hazards{}) // restarts and moves, but nothing is lost
		}
		checked := 0
		r := detect(t, s, m, func(r *run, taken []message) {
			if m != scgs.Inst {
				all := read(len(s.domains), once(taken), runs)
				for ; checked < len(r.parts); checked++ {
					checkParts(t, r.parts[checked], all)
				}
			}
			if len(s.domains) <= 3 {
				same(t, fmt.Sprintf("after %d messages", len(taken)), s, complete(r.found), reference(m, len(s.domains), once(taken), false))
			}
		})
		same(t, "at the end", s, complete(r.found), reference(m, len(s.domains), r.taken, true))
		checkEnded(t, r.ended, read(len(s.domains), r.taken, reading(m)), s)
	})
}

// checkEnded compares what a detector says of ends with the reference.
func checkEnded(t rapid.TB, ended []scgs.Part, all [][]state, s *system) {
	t.Helper()
	for m, list := range all {
		var want []scgs.Part
		for _, e := range list {
			if e.closed && !e.unknown {
				want = append(want, e.part(scgs.Member(m)))
			}
		}
		got := slices.DeleteFunc(slices.Clone(ended), func(p scgs.Part) bool { return p.Member != scgs.Member(m) })
		if !slices.Equal(got, want) {
			t.Fatalf("of member %d ended\n%+v, want\n%+v\n%v", m, got, want, s)
		}
	}
}

// part is a state or run as the package describes it.
func (s state) part(m scgs.Member) scgs.Part {
	ref := s.ref
	if len(s.refs) > 0 {
		ref = s.refs[len(s.refs)-1]
	}
	return scgs.Part{Member: m, Seq: s.seq, Ref: ref, Start: s.start, End: s.end, Open: !s.closed}
}

// checkParts compares the runs of a tuple with the reference, as of now.
func checkParts(t rapid.TB, parts []scgs.Part, all [][]state) {
	t.Helper()
	for _, p := range parts {
		list := all[p.Member]
		i := slices.IndexFunc(list, func(s state) bool { return slices.Contains(s.refs, p.Ref) })
		s := list[i]
		if want := s.part(p.Member); p != want {
			t.Fatalf("part %+v, want %+v", p, want)
		}
	}
}

func TestOneMemberAgreesWithReference(t *testing.T) {
	forModalities(t, func(t rapid.TB, d draw, m scgs.Modality) {
		s := newSystemOf(1, 1+d(4), d, everything)
		r := detect(t, s, m, nil)
		same(t, "at the end", s, complete(r.found), reference(m, 1, r.taken, true))
	})
}

// TestPossiblyFindsOneIfThereIsOne asks of all tuples of runs whether one is
// possible.
func TestPossiblyFindsOneIfThereIsOne(t *testing.T) {
	forSystems(t, func(t rapid.TB, d draw) {
		s := newSystem(d, everything)
		r := detect(t, s, scgs.Possibly, nil)
		all := read(len(s.domains), r.taken, runs)
		may := write(tuples(all, mayOverlap), all)
		if len(r.found) == 0 && len(may) > 0 {
			t.Fatalf("nothing found of %v\n%v", may, s)
		}
		subset(t, s, r.found, may)
	})
}

// TestMembersMayMove restarts members on other clocks, and overflows queues. What
// is found is true; some may be missed: a run is passed over when its interval
// misses one of the member on the old clock, before there is one on the run's own
// clock to compare readings with.
func TestMembersMayMove(t *testing.T) {
	forEach(t, modalities[1:], func(t rapid.TB, d draw, m scgs.Modality) {
		h := everything
		h.restarts, h.moves = 20, 50
		s := newSystem(d, h)
		r := detectWith(t, s, scgs.Options{Modality: m, Ends: true, MaxPending: d(4)}, nil)
		all := read(len(s.domains), r.taken, runs)
		test := overlap
		if m == scgs.Possibly {
			test = mayOverlap
		}
		subset(t, s, r.found, write(tuples(all, test), all))
		checkEnded(t, r.ended, all, s)
	})
}
