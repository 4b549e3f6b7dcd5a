package scgs_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// TestManyMembersAgreeWithRescan compares the trees with looking at all heads,
// report by report, where enumeration cannot go.
func TestManyMembersAgreeWithRescan(t *testing.T) {
	for _, order := range orders {
		for _, size := range []struct{ members, domains, reports int }{
			{2, 2, 3000}, {3, 1, 3000}, {17, 1, 3000}, {90, 1, 2000}, {17, 5, 3000}, {33, 33, 3000}, {100, 7, 2000}, {130, 130, 2000},
		} {
			t.Run(fmt.Sprintf("order=%s/members=%d/domains=%d", order, size.members, size.domains), func(t *testing.T) {
				compare(t, newWorkload(order, size.members, size.domains), size.reports)
			})
		}
	}
}

func compare(t *testing.T, w *workload, reports int) {
	t.Helper()
	var want, got []string
	r := newRescan(w.specs(), func(heads [][]state) {
		var words []string
		for _, q := range heads {
			words = append(words, word(q[0].ref, false))
		}
		want = append(want, strings.Join(words, " "))
	})
	d := scgs.NewDetector(scgs.Options{MaxPending: reports})
	d.Epoch(1, nil, w.specs())
	rng := rand.New(rand.NewPCG(1, 2))
	var ev scgs.Event
	for i := range reports {
		m, seq, at := w.next()
		ref := scgs.Ref(i + 1)
		r.start(m, ref, at)
		d.Start(scgs.Member(m), seq, at, ref)
		if q := rng.IntN(len(w.domains)); w.seq[q] > 0 && rng.IntN(3) == 0 {
			alive := clocksync.Stamp{Domain: w.domains[q], Mono: at.Mono, Within: at.Within}
			r.evidence(q, alive)
			d.Evidence(scgs.Member(q), w.seq[q], alive)
		}
		for d.Next(&ev) {
			if ev.Kind == scgs.Opened {
				got = append(got, heads(d))
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("after %d reports: %d global states, want %d", i+1, len(got), len(want))
		}
	}
	if len(got) == 0 {
		t.Fatal("nothing was found")
	}
}

func heads(d *scgs.Detector) string {
	var words []string
	for _, p := range d.Witness(nil) {
		words = append(words, word(p.Ref, p.Unknown))
	}
	return strings.Join(words, " ")
}

func TestNoAllocationInSteadyState(t *testing.T) {
	for _, m := range modalities {
		for _, domains := range []int{1, 16, 200} {
			for _, brief := range []bool{false, true} {
				e := startEngine(m, "round-robin", 200, domains)
				e.brief = brief
				e.warm()
				var needs []scgs.Need
				allocations := testing.AllocsPerRun(5000, func() {
					e.step()
					needs = e.d.Needs(needs[:0])
					if !brief {
						e.d.Current()
					}
				})
				if allocations != 0 || e.found == 0 {
					t.Errorf("%v, %d domains, by Advance %v: %v allocations a report, %d global states", m, domains, brief, allocations, e.found)
				}
			}
		}
	}
}

// TestMemoryIsBounded lets one member report without end while another one is
// silent.
func TestMemoryIsBounded(t *testing.T) {
	const limit = 8
	d := scgs.NewDetector(scgs.Options{MaxPending: limit})
	d.Epoch(1, nil, []scgs.Spec{{Domain: "a"}, {Domain: "b"}})
	held := map[scgs.Ref]bool{}
	var ev scgs.Event
	for i := range uint64(10_000) {
		ref := scgs.Ref(i + 1)
		at := clocksync.Stamp{Domain: "a", Mono: clocksync.Instant(i), Within: clocksync.Exactly(clocksync.Instant(i))}
		if why := d.Start(0, i+1, at, ref); why != scgs.Accepted {
			t.Fatal(why)
		}
		held[ref] = true
		for d.Next(&ev) {
			t.Fatalf("%+v without the other member", ev)
		}
		for _, r := range d.Released(nil) {
			if !held[r] {
				t.Fatalf("%d released twice", r)
			}
			delete(held, r)
		}
		if len(held) > limit+2 { // with the head and the open one
			t.Fatalf("%d states held, limit %d", len(held), limit)
		}
	}
	if got := d.Stats().Collapsed; got != 10_000-uint64(len(held)) {
		t.Errorf("%d states collapsed, %d held of 10000", got, len(held))
	}
}
