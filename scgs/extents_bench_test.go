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

func TestExtentsDoNotAllocate(t *testing.T) {
	if n := testing.AllocsPerRun(10_000, newExtentsLoad(t, "round-robin", 100)); n > 0 {
		t.Errorf("%v allocations a report", n)
	}
}
