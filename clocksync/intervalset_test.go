package clocksync

import (
	"testing"

	"pgregory.net/rapid"
)

func drawIntervals(t *rapid.T, n int) []Interval {
	all := make([]Interval, n)
	for i := range all {
		lo := Instant(rapid.IntRange(0, 30).Draw(t, "earliest"))
		all[i] = Interval{lo, lo + Instant(rapid.IntRange(0, 15).Draw(t, "width"))}
	}
	return all
}

// TestCoveredIsWhatSomeSetOfRightServersAllows compares with every set of
// servers that could be the right ones, at every half point.
func TestCoveredIsWhatSomeSetOfRightServersAllows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 7).Draw(t, "n")
		all := drawIntervals(t, n)
		for i := range all { // Even ends, so that odd points lie between.
			all[i] = Interval{2 * all[i].Earliest, 2 * all[i].Latest}
		}
		conflicts := make([]serverSet, n)
		for range rapid.IntRange(0, 6).Draw(t, "conflicts") {
			a, b := rapid.IntRange(0, n-1).Draw(t, "a"), rapid.IntRange(0, n-1).Draw(t, "b")
			if a != b {
				conflicts[a] |= 1 << b
				conflicts[b] |= 1 << a
			}
		}
		need := rapid.IntRange(1, n).Draw(t, "need")
		got := coveredBy(all, conflicts, need)
		for p := Instant(-1); p < 100; p++ {
			if want := someSetAllows(all, conflicts, need, p); got.overlapsInterval(Exactly(p)) != want {
				t.Fatalf("point %v: allowed %v, but %d of %v with conflicts %b gives %v", p, want, need, all, conflicts, got)
			}
		}
		for i := range got {
			if !got[i].Valid() || i > 0 && got[i-1].Latest >= got[i].Earliest {
				t.Fatalf("%v is not in order", got)
			}
		}
	})
}

func someSetAllows(all []Interval, conflicts []serverSet, need int, p Instant) bool {
	for right := range serverSet(1) << len(all) {
		ok := right.size() >= need
		for i := range all {
			ok = ok && (!right.has(i) || all[i].Contains(p) && conflicts[i]&right == 0)
		}
		if ok {
			return true
		}
	}
	return false
}

func TestFeudsOfManyServersEndInTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := drawIntervals(t, MaxServers)
		conflicts := make([]serverSet, MaxServers)
		for range rapid.IntRange(0, 2000).Draw(t, "conflicts") {
			a, b := rapid.IntRange(0, MaxServers-1).Draw(t, "a"), rapid.IntRange(0, MaxServers-1).Draw(t, "b")
			if a != b {
				conflicts[a] |= 1 << b
				conflicts[b] |= 1 << a
			}
		}
		need := rapid.IntRange(1, MaxServers).Draw(t, "need")
		without := coveredBy(all, nil, need)
		for _, part := range coveredBy(all, conflicts, need) {
			if !without.overlapsInterval(part) {
				t.Fatalf("conflicts made %v possible", part)
			}
		}
	})
}

func TestRegions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := coveredBy(drawIntervals(t, 4), nil, rapid.IntRange(1, 3).Draw(t, "a"))
		b := coveredBy(drawIntervals(t, 4), nil, rapid.IntRange(1, 3).Draw(t, "b"))
		wide, both := a.widenBy(2), a.intersectSets(b)
		for p := Instant(-5); p < 60; p++ {
			if got, want := wide.overlapsInterval(Exactly(p)), a.overlapsInterval(Around(p, 2)); got != want {
				t.Fatalf("%v is in %v widened to %v: %v", p, a, wide, got)
			}
			if got, want := both.overlapsInterval(Exactly(p)), a.overlapsInterval(Exactly(p)) && b.overlapsInterval(Exactly(p)); got != want {
				t.Fatalf("%v is in %v, of %v and %v: %v", p, both, a, b, got)
			}
		}
	})
}

// TestTheDeepestOverlapIsNoBound: two servers that lie together just beside the
// truth, which is 0, and an honest one that is not exact.
func TestTheDeepestOverlapIsNoBound(t *testing.T) {
	all := []Interval{{-10, 10}, {-3, 9}, {-9, 4}, {1, 3}, {1, 5}}
	if p := deepestPoint(all); p.overlapsInterval(Exactly(0)) {
		t.Fatalf("the deepest overlap %v holds 0", p)
	}
	if r := coveredBy(all, nil, 3); !r.overlapsInterval(Exactly(0)) || r.hullOf() != (Interval{-3, 5}) {
		t.Errorf("what 3 of %v allow is %v", all, r)
	}
}
