package observe

import "slices"

// One unit of work is so many steps of each kind, one kind after the other. They
// are chosen to take about as long as each other on a server core of the 2020s,
// some 3 ms together. Power is comparable only among programs with the same numbers.
const (
	integerSteps = 200_000
	floatSteps   = 330_000
	memorySteps  = 200_000
	places       = 1 << 16 // of the memory that is walked, 4 bytes each: 256 KiB, which a core has to itself
)

// workSum is what each unit comes to, on every machine.
const workSum uint64 = 0xc4b0e463fbbf579d

// newPlaces is a random cycle through all places, the same at each call.
func newPlaces() []uint32 {
	next := make([]uint32, places)
	for i := range next {
		next[i] = uint32(i) //nolint:gosec // It is below places.
	}
	x := uint64(1)
	for i := uint64(places - 1); i > 0; i-- { // Sattolo: one cycle, not several.
		x = scramble(x)
		j := x % i
		next[i], next[j] = next[j], next[i]
	}
	return next
}

// scramble is a step of a generator (xorshift, Marsaglia 2003).
func scramble(x uint64) uint64 {
	x ^= x << 13
	x ^= x >> 7
	return x ^ x<<17
}

// unit does one unit of work. Its result depends on every step, so that none is
// left out.
func unit(next []uint32) uint64 {
	return integers() ^ floats() ^ walk(next)
}

func integers() uint64 {
	x, odd := uint64(88172645463325252), uint64(0)
	for range integerSteps {
		x = scramble(x)
		if x&4 != 0 { // No predictor learns it.
			odd += x % 61
		}
	}
	return x + odd
}

// spin keeps a core busy for some 50 us.
func spin(x uint64) uint64 {
	for range 25_000 {
		x = scramble(x)
	}
	return x
}

// floats adds up polynomials and quotients. The conversions keep a compiler from
// fusing operations, which rounds otherwise.
func floats() uint64 {
	x, sum := 0.5, 0.0
	for range floatSteps {
		x = float64(3.75 * float64(x*(1-x))) // chaotic, between 0 and 1
		sum += float64(float64(float64(x*0.25+0.5)*x)+1) / (1 + x)
	}
	return uint64(sum * 1e6)
}

func walk(next []uint32) uint64 {
	at, sum := uint32(0), uint64(0)
	for range memorySteps {
		at = next[at]
		sum += uint64(at)
	}
	return sum
}

// median of values, of which there is one at least.
func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
