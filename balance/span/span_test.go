package span_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/balance/span"
)

// TestGolden has the withdrawals of ADM, section 4.1, and of four equal members: with lists only what the
// leaving member had moves, with one interval each more.
func TestGolden(t *testing.T) {
	for _, c := range []struct {
		total         int
		before, after []float64
		sizes         []int
		lists, one    int
	}{
		{1000, []float64{1, 2, 3, 4}, []float64{1, 2, 0, 4}, []int{143, 286, 0, 571}, 300, 343},
		{100, []float64{1, 1, 1, 1}, []float64{1, 0, 1, 1}, []int{34, 0, 33, 33}, 25, 33},
	} {
		sizes, err := span.Cut(c.total, c.before)
		if err != nil {
			t.Fatal(err)
		}
		old := span.Lists(span.Lay(sizes))
		if sizes, err = span.Cut(c.total, c.after); err != nil || !slices.Equal(sizes, c.sizes) {
			t.Errorf("%v, %v, want %v", sizes, err, c.sizes)
		}
		lists, err := span.Move(old, sizes)
		if err != nil || span.Moved(old, lists) != c.lists {
			t.Errorf("%d move: %v, %v, want %d", span.Moved(old, lists), lists, err, c.lists)
		}
		if n := span.Moved(old, span.Lists(span.Lay(sizes))); n != c.one {
			t.Errorf("%d move with one interval each, want %d", n, c.one)
		}
	}
}

// TestMove: whatever speeds change to, no iteration is lost or twice, and exactly those move that the sizes ask
// for.
func TestMove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := rapid.IntRange(1, 8).Draw(t, "members")
		total := rapid.IntRange(0, 500).Draw(t, "total")
		speeds := func() []float64 {
			s := rapid.SliceOfN(rapid.Float64Range(0, 10), members, members).Draw(t, "speeds")
			s[0] += 0.1
			return s
		}
		sizes, err := span.Cut(total, speeds())
		if err != nil {
			t.Fatal(err)
		}
		lists := span.Lists(span.Lay(sizes))
		for range 4 {
			next, err := span.Cut(total, speeds())
			if err != nil {
				t.Fatal(err)
			}
			old := lists
			if lists, err = span.Move(old, next); err != nil {
				t.Fatal(err)
			}
			seen, least := make([]int, total), 0
			for i, list := range lists {
				for _, s := range list {
					for k := s.Low; k < s.High; k++ {
						seen[k]++
					}
				}
				least += max(0, next[i]-sizes[i])
			}
			if slices.ContainsFunc(seen, func(n int) bool { return n != 1 }) {
				t.Fatalf("%v of %d", lists, total)
			}
			if n := span.Moved(old, lists); n != least {
				t.Fatalf("%d move from %v to %v, want %d", n, old, lists, least)
			}
			sizes = next
		}
	})
}

// TestGrid: every cell of a grid of one to three dimensions is in one box, and members of speed 0 have none.
func TestGrid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sides := rapid.SliceOfN(rapid.IntRange(0, 9), 1, 3).Draw(t, "sides")
		speeds := rapid.SliceOfN(rapid.SampledFrom([]float64{0, 1, 2.5, math.MaxFloat64}), 1, 6).Draw(t, "speeds")
		speeds[len(speeds)-1] = 1
		boxes, err := span.Grid(sides, speeds)
		if err != nil {
			t.Fatal(err)
		}
		cells, all := map[string]int{}, 1
		for _, n := range sides {
			all *= n
		}
		for i, b := range boxes {
			if speeds[i] == 0 && b.Cells() > 0 {
				t.Fatalf("member %d has %v", i, b)
			}
			at := make([]int, len(b))
			for n := range b.Cells() {
				for k := range b {
					at[k] = b[k].Low + n%b[k].Len()
					n /= b[k].Len()
				}
				cells[fmt.Sprint(at)]++
			}
		}
		if len(cells) != all {
			t.Fatalf("%d cells of %d are in boxes: %v", len(cells), all, boxes)
		}
		for at, n := range cells {
			if n != 1 {
				t.Fatalf("cell %s is in %d boxes", at, n)
			}
		}
	})
	boxes, err := span.Grid([]int{6, 4}, []float64{1, 1, 1, 1})
	if want := "[[{0 3} {0 2}] [{0 3} {2 4}] [{3 6} {0 2}] [{3 6} {2 4}]]"; err != nil || fmt.Sprint(boxes) != want {
		t.Errorf("%v, %v, want %s", boxes, err, want)
	}
}

// TestFaults has what cannot be divided.
func TestFaults(t *testing.T) {
	for want, of := range map[string]func() error{
		"total: -1 iterations cannot be divided: give 0 or more":                    func() error { _, err := span.Cut(-1, []float64{1}); return err },
		"speed of member 1: -1 is no speed: give 0 or more":                         func() error { _, err := span.Cut(1, []float64{1, -1}); return err },
		"speed of member 0: NaN is no speed: give 0 or more":                        func() error { _, err := span.Cut(1, []float64{math.NaN()}); return err },
		"speeds: no member has a speed above 0: give one at least":                  func() error { _, err := span.Cut(1, []float64{0, 0}); return err },
		"sizes: there are 1 for 0 members: give one for each":                       func() error { _, err := span.Move(nil, []int{1}); return err },
		"size of member 0: -2 is below 0":                                           func() error { _, err := span.Move(make([][]span.Interval, 1), []int{-2}); return err },
		"sizes: they add up to 5, and the members have 0 iterations: cut that many": func() error { _, err := span.Move(make([][]span.Interval, 1), []int{5}); return err },
		"side 1: -3 cells: give 0 or more":                                          func() error { _, err := span.Grid([]int{1, -3}, []float64{1}); return err },
		"sides: there is none: give one for each dimension":                         func() error { _, err := span.Grid(nil, []float64{1}); return err },
	} {
		if err := of(); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if sizes, err := span.Cut(0, nil); err != nil || len(sizes) != 0 {
		t.Errorf("nothing among nobody: %v, %v", sizes, err)
	}
}
