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
	for _, m := range modalities {
		t.Run(m.String(), func(t *testing.T) {
			forSystems(t, func(t rapid.TB, d draw) { property(t, d, m) })
		})
	}
}

// everything that can go wrong. References do not follow a member that is UNKNOWN
// from one clock to another one.
func everything(m scgs.Modality) hazards {
	h := hazards{loss: 15, duplicates: 10, ends: 15, restarts: 10, losts: 3, crashes: 3, infinite: 15}
	if m != scgs.Inst {
		h.moves = 30
	}
	return h
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
		s := newSystem(d, everything(m))
		if d.chance(30) {
			s.deliver(d, hazards{}) // restarts and moves, but nothing is lost
		}
		r := detect(t, s, m, func(r *run, taken []message) {
			if len(s.domains) <= 3 {
				same(t, fmt.Sprintf("after %d messages", len(taken)), s, complete(r.found), reference(m, len(s.domains), once(taken), false))
			}
		})
		same(t, "at the end", s, complete(r.found), reference(m, len(s.domains), r.taken, true))
	})
}

func TestOneMemberAgreesWithReference(t *testing.T) {
	forModalities(t, func(t rapid.TB, d draw, m scgs.Modality) {
		s := newSystemOf(1, d, everything(m))
		r := detect(t, s, m, nil)
		same(t, "at the end", s, complete(r.found), reference(m, 1, r.taken, true))
	})
}

// TestPossiblyFindsOneIfThereIsOne asks of all tuples of runs whether one is
// possible.
func TestPossiblyFindsOneIfThereIsOne(t *testing.T) {
	forSystems(t, func(t rapid.TB, d draw) {
		s := newSystem(d, everything(scgs.Possibly))
		r := detect(t, s, scgs.Possibly, nil)
		all := read(len(s.domains), r.taken, runs)
		may := write(tuples(all, mayOverlap), all)
		if (len(r.found) > 0) != (len(may) > 0) {
			t.Fatalf("found %v of %v\n%v", r.found, may, s)
		}
		for _, found := range r.found {
			if !slices.Contains(may, found) {
				t.Fatalf("%q is not possible\n%v", found, s)
			}
		}
	})
}
