package scgs

import "github.com/gopegasus/pegasus/clocksync"

// least is a tournament of instants: each node is the least of the eight below it,
// which lie in one cache line, and the last ones are the leaves. Where there is no
// instant there is MaxInstant. The zero value has no leaves.
type least struct {
	keys   []clocksync.Instant // node k is keys[root+k]; those below it begin at 8k+1
	leaves int                 // where in keys the leaves begin
}

// root is where in the keys the root is, so that the nodes below one begin at a
// multiple of eight.
const root = 7

func newLeast(leaves int) least {
	inner := (leaves + 5) / 7 // each takes the place of a leaf, and brings eight
	l := least{keys: make([]clocksync.Instant, root+1+8*inner), leaves: root + inner}
	for k := range l.keys {
		l.keys[k] = clocksync.MaxInstant
	}
	return l
}

func (l *least) leafAt(i int32) clocksync.Instant { return l.keys[l.leaves+int(i)] }

// least is MaxInstant if there are no leaves.
func (l *least) least() clocksync.Instant {
	if len(l.keys) == 0 {
		return clocksync.MaxInstant
	}
	return l.keys[root]
}

// setLeaf changes a leaf and the nodes above it, up to the first that stays as it is.
func (l *least) setLeaf(i int32, v clocksync.Instant) {
	k := l.leaves + int(i)
	old := l.keys[k]
	if v == old {
		return
	}
	l.keys[k] = v
	for k > root {
		up := k/8 + root - 1
		before := l.keys[up]
		switch {
		case v < before:
		case old > before:
			return // another one is the least
		default:
			n := (*[8]clocksync.Instant)(l.keys[k&^7:])
			v = min(min(min(n[0], n[1]), min(n[2], n[3])), min(min(n[4], n[5]), min(n[6], n[7])))
		}
		if v == before {
			return
		}
		l.keys[up] = v
		old, k = before, up
	}
}

// below is where in the keys the nodes below node k begin.
func below(k int) int { return 8 * (k - root + 1) }

// upTo appends the leaves whose instants are not above a limit below MaxInstant.
func (l *least) upTo(dst []int32, limit clocksync.Instant) []int32 {
	if l.least() > limit {
		return dst
	}
	return l.upToBelow(dst, limit, root)
}

func (l *least) upToBelow(dst []int32, limit clocksync.Instant, k int) []int32 {
	switch {
	case l.keys[k] > limit:
		return dst
	case k >= l.leaves:
		return append(dst, int32(k-l.leaves))
	}
	from := below(k)
	for i := range 8 {
		dst = l.upToBelow(dst, limit, from+i)
	}
	return dst
}
