package scgs

import (
	"math/bits"

	"github.com/gopegasus/pegasus/clocksync"
)

// ending is a closed head and the reading at which it ends.
type ending struct {
	at     clocksync.Instant
	member Member
}

// before is 1 if the head ends before another one, of two that end together if it
// has the lower number ([Detector.breakTie] says what for), else 0. Which of two is first cannot be guessed, so it is
// computed without a branch.
func (x *ending) before(y *ending) int {
	const sign = 1 << 63
	_, less := bits.Sub64(uint64(uint32(x.member)), uint64(uint32(y.member)), 0)
	_, less = bits.Sub64(uint64(x.at)^sign, uint64(y.at)^sign, less)
	return int(less)
}

// endings is a heap of closed heads. As a rule the first is taken out, and a new head is among
// the last, which is cheap. The four below a place lie in one cache line. Places behind the
// last one are at MaxInstant.
type endings struct {
	heap []ending
	end  int // of the places in use, from top on
}

// top is the place of the first one, so that the places below one begin at a
// multiple of four.
const top = 3

// newEndings has room for so many.
func newEndings(room int) endings {
	e := endings{heap: make([]ending, (top+room+8)&^3), end: top}
	for k := range e.heap {
		e.heap[k].at = clocksync.MaxInstant
	}
	return e
}

// firstEnding is the ending that comes first, at MaxInstant if there is none.
func (e *endings) firstEnding() *ending { return &e.heap[top] }

// pushEnding adds one.
func (e *endings) pushEnding(x ending) {
	e.end++
	e.rise(e.end-1, x)
}

// rise puts one at place k, or as far above as it belongs.
func (e *endings) rise(k int, x ending) {
	for k > top {
		up := k/4 + top - 1
		if x.before(&e.heap[up]) == 0 {
			break
		}
		e.heap[k] = e.heap[up]
		k = up
	}
	e.heap[k] = x
}

// popEnding takes out the one at place k.
func (e *endings) popEnding(k int) {
	e.end--
	last := e.heap[e.end]
	e.heap[e.end].at = clocksync.MaxInstant
	if k < e.end {
		e.replaceEnding(k, last)
	}
}

// replaceEnding puts another one at place k, or where it belongs then.
func (e *endings) replaceEnding(k int, x ending) {
	from := k
	for {
		below := 4 * (k - top + 1)
		if below >= e.end {
			break
		}
		four := (*[4]ending)(e.heap[below:])
		i := four[1].before(&four[0])
		j := 2 + four[3].before(&four[2])
		i += (j - i) * four[j&3].before(&four[i&3])
		least := &four[i&3]
		if x.before(least) != 0 {
			break
		}
		e.heap[k].at, e.heap[k].member = least.at, least.member
		k = below + i
	}
	if k == from && k > top {
		e.rise(k, x)
		return
	}
	e.heap[k].at, e.heap[k].member = x.at, x.member
}

// isFirstShared reports whether another one ends with the first.
func (e *endings) isFirstShared() bool {
	at, below := e.heap[top].at, (*[4]ending)(e.heap[top+1:])
	return below[0].at == at || below[1].at == at || below[2].at == at || below[3].at == at
}

// appendTied appends the places, from k down, of those that end with the first.
func (e *endings) appendTied(dst []int32, k int) []int32 {
	if k >= e.end || e.heap[k].at != e.heap[top].at {
		return dst
	}
	dst = append(dst, int32(k))
	for i := range 4 {
		dst = e.appendTied(dst, 4*(k-top+1)+i)
	}
	return dst
}
