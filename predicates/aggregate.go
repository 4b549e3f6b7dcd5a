package predicates

import (
	"math/bits"
	"slices"
)

// part is what one member contributes to a fold: a number of which the bounds
// are known. The zero part is of a member that is not in the group.
type part[T int64 | float64] struct {
	is     partFlags
	lo, hi T
}

type partFlags uint8

const (
	present partFlags = 1 << iota // the element is certainly in the group
	unsure                        // its number, or whether it is in the group, is not known
	open                          // of its number only bounds are known
)

// combined is what the parts of all members come to.
type combined[T int64 | float64] struct {
	present int64
	unsure  int // the first member that is, -1: none
	open    int // the first member that is, -1: none
	lo, hi  T
	ok      bool // there are such bounds: they fit an int, and are no NaN
}

// aggregate is the state of a single fold in a Scope: the parts of the members taken together.
// The aggregate of an incremental fold follows each change of a member; any other is rebuilt at
// each evaluation.
type aggregate[T int64 | float64] struct {
	fold    *fold[T]
	states  []aggregator // of the expression that the fold is of
	built   bool
	present int64
	unsure  marks
	open    marks
	total   total[T]
	parts   []part[T] // by member, if the fold is incremental
	read    combined[T]
}

// aggregator is an aggregate of any type.
type aggregator interface {
	// follow takes note that one member has changed.
	followMember(s *Scope, member int)
	// forget begins an epoch: it is rebuilt when it is next asked for.
	forgetState()
	// own hands over the states of an expression that has the fold, before first use.
	addOwn(states []aggregator)
}

func (k *aggregate[T]) addOwn(states []aggregator) {
	if k.states == nil {
		k.states = states
	}
}

// combineState reads the state, which fr builds first if need be. The next call
// overwrites what it returns.
func (k *aggregate[T]) combineState(fr *frame) *combined[T] {
	if !k.built {
		if k.fold.isIncremental() {
			fr = k.frame(fr.s)
		}
		k.build(fr)
	}
	a := &k.read
	a.present, a.unsure, a.open = k.present, k.unsure.firstMarked(), k.open.firstMarked()
	a.lo, a.hi, a.ok = k.total.bounds()
	return a
}

// frame is a frame to evaluate the fold in, which may be of another expression than
// the one being evaluated.
func (k *aggregate[T]) frame(s *Scope) *frame {
	s.sharedFrame.aggregates = k.states
	return &s.sharedFrame
}

func (k *aggregate[T]) build(fr *frame) {
	k.fold.group.beginLoop(fr)
	n := k.fold.group.loopSize(fr)
	k.present = 0
	k.unsure.reset(n)
	k.open.reset(n)
	k.total.reset(n)
	if k.built = k.fold.isIncremental(); k.built {
		k.parts = slices.Grow(k.parts[:0], n)[:n]
	}
	for i := range n {
		p := k.fold.partOf(fr, i)
		k.move(i, part[T]{}, p)
		switch {
		case k.built:
			k.parts[i] = p
		case k.fold.enough && p.lo > 0:
			return
		}
	}
}

func (k *aggregate[T]) followMember(s *Scope, i int) {
	if !k.built {
		return
	}
	var p part[T]
	if k.fold.field > 0 {
		p = k.fold.fieldPart(s, i)
	} else {
		p = k.fold.partOf(k.frame(s), i)
	}
	was := &k.parts[i]
	k.move(i, *was, p)
	*was = p
}

func (k *aggregate[T]) forgetState() { k.built = false }

// move replaces the part of a member.
func (k *aggregate[T]) move(i int, from, to part[T]) {
	if from == to {
		return
	}
	k.present += int64(to.is&present) - int64(from.is&present)
	changed := from.is ^ to.is
	if changed&unsure != 0 {
		k.unsure.flip(i)
	}
	if changed&open != 0 {
		k.open.flip(i)
	}
	k.total.move(i, from, to)
}

// total joins the numbers of all parts.
type total[T int64 | float64] interface {
	reset(members int)
	move(member int, from, to part[T])
	bounds() (lo, hi T, ok bool)
}

// intSum and floatSum add the lower bounds and the upper ones.
type intSum struct{ lo, hi wide }

func (s *intSum) reset(int) { *s = intSum{} }

func (s *intSum) move(_ int, from, to part[int64]) {
	s.lo.subtractInt(from.lo)
	s.hi.subtractInt(from.hi)
	s.lo.addInt(to.lo)
	s.hi.addInt(to.hi)
}

func (s *intSum) bounds() (lo, hi int64, ok bool) {
	lo, fits := s.lo.fitInt()
	hi, ok = s.hi.fitInt()
	return lo, hi, ok && fits
}

type floatSum struct {
	known  exact // of the numbers that are known, nearly always all
	lo, hi exact // of the others
	others int
	// The bounds, which several expressions ask for, once they are rounded.
	rounded    bool
	least, top float64
	ok         bool
}

func (s *floatSum) reset(int) { *s = floatSum{} }

func (s *floatSum) move(_ int, from, to part[float64]) {
	s.rounded = false
	s.add(from, true)
	s.add(to, false)
}

func (s *floatSum) add(p part[float64], subtract bool) {
	switch {
	case p.is&present == 0:
	case p.lo == p.hi:
		s.known.addFloat(p.lo, subtract)
	default:
		s.lo.addFloat(p.lo, subtract)
		s.hi.addFloat(p.hi, subtract)
		s.others++
		if subtract {
			s.others -= 2
		}
	}
}

func (s *floatSum) bounds() (lo, hi float64, ok bool) {
	switch {
	case s.rounded:
	case s.others == 0:
		s.least, s.ok = s.known.roundSum()
		s.top = s.least
	default:
		var exists bool
		s.least, exists = s.known.sumWith(&s.lo).roundSum()
		s.top, s.ok = s.known.sumWith(&s.hi).roundSum()
		s.ok = s.ok && exists
	}
	s.rounded = true
	return s.least, s.top, s.ok
}

// extreme is the least or greatest of the numbers: a tree in which each node has
// the better of some below it. Level 0 are the members; the last level is one
// node, the result.
type extreme[T int64 | float64] struct {
	better func(x, y T) T
	worst  T
	levels [16][][2]T // lower and upper bound of each node
	height int
}

// below is how many nodes one node of extreme joins. A change seldom reaches
// further up than to the next one, which stays in the cache the
// better the fewer they are.
const below = 16

func (e *extreme[T]) reset(n int) {
	for e.height = 0; n > 0; e.height++ {
		level := &e.levels[e.height]
		*level = slices.Grow((*level)[:0], n)[:n]
		for i := range *level {
			(*level)[i] = [2]T{e.worst, e.worst}
		}
		if n == 1 {
			n = 0
		}
		n = (n + below - 1) / below
	}
}

func (e *extreme[T]) move(i int, _, to part[T]) {
	next := [2]T{e.worst, e.worst}
	if to.is&present != 0 {
		next = [2]T{to.lo, to.hi}
	}
	for h := range e.height {
		was := e.levels[h][i]
		if was == next {
			return
		}
		e.levels[h][i] = next
		if h+1 == e.height {
			return
		}
		i /= below
		if up := e.levels[h+1][i]; was[0] != up[0] && was[1] != up[1] {
			next = e.join(up, next) // the removed value was not the best
			continue
		}
		next = [2]T{e.worst, e.worst}
		for _, node := range e.levels[h][below*i : min(below*(i+1), len(e.levels[h]))] {
			next = e.join(next, node)
		}
	}
}

func (e *extreme[T]) join(a, b [2]T) [2]T {
	return [2]T{e.better(a[0], b[0]), e.better(a[1], b[1])}
}

func (e *extreme[T]) bounds() (lo, hi T, ok bool) {
	if e.height == 0 {
		return e.worst, e.worst, true
	}
	top := e.levels[e.height-1][0]
	return top[0], top[1], true
}

// marks is a set of members of which the first is found at once: a bit for each
// member, and in each level above a bit for each word that is not zero.
type marks struct {
	levels [6][]uint64
	height int
}

func (m *marks) reset(n int) {
	for m.height = 0; n > 0; m.height++ {
		n = (n + 63) / 64
		level := &m.levels[m.height]
		*level = slices.Grow((*level)[:0], n)[:n]
		clear(*level)
		if n == 1 {
			n = 0
		}
	}
}

// flip puts a member in or takes it out.
func (m *marks) flip(i int) {
	for _, level := range m.levels[:m.height] {
		word := &level[i/64]
		was := *word
		*word ^= 1 << (i % 64)
		if was != 0 && *word != 0 {
			return
		}
		i /= 64
	}
}

// firstMarked is the first member, or -1.
func (m *marks) firstMarked() int {
	i := 0
	for h := m.height - 1; h >= 0; h-- {
		word := m.levels[h][i]
		if word == 0 {
			return -1
		}
		i = 64*i + bits.TrailingZeros64(word)
	}
	if m.height == 0 {
		return -1
	}
	return i
}
