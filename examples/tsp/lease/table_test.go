package lease_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/examples/tsp/lease"
)

func Example() {
	t := lease.NewTable([]lease.Item{{Bound: 10, Body: []byte("left")}, {Bound: 12, Body: []byte("right")}})
	granted := t.Grant("w1", 0, 1, 0)
	err := t.Return("w1", granted[0].ID,
		[]lease.Item{{Bound: 11, Body: []byte("left, outer")}}, []lease.Item{{Bound: 13, Body: []byte("left, inner")}})
	if err != nil {
		fmt.Println(err)
		return
	}
	bound, _ := t.LowerBound()
	fmt.Println(bound, t.Drop("w1"), t.Counts().Pool)
	for _, l := range t.Leases() {
		fmt.Printf("%d from %d: %s\n", l.ID, l.Parent, l.Items[0].Body)
	}
	// Output:
	// 11 [1] 3
	// 1 from 0: left, inner
	// 2 from 0: right
	// 3 from 1: left, outer
}

func items(bodies ...string) []lease.Item {
	var list []lease.Item
	for i, b := range bodies {
		list = append(list, lease.Item{Bound: 10 * (i + 1), Body: []byte(b)})
	}
	return list
}

func ids(list []lease.Lease) []lease.ID {
	var out []lease.ID
	for _, l := range list {
		out = append(out, l.ID)
	}
	return out
}

func TestGrant(t *testing.T) {
	for _, c := range []struct {
		name    string
		first   lease.ID
		n, size int
		want    []lease.ID
	}{
		{"the lowest first", 0, 2, 0, []lease.ID{1, 3}},
		{"from a number on", 3, 2, 0, []lease.ID{3, 4}},
		{"around the end", 4, 3, 0, []lease.ID{4, 5, 1}},
		{"past the end", 9, 1, 0, []lease.ID{1}},
		{"all there is", 0, 9, 0, []lease.ID{1, 3, 4, 5}},
		{"as much as fits", 0, 9, 4, []lease.ID{1, 3}},
		{"one even if it does not fit", 5, 9, 1, []lease.ID{5}},
		{"none", 0, 0, 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := lease.NewTable(items("aa", "bb", "cc", "dd", "eee"))
			table.Grant("other", 2, 1, 0)
			if diff := cmp.Diff(c.want, ids(table.Grant("w1", c.first, c.n, c.size))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCounts(t *testing.T) {
	table := lease.NewTable(items("a", "b", "c", "d"))
	table.Grant("w1", 0, 2, 0)
	table.Grant("w2", 0, 1, 0)
	if err := table.Complete("w1", 1); err != nil {
		t.Fatal(err)
	}
	want := lease.Counts{Open: 3, Pool: 1, Next: 4, Sent: 3, Completed: 1}
	if diff := cmp.Diff(want, table.Counts()); diff != "" {
		t.Error(diff)
	}
	if got := table.Release("w2", []lease.ID{3, 4, 99}); got != 1 {
		t.Errorf("%d released, want the one w2 holds", got)
	}
	if got := table.Drop("w1"); !slices.Equal(got, []lease.ID{2}) {
		t.Errorf("dropping w1 queued %v again, want [2]", got)
	}
	want = lease.Counts{Open: 3, Pool: 3, Next: 2, Sent: 1, Completed: 1, Moved: 1}
	if diff := cmp.Diff(want, table.Counts()); diff != "" {
		t.Error(diff)
	}
}

func TestLowerBound(t *testing.T) {
	table := lease.NewTable(items("a", "b")) // 10 and 20
	table.Grant("w1", 0, 2, 0)
	check := func(want int) {
		t.Helper()
		if got, ok := table.LowerBound(); !ok || got != want {
			t.Errorf("bound %d %v, want %d", got, ok, want)
		}
	}
	check(10)
	table.Raise("w1", 1, 17)
	table.Raise("w1", 1, 12) // Never down.
	table.Raise("w2", 1, 99) // Not its lease.
	check(17)
	if err := table.Return("w1", 1, nil, []lease.Item{{Bound: 25, Body: []byte("x")}}); err != nil {
		t.Fatal(err)
	}
	check(20)
	if err := table.Return("w1", 2, items("c"), nil); err != nil {
		t.Fatal(err)
	}
	check(10)
	for _, id := range []lease.ID{1, 2} {
		if err := table.Complete("w1", id); err != nil {
			t.Fatal(err)
		}
	}
	table.Grant("w1", 0, 1, 0)
	if err := table.Complete("w1", 3); err != nil {
		t.Fatal(err)
	}
	if _, ok := table.LowerBound(); ok {
		t.Error("a bound with no lease open")
	}
}

func TestNotHeld(t *testing.T) {
	table := lease.NewTable(items("a"))
	table.Grant("w1", 0, 1, 0)
	const want = `lease 1 is not held by "w2": it was completed, or queued again when its owner was dropped`
	for name, err := range map[string]error{
		"complete": table.Complete("w2", 1),
		"return":   table.Return("w2", 1, items("x"), nil),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	if err := table.Complete("", 1); err == nil {
		t.Error("nobody completed a lease")
	}
	if got := table.Counts().Open; got != 1 {
		t.Errorf("%d leases open, want 1", got)
	}
}

// holder is a worker as the property knows it: what it still has to search of
// each lease. What it has searched of a lease that is not completed is lost
// with it.
type holder struct {
	left     map[lease.ID][]byte
	received int
}

// TestNothingIsLost lets workers search, give, release, complete, die and speak
// after they were dropped, in any order. Each element that no worker has
// searched must be in an open lease.
func TestNothingIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const universe = 24
		searched := map[byte]bool{}
		var start []lease.Item
		all := make([]byte, universe)
		for i := range all {
			all[i] = byte(i)
		}
		for rest := all; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			start = append(start, lease.Item{Body: rest[:n]})
			rest = rest[n:]
		}
		table := lease.NewTable(start)
		workers := map[string]*holder{}
		generation := map[string]int{}
		pick := func(t *rapid.T) (string, *holder) {
			slot := rapid.SampledFrom([]string{"w1", "w2", "w3"}).Draw(t, "worker")
			if workers[slot] == nil {
				workers[slot] = &holder{left: map[lease.ID][]byte{}}
			}
			return slot, workers[slot]
		}
		held := func(t *rapid.T, w *holder) (lease.ID, bool) {
			var list []lease.ID
			for id := range w.left {
				list = append(list, id)
			}
			if len(list) == 0 {
				return 0, false
			}
			slices.Sort(list)
			return rapid.SampledFrom(list).Draw(t, "lease"), true
		}
		owner := func(slot string) string { return fmt.Sprintf("%s/%d", slot, generation[slot]) }
		t.Repeat(map[string]func(*rapid.T){
			"grant": func(t *rapid.T) {
				slot, w := pick(t)
				first := lease.ID(rapid.IntRange(0, 30).Draw(t, "first"))
				for _, l := range table.Grant(owner(slot), first, rapid.IntRange(1, 3).Draw(t, "n"), 0) {
					w.received++
					for _, it := range l.Items {
						w.left[l.ID] = append(slices.Clone(w.left[l.ID]), it.Body...)
					}
				}
			},
			"search": func(t *rapid.T) {
				_, w := pick(t)
				id, ok := held(t, w)
				if !ok || len(w.left[id]) == 0 {
					return
				}
				searched[w.left[id][0]] = true
				w.left[id] = w.left[id][1:]
			},
			"return": func(t *rapid.T) {
				slot, w := pick(t)
				id, ok := held(t, w)
				if !ok || len(w.left[id]) < 2 {
					return
				}
				k := rapid.IntRange(1, len(w.left[id])-1).Draw(t, "given")
				given, rest := w.left[id][:k], w.left[id][k:]
				kept := []lease.Item{{Body: slices.Clone(rest)}}
				if rapid.Bool().Draw(t, "too large") {
					kept = nil
				}
				if err := table.Return(owner(slot), id, []lease.Item{{Body: slices.Clone(given)}}, kept); err != nil {
					t.Fatal(err)
				}
				w.left[id] = rest
			},
			"release": func(t *rapid.T) {
				slot, w := pick(t)
				if id, ok := held(t, w); ok {
					table.Release(owner(slot), []lease.ID{id})
					delete(w.left, id)
				}
			},
			"complete": func(t *rapid.T) {
				slot, w := pick(t)
				id, ok := held(t, w)
				if !ok || len(w.left[id]) > 0 {
					return
				}
				if err := table.Complete(owner(slot), id); err != nil {
					t.Fatal(err)
				}
				delete(w.left, id)
			},
			"die": func(t *rapid.T) {
				slot, w := pick(t)
				dropped := table.Drop(owner(slot))
				if len(dropped) != len(w.left) {
					t.Fatalf("%d leases queued again, %s held %d", len(dropped), slot, len(w.left))
				}
				for _, id := range dropped {
					if table.Complete(owner(slot), id) == nil || table.Return(owner(slot), id, nil, nil) == nil {
						t.Fatalf("%s speaks for lease %d after it was dropped", slot, id)
					}
				}
				delete(workers, slot)
				generation[slot]++
			},
			"": func(t *rapid.T) {
				covered := map[byte]bool{}
				for _, l := range table.Leases() {
					for _, it := range l.Items {
						for _, e := range it.Body {
							covered[e] = true
						}
					}
				}
				for _, e := range all {
					if !searched[e] && !covered[e] {
						t.Fatalf("element %d is neither searched nor in an open lease", e)
					}
				}
				received := 0
				for _, w := range workers {
					received += w.received
				}
				if got := table.Counts().Sent; got != received {
					t.Fatalf("sent %d, received %d", got, received)
				}
			},
		})
	})
}
