package predicates

import (
	"math"
	"testing"
)

// TestSpanBounds tries every operation on all small spans: the result has to
// hold the result on each pair of numbers from them, and its bounds have to be
// reached. A result that does not exist for a pair makes the whole void.
func TestSpanBounds(t *testing.T) {
	why := cause{code: memberUnknown}
	bad := cause{code: divisionByZero}
	ops := map[string]func(a, b span[float64]) span[float64]{
		"+":       func(a, b span[float64]) span[float64] { return applyToCorners(a, b, bad, addFloat) },
		"-":       func(a, b span[float64]) span[float64] { return applyToCorners(a, b, bad, subFloat) },
		"*":       func(a, b span[float64]) span[float64] { return applyToCorners(a, b, bad, mulFloat) },
		"/":       func(a, b span[float64]) span[float64] { return divideSpans(a, b, bad, bad) },
		"min":     lesserSpan[float64],
		"max":     greaterSpan[float64],
		"neg":     func(a, _ span[float64]) span[float64] { return negateSpan(a, bad) },
		"abs":     func(a, _ span[float64]) span[float64] { return absoluteSpan(a, bad) },
		"floor":   func(a, _ span[float64]) span[float64] { return applyMonotone(a, math.Floor) },
		"int":     func(a, _ span[float64]) span[float64] { return applyMonotone(truncateSpan(a, bad), toFloat) },
		"int +":   onInts(func(a, b span[int64]) span[int64] { return applyToCorners(a, b, bad, addInt) }),
		"int -":   onInts(func(a, b span[int64]) span[int64] { return applyToCorners(a, b, bad, subInt) }),
		"int *":   onInts(func(a, b span[int64]) span[int64] { return applyToCorners(a, b, bad, mulInt) }),
		"int abs": onInts(func(a, _ span[int64]) span[int64] { return absoluteSpan(a, bad) }),
	}
	for name, op := range ops {
		for _, a := range smallSpans(why) {
			for _, b := range smallSpans(why) {
				checkSpan(t, name, op, a, b)
			}
		}
	}
}

func toFloat(x int64) float64 { return float64(x) }

func onInts(op func(a, b span[int64]) span[int64]) func(a, b span[float64]) span[float64] {
	return func(a, b span[float64]) span[float64] {
		return applyMonotone(op(truncateSpan(a, cause{}), truncateSpan(b, cause{})), toFloat)
	}
}

// smallSpans are all spans with whole bounds from -3 to 3.
func smallSpans(why cause) []span[float64] {
	var all []span[float64]
	for lo := -3.0; lo <= 3; lo++ {
		for hi := lo; hi <= 3; hi++ {
			all = append(all, spanBetween(lo, hi, why))
		}
	}
	return all
}

func checkSpan(t *testing.T, name string, op func(a, b span[float64]) span[float64], a, b span[float64]) {
	t.Helper()
	got := op(a, b)
	lo, hi, exists := math.Inf(1), math.Inf(-1), true
	for x := a.lo; x <= a.hi; x++ {
		for y := b.lo; y <= b.hi; y++ {
			z := op(pointSpan(x), pointSpan(y))
			exists = exists && !z.void
			lo, hi = min(lo, z.lo), max(hi, z.hi)
		}
	}
	switch {
	case got.void != !exists:
		t.Errorf("%s of %v and %v: void is %v, exists is %v", name, a, b, got.void, exists)
	case exists && (got.lo != lo || got.hi != hi):
		t.Errorf("%s of %v and %v: got %v, want %v to %v", name, a, b, got, lo, hi)
	case (got.void || got.lo < got.hi) != got.why.isSet():
		t.Errorf("%s of %v and %v: %v has the cause %v", name, a, b, got, got.why)
	}
}

// TestSpanOrder compares < and == on small spans with all pairs of numbers.
func TestSpanOrder(t *testing.T) {
	why := cause{code: memberUnknown}
	for _, a := range smallSpans(why) {
		for _, b := range smallSpans(why) {
			var lessYes, lessNo, equalYes, equalNo bool
			for x := a.lo; x <= a.hi; x++ {
				for y := b.lo; y <= b.hi; y++ {
					lessYes, lessNo = lessYes || x < y, lessNo || x >= y
					equalYes, equalNo = equalYes || x == y, equalNo || x != y
				}
			}
			if got, want := lessSpan(a, b).is, agreed(lessYes, lessNo); got != want {
				t.Errorf("%v < %v: got %s, want %s", a, b, got, want)
			}
			if got, want := equalSpans(a, b).is, agreed(equalYes, equalNo); got != want {
				t.Errorf("%v == %v: got %s, want %s", a, b, got, want)
			}
		}
	}
}

func agreed(yes, no bool) Truth {
	switch {
	case yes && no:
		return Unknown
	case yes:
		return True
	}
	return False
}

// TestSpanInfinity: what lies between infinite bounds may be no number.
func TestSpanInfinity(t *testing.T) {
	why, bad := cause{code: memberUnknown}, cause{code: notANumber}
	inf := pointSpan(math.Inf(1))
	if got := applyToCorners(spanBetween(-1.0, 1.0, why), inf, bad, mulFloat); !got.void || got.why != why {
		t.Errorf("[-1, 1] * inf is %v", got)
	}
	if got := applyToCorners(inf, inf, bad, subFloat); !got.void || got.why != bad {
		t.Errorf("inf - inf is %v", got)
	}
	if got := applyToCorners(inf, pointSpan(1.0), bad, addFloat); got != inf {
		t.Errorf("inf + 1 is %v", got)
	}
}
