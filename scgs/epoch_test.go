package scgs_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// TestEpochsAreComplete begins a second epoch at a random point of the history,
// in which one member has left, one has joined, or both. The members that stay
// continue with their heads: every global state of these is found.
func TestEpochsAreComplete(t *testing.T) {
	forModalities(t, func(t rapid.TB, d draw, modality scgs.Modality) {
		s := newSystem(d, hazards{ends: 20, infinite: 20})
		leaves, joins := d(len(s.domains)+1), d(len(s.domains)+1)
		at := d(len(s.arrived) + 1)
		before, after := s.split(at, joins)

		r := newRun(t, scgs.Options{Modality: modality}, nil)
		r.first = s.firsts()
		place := make([]scgs.Member, len(s.domains))
		var first []int // places in the first epoch
		for m, domain := range s.domains {
			if m != joins {
				place[m] = r.d.Epoch(1, nil, []scgs.Spec{{Domain: domain}})[0]
				first = append(first, m)
			}
		}
		r.feed(place, before)
		same(t, "first epoch", s, r.found, among(modality, first, before, nil))

		heads := headsOf(r, first, place, before)
		var remove []scgs.Member
		var add []scgs.Spec
		if slices.Contains(first, leaves) {
			remove = []scgs.Member{place[leaves]}
			first = slices.DeleteFunc(first, func(m int) bool { return m == leaves })
			after = slices.DeleteFunc(after, func(msg message) bool { return msg.member == leaves })
		}
		if joins < len(s.domains) {
			add = []scgs.Spec{{Domain: s.domains[joins]}}
			first = append(first, joins)
		}
		if added := r.d.Epoch(2, remove, add); len(added) > 0 {
			place[joins] = added[0]
		}
		r.found, r.last = nil, nil
		r.feed(place, after)
		slices.SortFunc(first, func(a, b int) int { return int(place[a] - place[b]) })
		same(t, fmt.Sprintf("second epoch at %d: %d leaves, %d joins", at, leaves, joins), s, r.found, among(modality, first, slices.Concat(before, after), heads))
	})
}

// split cuts what arrives in two; all of one member's messages go behind the
// cut.
func (s *system) split(at, behind int) (before, after []message) {
	for i, msg := range s.arrived {
		if i < at && msg.member != behind {
			before = append(before, msg)
		} else {
			after = append(after, msg)
		}
	}
	return before, after
}

// feed takes the Closed of an epoch first, if there is one.
func (r *run) feed(place []scgs.Member, messages []message) {
	if r.opened {
		if !r.d.Next(&r.event) || r.event.Kind != scgs.Closed || r.event.Epoch != 1 {
			r.t.Fatalf("%+v, want the end of the first epoch's global state", r.event)
		}
		r.opened = false
	}
	r.members = 0 // what is needed is checked elsewhere
	for _, msg := range messages {
		if r.modality != scgs.Inst {
			msg = msg.ofRuns()
		}
		if why := put(r.d, place[msg.member], msg); why != scgs.Accepted {
			r.t.Fatalf("%v: %v", msg, why)
		}
	}
	for r.d.Next(&r.event) {
		r.opened = r.event.Kind == scgs.Opened
		if r.opened {
			r.take(r.d.Witness(nil))
		}
	}
}

// headsOf gives how many states of each place the detector has left behind.
func headsOf(r *run, places []int, place []scgs.Member, before []message) map[int]int {
	heads := map[int]int{}
	parts := r.d.Witness(nil)
	for _, m := range places {
		all := reading(r.modality)(of(m, before))
		heads[m] = len(all)
		for _, p := range parts {
			if p.Member == place[m] {
				heads[m] = slices.IndexFunc(all, func(s state) bool { return fmt.Sprint(s.ref) == r.name(p) })
			}
		}
	}
	return heads
}

func of(m int, messages []message) []message {
	return slices.DeleteFunc(slices.Clone(messages), func(msg message) bool { return msg.member != m })
}

// among gives the global states of some members, from their heads on.
func among(m scgs.Modality, members []int, messages []message, heads map[int]int) []string {
	var all [][]state
	for _, member := range members {
		all = append(all, reading(m)(of(member, messages))[heads[member]:])
	}
	if m == scgs.Possibly {
		return write(greedy(all, mayEndSoon), all)
	}
	return write(tuples(all, overlap), all)
}

func TestEpochMembers(t *testing.T) {
	d := scgs.NewDetector(scgs.Options{})
	ab := d.Epoch(1, nil, []scgs.Spec{{Domain: "x"}, {Domain: "y"}})
	at := clocksync.Stamp{Domain: "x", Mono: 1, Within: clocksync.Exactly(1)}
	if why := d.Start(ab[0], 1, at, 7); why != scgs.Accepted {
		t.Fatal(why)
	}
	c := d.Epoch(2, []scgs.Member{ab[0], ab[0], 99, -1}, []scgs.Spec{{Domain: "z"}})
	if c[0] != ab[0] {
		t.Errorf("new member %d, want the free number %d", c[0], ab[0])
	}
	if refs := d.Released(nil); !slices.Equal(refs, []scgs.Ref{7}) {
		t.Errorf("released %v of the member removed, want 7", refs)
	}
	if refs := d.Released(nil); len(refs) > 0 {
		t.Errorf("released %v twice", refs)
	}
	if why := d.Start(c[0], 1, at, 8); why != scgs.Foreign {
		t.Errorf("a stamp of the old member's domain: %v", why)
	}
	d.Epoch(3, []scgs.Member{0, 1}, nil)
	var ev scgs.Event
	if d.Next(&ev) || len(d.Needs(nil)) > 0 || len(d.Witness(nil)) > 0 || d.Bound() != 0 {
		t.Error("a detector without members has something")
	}
	for name, why := range map[string]scgs.Reason{
		"start":    d.Start(0, 2, at, 0),
		"end":      d.End(1, 1, at),
		"evidence": d.Evidence(-1, 1, at),
		"lost":     d.Lost(5),
		"restart":  d.Restart(0, "x", clocksync.MaxInstant),
	} {
		if why != scgs.NoMember {
			t.Errorf("%s of no member: %v", name, why)
		}
	}
}
