package predicates

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// near draws floats of which some lie half a last place, or one, apart.
func near() *rapid.Generator[float64] {
	return rapid.Custom(func(t *rapid.T) float64 {
		mantissa := rapid.SampledFrom([]uint64{0, 0, 1, 1<<52 - 1}).Draw(t, "mantissa")
		exponent := 60 - rapid.SampledFrom([]uint64{0, 51, 52, 53, 54, 59}).Draw(t, "exponent")
		sign := rapid.Uint64Range(0, 1).Draw(t, "sign")
		return math.Float64frombits(sign<<63 | exponent<<52 | mantissa)
	})
}

// anyFloat draws floats of every size, often of like or opposite ones, so that
// sums cancel, carry and round at the last place.
func anyFloat() *rapid.Generator[float64] {
	return rapid.OneOf(
		rapid.Custom(func(t *rapid.T) float64 {
			mantissa := rapid.SampledFrom([]uint64{0, 1, 2, 1<<51 + 1, 1<<52 - 1}).Draw(t, "mantissa")
			exponent := rapid.SampledFrom([]uint64{0, 1, 2, 52, 53, 54, 1000, 1022, 1023, 1024, 1076, 2045, 2046}).Draw(t, "exponent")
			sign := rapid.Uint64Range(0, 1).Draw(t, "sign")
			return math.Float64frombits(sign<<63 | exponent<<52 | mantissa)
		}),
		rapid.Float64Range(-1e9, 1e9),
		rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64),
	)
}

// TestExactSum compares with sums of 4,200 bits, rounded once.
func TestExactSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.OneOf(rapid.SliceOfN(near(), 0, 4), rapid.SliceOfN(anyFloat(), 0, 12)).Draw(t, "numbers")
		var e exact
		want := new(big.Float).SetPrec(4200)
		for _, x := range numbers {
			e.addFloat(x, false)
			want.Add(want, new(big.Float).SetFloat64(x))
		}
		wanted, _ := want.Float64()
		if want.Sign() == 0 {
			wanted = 0
		}
		if got, ok := e.roundSum(); !ok || math.Float64bits(got) != math.Float64bits(wanted) {
			t.Fatalf("the sum of %v is %v (%v), want %v", numbers, got, ok, wanted)
		}
	})
}

// TestExactSumForgets adds and takes away in any order: the state is that of what
// is left, and nothing is left of the rest.
func TestExactSumForgets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.OneOf(anyFloat(), rapid.SampledFrom([]float64{math.Inf(1), math.Inf(-1)}))
		left := rapid.SliceOfN(numbers, 0, 6).Draw(t, "left")
		gone := rapid.SliceOfN(numbers, 0, 6).Draw(t, "gone")
		type step struct {
			x        float64
			subtract bool
		}
		var plain, mixed exact
		steps := make([]step, 0, 18)
		for _, x := range left {
			plain.addFloat(x, false)
			steps = append(steps, step{x, false})
		}
		for _, x := range gone {
			steps = append(steps, step{x, false}, step{x, true})
		}
		for _, s := range rapid.Permutation(steps).Draw(t, "order") {
			mixed.addFloat(s.x, s.subtract)
		}
		if mixed != plain {
			t.Fatalf("%v left of %v: %v, want %v", left, gone, mixed, plain)
		}
	})
}

func TestExactSumOfInfinities(t *testing.T) {
	inf := math.Inf(1)
	for _, test := range []struct {
		numbers []float64
		want    float64
		ok      bool
	}{
		{[]float64{inf, 1}, inf, true},
		{[]float64{1, -inf, -inf}, -inf, true},
		{[]float64{inf, 1, -inf}, 0, false},
		{[]float64{math.MaxFloat64, math.MaxFloat64}, inf, true},
		{[]float64{math.MaxFloat64, math.MaxFloat64, -math.MaxFloat64}, math.MaxFloat64, true},
		{[]float64{-math.MaxFloat64, -math.MaxFloat64}, -inf, true},
		{[]float64{math.Copysign(0, -1)}, 0, true},
		{[]float64{1 << 53, 1}, 1 << 53, true}, // half a last place: to the even one
		{[]float64{1<<53 + 2, 1}, 1<<53 + 4, true},
		{[]float64{1 << 53, 1, 5e-324}, 1<<53 + 2, true},
		{[]float64{0.1, 0.2, -0.3}, 1.0 / (1 << 55), true}, // 0.1+0.2-0.3 is 1/2^54 where it is rounded in between
	} {
		var e exact
		for _, x := range test.numbers {
			e.addFloat(x, false)
		}
		if got, ok := e.roundSum(); ok != test.ok || math.Float64bits(got) != math.Float64bits(test.want) {
			t.Errorf("the sum of %v is %v, %v; want %v, %v", test.numbers, got, ok, test.want, test.ok)
		}
	}
}

func TestWideSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.SliceOfN(rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64, -1, 1})), 0, 8).Draw(t, "numbers")
		taken := rapid.SliceOfN(rapid.SampledFrom(append(slices.Clone(numbers), math.MinInt64)), 0, 4).Draw(t, "taken")
		var w wide
		want := new(big.Int)
		for _, x := range numbers {
			w.addInt(x)
			want.Add(want, big.NewInt(x))
		}
		for _, x := range taken {
			w.subtractInt(x)
			want.Sub(want, big.NewInt(x))
		}
		got, ok := w.fitInt()
		if ok != want.IsInt64() || ok && got != want.Int64() {
			t.Fatalf("%v less %v is %v, %v; want %v", numbers, taken, got, ok, want)
		}
	})
}

// TestMarks compares with a list of the members that are in.
func TestMarks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m marks
		for range rapid.IntRange(1, 3).Draw(t, "epochs") {
			n := rapid.SampledFrom([]int{0, 1, 2, 63, 64, 65, 4096, 4097, 10_000}).Draw(t, "members")
			m.reset(n)
			in := make([]bool, n)
			for _, i := range rapid.SliceOfN(rapid.IntRange(0, 1<<20), 0, 10).Draw(t, "flips") {
				if got, want := m.firstMarked(), slices.Index(in, true); got != want {
					t.Fatalf("of %d members the first is %d, want %d", n, got, want)
				}
				if n > 0 {
					in[i%n] = !in[i%n]
					m.flip(i % n)
				}
			}
		}
	})
}

// TestExtreme compares the tree with a walk over all numbers.
func TestExtreme(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := extremeTotal[int64]("max", math.MinInt64, math.MaxInt64)()
		n := rapid.SampledFrom([]int{0, 1, 2, 15, 16, 17, 300}).Draw(t, "members")
		e.reset(n)
		parts := make([]part[int64], n)
		for range rapid.IntRange(0, 20*min(n, 1)).Draw(t, "moves") {
			i := rapid.IntRange(0, n-1).Draw(t, "member")
			var p part[int64]
			if rapid.IntRange(0, 3).Draw(t, "present") > 0 {
				p.is = present
				p.lo = rapid.Int64Range(-5, 5).Draw(t, "lo")
				p.hi = p.lo + rapid.Int64Range(0, 2).Draw(t, "more")
			}
			e.move(i, parts[i], p)
			parts[i] = p
			lo, hi := int64(math.MinInt64), int64(math.MinInt64)
			for _, p := range parts {
				if p.is&present != 0 {
					lo, hi = max(lo, p.lo), max(hi, p.hi)
				}
			}
			if gotLo, gotHi, _ := e.bounds(); gotLo != lo || gotHi != hi {
				t.Fatalf("the greatest of %v is %d to %d, want %d to %d", parts, gotLo, gotHi, lo, hi)
			}
		}
	})
}
