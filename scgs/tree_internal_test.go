package scgs

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
)

// TestTreeAgreesWithScan changes one leaf after another in trees of all sizes up to
// those of four levels, and compares what is above with a look at all leaves.
func TestTreeAgreesWithScan(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 1; n < 600; n += 1 + n/40 {
		tr := newTree(make([]node, treeSize(n)))
		if got := len(tr) - tr.countInner(); got != n {
			t.Fatalf("a tree for %d leaves has %d", n, got)
		}
		leaves := tr[tr.countInner():]
		for i := range leaves {
			leaves[i] = randomLeaf(rng, int32(i))
		}
		tr.buildNodes()
		for range 40 {
			i := int32(rng.IntN(n))
			*tr.changeLeaf(i) = randomLeaf(rng, i)
			tr.updateAbove(i)
			checkTree(t, tr, leaves, int32(rng.IntN(n)), clocksync.Instant(rng.IntN(30)))
			if t.Failed() {
				t.Fatalf("with %d leaves", n)
			}
		}
	}
}

func randomLeaf(rng *rand.Rand, i int32) node {
	at := func() clocksync.Instant { return clocksync.Instant(rng.IntN(30)) }
	k := absent
	k.m, k.lo, k.rep = at(), at(), i
	k.repLo = k.lo
	if k.repClosed = rng.IntN(2) == 0; k.repClosed {
		k.cm, k.clo, k.chi, k.deadM, k.deadLo = k.m, k.lo, k.lo+at(), i, i
	}
	return k
}

func checkTree(t *testing.T, tr tree, leaves []node, but int32, limit clocksync.Instant) {
	t.Helper()
	want, lo, clo := absent, clocksync.MaxInstant, clocksync.MaxInstant
	first := leaves[0]
	var below []int32
	for i, k := range leaves {
		want.m, want.lo, want.chi = min(want.m, k.m), min(want.lo, k.lo), min(want.chi, k.chi)
		want.cm, want.clo = min(want.cm, k.cm), min(want.clo, k.clo)
		if k.m < first.m || k.m == first.m && (k.repLo < first.repLo || k.repLo == first.repLo && k.repClosed && !first.repClosed) {
			first = k
		}
		if int32(i) != but {
			lo, clo = min(lo, k.lo), min(clo, k.clo)
		}
		if k.m < limit || k.lo < limit {
			below = append(below, int32(i))
		}
	}
	r := tr.root()
	if r.m != want.m || r.lo != want.lo || r.chi != want.chi || r.cm != want.cm || r.clo != want.clo {
		t.Errorf("the least are %+v, want %+v", r, want)
	}
	if r.repLo != first.repLo || r.repClosed != first.repClosed || leaves[r.rep].m != want.m || leaves[r.rep].repLo != first.repLo {
		t.Errorf("the first is %+v, want one like %+v", leaves[r.rep], first)
	}
	if r.deadM != int32(none) && leaves[r.deadM].cm != want.cm || r.deadLo != int32(none) && leaves[r.deadLo].clo != want.clo ||
		(r.deadM == int32(none)) != (want.cm == clocksync.MaxInstant) || (r.deadLo == int32(none)) != (want.clo == clocksync.MaxInstant) {
		t.Errorf("the closed ones are %d and %d, with %v and %v", r.deadM, r.deadLo, want.cm, want.clo)
	}
	gotLo, gotClo, dead := tr.leastBut(but)
	if gotLo != lo || gotClo != clo || dead == but || dead != int32(none) && leaves[dead].clo != clo {
		t.Errorf("without %d: %v, %v of %d, want %v, %v", but, gotLo, gotClo, dead, lo, clo)
	}
	got := tr.appendBelow(nil, 0, limit, limit)
	slices.Sort(got)
	if !slices.Equal(got, below) {
		t.Errorf("below %v are %v, want %v", limit, got, below)
	}
}
