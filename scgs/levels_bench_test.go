package scgs_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// tower is groups of members, and a detector for the groups.
type tower struct {
	w      *workload
	groups []*scgs.Detector
	above  *scgs.Detector
	event  scgs.Event
	sum    scgs.Summary
	refs   []scgs.Ref
	found  int // global states above
	told   int // summaries
}

// newTower puts members on hosts, of which all groups share as many as are told.
// Without up the groups work for themselves.
func newTower(order string, groups, members, domains, shared int, up bool) *tower {
	t := &tower{w: newWorkload(order, members, domains), above: scgs.NewDetector(scgs.Options{})}
	hosts := slices.Clone(t.w.domains[:shared])
	for g := range groups {
		d := scgs.NewDetector(scgs.Options{})
		var specs []scgs.Spec
		for m := g; m < members; m += groups {
			name := t.w.domains[m]
			if m%domains >= shared {
				name = clocksync.Domain(fmt.Sprintf("%s-%d", name, g))
			}
			t.w.domains[m] = name
			specs = append(specs, scgs.Spec{Domain: name})
		}
		if up {
			d.Share(hosts...)
		}
		d.Epoch(1, nil, specs)
		t.groups = append(t.groups, d)
	}
	specs := make([]scgs.Spec, groups)
	for g := range specs {
		specs[g].Group = true
	}
	t.above.Epoch(1, nil, specs)
	for range 30 * members {
		t.step(up)
	}
	return t
}

func (t *tower) step(up bool) {
	m, seq, at := t.w.next()
	g := m % len(t.groups)
	low := t.groups[g]
	low.Start(scgs.Member(m/len(t.groups)), seq, at, 1)
	for more := true; more; {
		more = low.Next(&t.event)
		if up && low.Summarize(&t.sum) {
			t.above.Summary(scgs.Member(g), &t.sum, 1)
			t.told++
		}
	}
	t.refs = low.Released(t.refs[:0])
	if !up {
		return
	}
	for t.above.Next(&t.event) {
		if t.event.Kind == scgs.Opened {
			t.found++
		}
	}
	t.refs = t.above.Released(t.refs[:0])
}

// BenchmarkSummary is a report to a detector of a group, with (up) and without
// what telling a detector a level above and its work cost.
func BenchmarkSummary(b *testing.B) {
	for _, order := range []string{"random", "round-robin", "silent"} {
		for _, size := range []struct{ groups, members, domains, shared int }{
			{1, 1000, 1000, 0}, {1, 1000, 16, 4}, {10, 1000, 100, 0}, {10, 1000, 16, 4},
		} {
			for _, up := range []bool{false, true} {
				name := fmt.Sprintf("order=%s/groups=%d/members=%d/domains=%d/shared=%d/up=%v",
					order, size.groups, size.members, size.domains, size.shared, up)
				b.Run(name, func(b *testing.B) {
					t := newTower(order, size.groups, size.members, size.domains, size.shared, up)
					t.found, t.told = 0, 0
					b.ReportAllocs()
					for b.Loop() {
						t.step(up)
					}
					b.ReportMetric(float64(t.found)/float64(b.N), "states/op")
					b.ReportMetric(float64(t.told)/float64(b.N), "summaries/op")
				})
			}
		}
	}
}

func TestLevelsDoNotAllocateInSteadyState(t *testing.T) {
	for _, shared := range []int{0, 4} {
		tower := newTower("round-robin", 5, 100, 10, shared, true)
		tower.found = 0
		allocations := testing.AllocsPerRun(5000, func() { tower.step(true) })
		if allocations != 0 || tower.found == 0 {
			t.Errorf("%d domains shared: %v allocations a report, %d global states", shared, allocations, tower.found)
		}
	}
}
