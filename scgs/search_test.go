package scgs_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// oracle is a predicate drawn at random: Yes on some percent of the combinations,
// and Inconclusive on some of those with an UNKNOWN.
type oracle struct{ yes, inconclusive, salt int }

func (o oracle) ask(refs []scgs.Ref) scgs.Answer {
	sum := uint64(o.salt)
	for _, r := range refs {
		sum = (sum ^ uint64(r)) * 0x9e3779b97f4a7c15
		sum ^= sum >> 29
	}
	switch n := int(sum % 100); {
	case n < o.yes:
		return scgs.Yes
	case n < o.yes+o.inconclusive && slices.Contains(refs, 0):
		return scgs.Inconclusive
	}
	return scgs.No
}

// findingsOf enumerates what must be delivered.
func findingsOf(r realm, predicate func([]scgs.Ref) scgs.Answer) []scgs.Finding {
	var all []scgs.Finding
	for _, at := range r.instants() {
		answer := scgs.No
		for _, t := range r.tuples(at) {
			if a := predicate(r.refs(t)); a == scgs.Yes || a == scgs.Inconclusive && answer == scgs.No {
				answer = a
			}
		}
		if n := len(all); n == 0 || all[n-1].Answer != answer {
			all = append(all, scgs.Finding{Epoch: 1, Index: uint64(n + 1), From: at, Answer: answer})
		}
	}
	return all
}

type searchRun struct {
	t         rapid.TB
	x         *scgs.Search
	found     []scgs.Finding
	witnesses [][]scgs.Ref // of each Yes
	released  map[scgs.Ref]bool
}

func newSearchRun(t rapid.TB, predicate func([]scgs.Ref) scgs.Answer, o scgs.SearchOptions, specs []scgs.Spec) *searchRun {
	r := &searchRun{t: t, released: map[scgs.Ref]bool{}}
	r.x = scgs.NewSearch(func(refs []scgs.Ref) scgs.Answer {
		for _, ref := range refs {
			if r.released[ref] {
				t.Fatalf("asked about %d after its release", ref)
			}
		}
		return predicate(refs)
	}, o)
	r.x.Epoch(1, nil, specs)
	return r
}

func (r *searchRun) put(msg message) scgs.Reason {
	if msg.action == start {
		why := r.x.Start(scgs.Member(msg.member), msg.seq, msg.at, msg.ref)
		if why == scgs.Accepted {
			delete(r.released, msg.ref)
		}
		return why
	}
	return hand(r.x, scgs.Member(msg.member), msg)
}

func (r *searchRun) drain() {
	var f scgs.Finding
	for r.x.Next(&f) {
		witness := r.x.Witness(nil)
		if (f.Answer == scgs.Yes) != (witness != nil) {
			r.t.Fatalf("%+v has the witness %v", f, witness)
		}
		r.found = append(r.found, f)
		if witness != nil {
			r.witnesses = append(r.witnesses, witness)
		}
	}
	for _, ref := range r.x.Released(nil) {
		r.released[ref] = true
	}
}

// TestSearchIsExact compares with enumeration, in any order of arrival, and
// checks that each Yes has a witness that is possible then.
func TestSearchIsExact(t *testing.T) {
	counts := map[scgs.Answer]int{}
	forSystems(t, func(t rapid.TB, d draw) {
		s := newSystem(d, hazards{loss: 10, duplicates: 10, ends: 15, restarts: 10, moves: 50, infinite: 20})
		o := oracle{yes: []int{1, 10, 40}[d(3)], inconclusive: []int{0, 20, 60}[d(3)], salt: d(1000)}
		r := newSearchRun(t, o.ask, scgs.SearchOptions{}, s.specs())
		realm := newRealm(len(s.domains), s.arrived)
		want := findingsOf(realm, o.ask)
		for i, msg := range s.arrived {
			r.put(msg)
			r.drain()
			until := watermark(len(s.domains), s.arrived[:i+1])
			if n := len(r.found); !slices.Equal(r.found, want[:n]) || n < len(want) && want[n].From < until {
				t.Fatalf("found %+v\nwant %+v before %v\n%v%v", r.found, want, until, realm, s)
			}
		}
		r.x.Finish()
		r.drain()
		if !slices.Equal(r.found, want) {
			t.Fatalf("at the end\nfound %+v\nwant  %+v\n%v%v", r.found, want, realm, s)
		}
		for _, f := range r.found {
			counts[f.Answer]++
			if f.Answer != scgs.Yes {
				continue
			}
			w := r.witnesses[0]
			r.witnesses = r.witnesses[1:]
			possible := slices.ContainsFunc(realm.tuples(f.From), func(t tuple) bool { return slices.Equal(realm.refs(t), w) })
			if o.ask(w) != scgs.Yes || !possible {
				t.Fatalf("%v is no witness at %v\n%v%v", w, f.From, realm, s)
			}
		}
	})
	for _, a := range []scgs.Answer{scgs.No, scgs.Yes, scgs.Inconclusive} {
		if counts[a] < *systems/4 {
			t.Fatalf("too few of each: %v", counts)
		}
	}
}

// TestSearchLooksOnceAtEach counts: where nothing is found, each combination of
// states that is ever possible is looked at once.
func TestSearchLooksOnceAtEach(t *testing.T) {
	forSystems(t, func(t rapid.TB, d draw) {
		s := newSystem(d, hazards{ends: 15, infinite: 20})
		calls := map[string]int{}
		r := newSearchRun(t, func(refs []scgs.Ref) scgs.Answer {
			calls[fmt.Sprint(refs)]++
			return scgs.No
		}, scgs.SearchOptions{}, s.specs())
		for _, msg := range s.arrived {
			r.put(msg)
			r.drain()
		}
		r.x.Finish()
		r.drain()
		realm := newRealm(len(s.domains), s.arrived)
		distinct, words := map[string]bool{}, map[string]int{}
		for _, at := range realm.instants() {
			for _, t := range realm.tuples(at) {
				if !distinct[fmt.Sprint(t)] {
					distinct[fmt.Sprint(t)] = true
					words[fmt.Sprint(realm.refs(t))]++
				}
			}
		}
		if got, want := fmt.Sprint(calls), fmt.Sprint(words); got != want || r.x.Combinations() != uint64(len(distinct)) {
			t.Fatalf("looked at %v\nwant %v\n%v%v", got, want, realm, s)
		}
	})
}

// TestSearchLimit gives a search too little to look at: it answers as one without
// a limit would, or Inconclusive.
func TestSearchLimit(t *testing.T) {
	limited, looked := 0, 0
	forSystems(t, func(t rapid.TB, d draw) {
		s := newSystem(d, hazards{loss: 10, ends: 15, infinite: 20})
		o, limit := oracle{yes: 5, inconclusive: 20, salt: d(1000)}, 1+d(4)
		r := newSearchRun(t, o.ask, scgs.SearchOptions{MaxCombinations: limit}, s.specs())
		for _, msg := range s.arrived {
			r.put(msg)
			r.drain()
		}
		r.x.Finish()
		r.drain()
		realm := newRealm(len(s.domains), s.arrived)
		want := findingsOf(realm, o.ask)
		if most := limit * len(realm.instants()); int(r.x.Combinations()) > most {
			t.Fatalf("looked at %d combinations, at most %d are allowed", r.x.Combinations(), most)
		}
		for _, at := range realm.instants() {
			got, exact := answerAt(r.found, at), answerAt(want, at)
			switch n := len(realm.tuples(at)); {
			case got == exact && got != scgs.Inconclusive:
				looked++
			case got != scgs.Inconclusive:
				t.Fatalf("%v at %v, want %v\n%v%v", got, at, exact, realm, s)
			case n <= limit && exact != scgs.Inconclusive:
				t.Fatalf("inconclusive at %v with %d combinations of at most %d\n%v%v", at, n, limit, realm, s)
			case exact != scgs.Inconclusive:
				limited++
			}
		}
	})
	if limited < *systems || looked < *systems {
		t.Fatalf("%d answers were limited, %d were not", limited, looked)
	}
}

func answerAt(found []scgs.Finding, at clocksync.Instant) scgs.Answer {
	answer := scgs.Inconclusive
	for _, f := range found {
		if f.From <= at {
			answer = f.Answer
		}
	}
	return answer
}
