package predicates

import (
	"math"
	"math/bits"
)

// exact is a sum of floats without rounding: a fixed-point number in two's complement whose
// lowest bit is the smallest float, 2^-1074. It has room for 2^77 of the largest floats. Added
// values can be taken away again, so the sum depends neither on order nor on history.
// Infinities are counted apart.
type exact struct {
	limbs [34]uint64 // lowest first
	above int        // infinities of each sign
	below int
}

const (
	mantissaBits = 52
	exponentMask = 1<<11 - 1
)

// addFloat adds x, or subtracts it. x is not NaN.
func (e *exact) addFloat(x float64, subtract bool) {
	one := 1
	if subtract {
		one = -1
	}
	b := math.Float64bits(x)
	exponent := int(b >> mantissaBits & exponentMask)
	mantissa := b & (1<<mantissaBits - 1)
	switch {
	case exponent == exponentMask && x > 0:
		e.above += one
		return
	case exponent == exponentMask:
		e.below += one
		return
	case exponent > 0:
		mantissa |= 1 << mantissaBits
		exponent--
	}
	i, shift := exponent/64, exponent%64
	low, high := mantissa<<shift, mantissa>>(64-shift)
	var carry uint64
	if (x < 0) != subtract {
		e.limbs[i], carry = bits.Sub64(e.limbs[i], low, 0)
		e.limbs[i+1], carry = bits.Sub64(e.limbs[i+1], high, carry)
		for i += 2; carry != 0 && i < len(e.limbs); i++ {
			e.limbs[i], carry = bits.Sub64(e.limbs[i], 0, carry)
		}
		return
	}
	e.limbs[i], carry = bits.Add64(e.limbs[i], low, 0)
	e.limbs[i+1], carry = bits.Add64(e.limbs[i+1], high, carry)
	for i += 2; carry != 0 && i < len(e.limbs); i++ {
		e.limbs[i], carry = bits.Add64(e.limbs[i], 0, carry)
	}
}

// sumWith is the sum of both.
func (e *exact) sumWith(f *exact) *exact {
	sum := exact{above: e.above + f.above, below: e.below + f.below}
	var carry uint64
	for i := range sum.limbs {
		sum.limbs[i], carry = bits.Add64(e.limbs[i], f.limbs[i], carry)
	}
	return &sum
}

// roundSum is the sum, rounded once to the nearest float, ties to even; zero is
// never negative. Of infinities of both signs there is no sum.
func (e *exact) roundSum() (x float64, ok bool) {
	switch {
	case e.above > 0 && e.below > 0:
		return 0, false
	case e.above > 0:
		return math.Inf(1), true
	case e.below > 0:
		return math.Inf(-1), true
	}
	limbs := &e.limbs
	negative := int64(limbs[len(limbs)-1]) < 0
	if negative {
		limbs = negated(limbs)
	}
	x = math.Float64frombits(rounded(limbs))
	if negative {
		x = -x
	}
	return x, true
}

func negated(limbs *[34]uint64) *[34]uint64 {
	var n [34]uint64
	var borrow uint64
	for i, l := range limbs {
		n[i], borrow = bits.Sub64(0, l, borrow)
	}
	return &n
}

// rounded gives the bits of the float nearest to a number that is not negative.
func rounded(limbs *[34]uint64) uint64 {
	top := len(limbs) - 1
	for top > 4 && limbs[top]|limbs[top-1]|limbs[top-2]|limbs[top-3] == 0 {
		top -= 4
	}
	for top > 0 && limbs[top] == 0 {
		top--
	}
	length := 64*top + bits.Len64(limbs[top]) // of the number, in bits
	drop := length - (mantissaBits + 1)
	if drop <= 0 {
		return limbs[0] // the units are the units of the smallest floats
	}
	i, shift := (drop-1)/64, (drop-1)%64
	twice := limbs[i] >> shift // the mantissa, and the half below it
	if i < top {
		twice |= limbs[i+1] << (64 - shift)
	}
	twice &= 1<<(mantissaBits+2) - 1
	mantissa, half := twice>>1, twice&1 == 1
	if half && (mantissa&1 == 1 || anyBelow(limbs, i, shift)) {
		mantissa++
	}
	// The highest bit of the mantissa, or of the sum it has grown to, counts the exponent up.
	if b := uint64(drop)<<mantissaBits + mantissa; b < exponentMask<<mantissaBits {
		return b
	}
	return exponentMask << mantissaBits
}

// anyBelow is whether a bit is set below bit shift of limb i.
func anyBelow(limbs *[34]uint64, i, shift int) bool {
	if limbs[i]&(1<<shift-1) != 0 {
		return true
	}
	for _, l := range limbs[:i] {
		if l != 0 {
			return true
		}
	}
	return false
}

// wide is an int of 128 bits in two's complement.
type wide struct{ high, low uint64 }

func (w *wide) addInt(x int64) {
	var carry uint64
	w.low, carry = bits.Add64(w.low, uint64(x), 0)
	w.high, _ = bits.Add64(w.high, uint64(x>>63), carry)
}

func (w *wide) subtractInt(x int64) {
	var borrow uint64
	w.low, borrow = bits.Sub64(w.low, uint64(x), 0)
	w.high, _ = bits.Sub64(w.high, uint64(x>>63), borrow)
}

// fitInt is the number if it fits an int.
func (w *wide) fitInt() (int64, bool) {
	x := int64(w.low)
	return x, w.high == uint64(x>>63)
}
