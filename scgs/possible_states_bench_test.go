package scgs_test

import (
	"fmt"
	"testing"

	"github.com/gopegasus/pegasus/scgs"
)

func newExtentsLoad(tb testing.TB, order string, members int) func() {
	tb.Helper()
	w := newWorkload(order, members, members)
	x, err := scgs.NewExtents(scgs.ExtentOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	x.Epoch(1, nil, w.specs())
	var e scgs.Extent
	step := func() {
		m, seq, at := w.next()
		x.Start(scgs.Member(m), seq, at, float64(seq%16))
		for x.Next(&e) {
		}
	}
	for range 30 * members {
		step()
	}
	return step
}

// newSearchLoad looks for a state that never is: each report makes new
// combinations, and all are looked at.
func newSearchLoad(tb testing.TB, order string, members int) func() {
	tb.Helper()
	w := newWorkload(order, members, members)
	x := scgs.NewSearch(func(states []scgs.Ref) scgs.Answer {
		if states[0] == states[1] && states[0] > 1000 {
			return scgs.Yes
		}
		return scgs.No
	}, scgs.SearchOptions{})
	x.Epoch(1, nil, w.specs())
	var (
		f    scgs.Finding
		refs []scgs.Ref
	)
	step := func() {
		m, seq, at := w.next()
		x.Start(scgs.Member(m), seq, at, scgs.Ref(1+seq%16))
		for x.Next(&f) {
		}
		refs = x.Released(refs[:0])
	}
	for range 30 * members {
		step()
	}
	return step
}

func BenchmarkExtents(b *testing.B) {
	for _, order := range []string{"random", "round-robin", "silent"} {
		for _, members := range []int{10, 1000, 100_000} {
			b.Run(fmt.Sprintf("order=%s/members=%d", order, members), func(b *testing.B) {
				step := newExtentsLoad(b, order, members)
				b.ReportAllocs()
				for b.Loop() {
					step()
				}
			})
		}
	}
}

func BenchmarkSearch(b *testing.B) {
	for _, members := range []int{10, 1000, 100_000} {
		b.Run(fmt.Sprintf("order=random/members=%d", members), func(b *testing.B) {
			step := newSearchLoad(b, "random", members)
			b.ReportAllocs()
			for b.Loop() {
				step()
			}
		})
	}
}

// TestWindowsDoNotAllocate runs both in their steady state.
func TestWindowsDoNotAllocate(t *testing.T) {
	for _, c := range []struct {
		name string
		step func()
	}{
		{"extents", newExtentsLoad(t, "round-robin", 100)},
		{"search", newSearchLoad(t, "round-robin", 100)},
	} {
		if n := testing.AllocsPerRun(10_000, c.step); n > 0 {
			t.Errorf("%s: %v allocations a report", c.name, n)
		}
	}
}
