package predicates

import (
	"math"
	"math/bits"
)

// span is a number of which the bounds are known: lo <= hi. A known number has
// lo == hi and no why; of a void one not even bounds are known. No bound is NaN.
type span[T int64 | float64] struct {
	lo, hi T
	void   bool
	why    cause
}

func pointSpan[T int64 | float64](x T) span[T] { return span[T]{lo: x, hi: x} }

func unknownSpan[T int64 | float64](why cause) span[T] { return span[T]{void: true, why: why} }

// spanBetween makes a span from bounds, which is known where they are equal.
func spanBetween[T int64 | float64](lo, hi T, why cause) span[T] {
	switch {
	case isNaN(lo) || isNaN(hi):
		return unknownSpan[T](why)
	case lo == hi:
		return pointSpan(lo)
	}
	return span[T]{lo: lo, hi: hi, why: why}
}

// eitherCause is the cause that remains of two operands.
func eitherCause(a, b cause) cause {
	if a.isSet() {
		return a
	}
	return b
}

// hullOf is a value of which only two candidates are known.
func hullOf[T int64 | float64](a, b span[T], why cause) span[T] {
	if a.void || b.void {
		return unknownSpan[T](eitherCause(why, eitherCause(a.why, b.why)))
	}
	return spanBetween(min(a.lo, b.lo), max(a.hi, b.hi), why)
}

// isSmaller is whether x < y, exactly, also if one is an int and the other a float. Rounding
// an int to a float turns no order around. Where both are equal then, and not all floats,
// both are whole: -2^63 fits an int64, and 2^63, to which great ints round, a uint64.
func isSmaller[T, U int64 | float64](x T, y U) bool {
	a, b := float64(x), float64(y)
	switch {
	case a != b:
		return a < b
	case a > 0:
		return uint64(x) < uint64(y)
	}
	return int64(x) < int64(y)
}

func lessSpan[T, U int64 | float64](a span[T], b span[U]) truth {
	switch {
	case a.void || b.void:
		return unknownTruth(eitherCause(a.why, b.why))
	case isSmaller(a.hi, b.lo):
		return truth{is: True}
	case !isSmaller(a.lo, b.hi):
		return truth{is: False}
	}
	return unknownTruth(eitherCause(a.why, b.why))
}

func equalSpans[T, U int64 | float64](a span[T], b span[U]) truth {
	switch {
	case a.void || b.void:
		return unknownTruth(eitherCause(a.why, b.why))
	case isSmaller(a.hi, b.lo) || isSmaller(b.hi, a.lo):
		return truth{is: False}
	case a.lo == a.hi && b.lo == b.hi:
		return truth{is: True}
	}
	return unknownTruth(eitherCause(a.why, b.why))
}

// applyMonotone applies a function that never falls.
func applyMonotone[T, U int64 | float64](a span[T], f func(T) U) span[U] {
	if a.void {
		return unknownSpan[U](a.why)
	}
	return spanBetween(f(a.lo), f(a.hi), a.why)
}

// lesserSpan and greater are min and max of two numbers.
func lesserSpan[T int64 | float64](a, b span[T]) span[T] {
	if a.void || b.void {
		return unknownSpan[T](eitherCause(a.why, b.why))
	}
	return spanBetween(min(a.lo, b.lo), min(a.hi, b.hi), eitherCause(a.why, b.why))
}

func greaterSpan[T int64 | float64](a, b span[T]) span[T] {
	if a.void || b.void {
		return unknownSpan[T](eitherCause(a.why, b.why))
	}
	return spanBetween(max(a.lo, b.lo), max(a.hi, b.hi), eitherCause(a.why, b.why))
}

// applyToCorners applies a function that is monotone in each operand to the corners of
// two spans. bad is the reason where f has no result or the result is NaN.
func applyToCorners[T int64 | float64](a, b span[T], bad cause, f func(x, y T) (T, bool)) span[T] {
	if a.void || b.void {
		return unknownSpan[T](eitherCause(a.why, b.why))
	}
	first, ok := f(a.lo, b.lo)
	if !ok || isNaN(first) {
		return unknownSpan[T](bad)
	}
	if a.lo == a.hi && b.lo == b.hi {
		return pointSpan(first)
	}
	lo, hi := first, first
	for _, p := range [3][2]T{{a.lo, b.hi}, {a.hi, b.lo}, {a.hi, b.hi}} {
		z, ok := f(p[0], p[1])
		if !ok || isNaN(z) {
			return unknownSpan[T](bad)
		}
		lo, hi = min(lo, z), max(hi, z)
	}
	if math.IsInf(float64(lo), 0) || math.IsInf(float64(hi), 0) { // what lies between may be NaN
		return unknownSpan[T](eitherCause(a.why, b.why))
	}
	return spanBetween(lo, hi, eitherCause(a.why, b.why))
}

// Arithmetic on floats follows IEEE 754; the result NaN is found by corners.
func addFloat(x, y float64) (float64, bool) { return x + y, true }
func subFloat(x, y float64) (float64, bool) { return x - y, true }
func mulFloat(x, y float64) (float64, bool) { return x * y, true }

// divideSpans has no result where the divisor can be zero.
func divideSpans(a, b span[float64], zero, bad cause) span[float64] {
	if !a.void && !b.void && b.lo <= 0 && b.hi >= 0 {
		return unknownSpan[float64](eitherCause(b.why, zero))
	}
	return applyToCorners(a, b, bad, func(x, y float64) (float64, bool) { return x / y, true })
}

// Arithmetic on ints has no result where it would overflow.
func addInt(x, y int64) (int64, bool) {
	z := x + y
	return z, (z > x) == (y > 0)
}

func subInt(x, y int64) (int64, bool) {
	z := x - y
	return z, (z < x) == (y > 0)
}

func mulInt(x, y int64) (int64, bool) {
	hi, lo := bits.Mul64(magnitude(x), magnitude(y))
	if (x < 0) != (y < 0) {
		return -int64(lo), hi == 0 && lo <= 1<<63
	}
	return int64(lo), hi == 0 && lo < 1<<63
}

func magnitude(x int64) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

// remainderSpan takes the sign of x as in Go. Of bounds nothing is concluded.
func remainderSpan(a, b span[int64], zero cause) span[int64] {
	switch why := eitherCause(a.why, b.why); {
	case why.isSet():
		return unknownSpan[int64](why)
	case b.lo == 0:
		return unknownSpan[int64](zero)
	case b.lo == -1: // minint % -1 is 0, which some processors trap on
		return pointSpan[int64](0)
	}
	return pointSpan(a.lo % b.lo)
}

func negateSpan[T int64 | float64](a span[T], overflow cause) span[T] {
	switch {
	case a.void:
		return a
	case -a.lo == a.lo && a.lo != 0: // the least int
		return unknownSpan[T](overflow)
	}
	return spanBetween(-a.hi, -a.lo, a.why)
}

func absoluteSpan[T int64 | float64](a span[T], overflow cause) span[T] {
	if a.void || a.lo >= 0 {
		return a
	}
	n := negateSpan(a, overflow)
	if n.void || a.hi <= 0 {
		return n
	}
	return spanBetween(0, max(a.hi, n.hi), a.why)
}

// truncateSpan is the int of a float, which has none outside the range of int.
func truncateSpan(a span[float64], overflow cause) span[int64] {
	const limit = 1 << 63
	if a.void {
		return unknownSpan[int64](a.why)
	}
	if a.lo < -limit || a.hi >= limit {
		return unknownSpan[int64](overflow)
	}
	return spanBetween(int64(math.Trunc(a.lo)), int64(math.Trunc(a.hi)), a.why)
}

func isNaN[T int64 | float64](x T) bool { return math.IsNaN(float64(x)) }
