package scgs

import "github.com/gopegasus/pegasus/clocksync"

// ending is a closed head and the reading at which it ends.
type ending struct {
	at     clocksync.Instant
	member Member
}

// endings is a heap of closed heads, of which only the first is ever taken out:
// what ends comes in about that order, and goes no way down. Those below place k
// are four that lie in one cache line. What is behind the last one is at MaxInstant.
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

// first is the one that ends first, at MaxInstant if there is none.
func (e *endings) first() *ending { return &e.heap[top] }

// push adds one.
func (e *endings) push(x ending) {
	k := e.end
	e.end++
	for k > top {
		up := k/4 + top - 1
		if e.heap[up].at <= x.at {
			break
		}
		e.heap[k] = e.heap[up]
		k = up
	}
	e.heap[k] = x
}

// pop takes the first one out.
func (e *endings) pop() {
	e.end--
	last := e.heap[e.end]
	e.heap[e.end].at = clocksync.MaxInstant
	if e.end > top {
		e.replace(last)
	}
}

// replace puts another one in place of the first.
func (e *endings) replace(x ending) {
	k := top
	for {
		from := 4 * (k - top + 1)
		if from >= e.end {
			break
		}
		below := (*[4]ending)(e.heap[from:])
		i, j := 0, 2 // which is the least cannot be guessed: no branch
		if below[1].at < below[0].at {
			i = 1
		}
		if below[3].at < below[2].at {
			j = 3
		}
		if below[j].at < below[i].at {
			i = j
		}
		if below[i].at >= x.at {
			break
		}
		e.heap[k].at, e.heap[k].member = below[i].at, below[i].member
		k = from + i
	}
	e.heap[k].at, e.heap[k].member = x.at, x.member
}

// shared reports whether another one ends with the first.
func (e *endings) shared() bool {
	at, below := e.heap[top].at, (*[4]ending)(e.heap[top+1:])
	return below[0].at == at || below[1].at == at || below[2].at == at || below[3].at == at
}

// tied appends the places, from k down, of those that end with the first.
func (e *endings) tied(dst []int32, k int) []int32 {
	if k >= e.end || e.heap[k].at != e.heap[top].at {
		return dst
	}
	dst = append(dst, int32(k))
	for i := range 4 {
		dst = e.tied(dst, 4*(k-top+1)+i)
	}
	return dst
}
