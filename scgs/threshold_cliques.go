package scgs

import (
	"math/bits"
	"slices"
)

// enumerateSets finds the maximal sets of runs near r that overlap each other, and r,
// and have one that r has begun to overlap.
func (t *Threshold) enumerateSets(r *run) {
	s := &t.search
	s.chosen = append(s.chosen[:0], r)
	all := t.allOverlap(r)
	if all && t.alarmsOnly { // before the runs are put in order
		s.chosen = append(s.chosen, s.near...)
		if a := t.containedSet(s.chosen); a != nil {
			t.coverLast(s.chosen, a)
			return
		}
	}
	slices.SortFunc(s.near, compareRuns)
	if all {
		s.chosen = append(s.chosen[:1], s.near...)
		t.addSet(s.chosen)
		return
	}
	if len(s.near) > t.maxPending {
		t.findSomeSets(r)
		return
	}
	t.compare()
	n := (len(s.near) + 63) / 64
	s.steps = 64 * t.maxPending
	s.clique = zeros(s.clique, n)
	may, before, _ := s.at(0, n)
	clear(may)
	clear(before)
	for i := range s.near {
		may[i/64] |= 1 << (i % 64)
	}
	t.extend(r, 0, 1)
}

// compare fills in, for each run near r, which others it overlaps.
func (t *Threshold) compare() {
	s := &t.search
	n := (len(s.near) + 63) / 64
	s.rows = zeros(s.rows, n*len(s.near))
	s.fresh = zeros(s.fresh, n)
	for i, x := range s.near {
		if s.all || x.fresh == t.tick {
			s.fresh[i/64] |= 1 << (i % 64)
		}
		for j, y := range s.near[:i] {
			if x.overlapsRun(y) {
				s.rows[i*n+j/64] |= 1 << (j % 64)
				s.rows[j*n+i/64] |= 1 << (i % 64)
			}
		}
	}
}

func zeros(b []uint64, n int) []uint64 {
	b = slices.Grow(b[:0], n)[:n]
	clear(b)
	return b
}

// at returns the sets of a depth: what may be added to the set in the making,
// what might have been but was tried before, and what is added there.
func (s *search) at(depth, n int) (may, before, added []uint64) {
	for len(s.stack) <= depth {
		s.stack = append(s.stack, nil)
	}
	l := slices.Grow(s.stack[depth][:0], 3*n)[:3*n]
	s.stack[depth] = l
	return l[:n], l[n : 2*n], l[2*n:]
}

// extend finds the maximal sets with what is chosen, of which there are size, and
// any of what may be added at that depth (Bron and Kerbosch 1973, with a pivot).
func (t *Threshold) extend(r *run, depth, size int) {
	s := &t.search
	n := len(s.clique)
	may, before, added := s.at(depth, n)
	if s.steps--; s.steps < 0 {
		s.truncated = true
		return
	}
	left := count(may)
	if size+left < t.k || !meet(s.fresh, may) && !meet(s.fresh, s.clique) {
		return
	}
	pivot, dominated := s.pivot(may, before, added, left)
	if dominated {
		return
	}
	for w, b := range added { // they are in every such set
		s.clique[w] |= b
		may[w] &^= b
	}
	if pivot < 0 {
		t.emit(r)
	} else {
		t.branch(r, depth, size+count(added), s.rows[pivot*n:pivot*n+n])
	}
	for w, b := range added {
		s.clique[w] &^= b
	}
}

// pivot returns which of those that may be added overlaps most of the others, and
// gives in added those that overlap all of them; it is -1 if they all do. What
// was tried before and is left over in before overlaps all that is in added. If
// one of it overlaps all, each set has been found with it.
func (s *search) pivot(may, before, added []uint64, left int) (pivot int, dominated bool) {
	n, most := len(may), -1
	pivot = -1
	clear(added)
	for w, word := range may {
		for b := word; b != 0; b &= b - 1 {
			i := 64*w + bits.TrailingZeros64(b)
			switch c := both(s.rows[i*n:], may); {
			case c == left-1:
				added[w] |= b & -b
			case c > most:
				pivot, most = i, c
			}
		}
	}
	sure := count(added)
	for w, word := range before {
		for b := word; b != 0; b &= b - 1 {
			i := 64*w + bits.TrailingZeros64(b)
			if both(s.rows[i*n:], may) == left {
				return pivot, true
			}
			if both(s.rows[i*n:], added) < sure {
				before[w] &^= b & -b
			}
		}
	}
	return pivot, false
}

// branch extends the set in the making by each of what may be added and does not
// overlap the pivot, one after the other.
func (t *Threshold) branch(r *run, depth, size int, pivot []uint64) {
	s := &t.search
	n := len(s.clique)
	may, before, _ := s.at(depth, n)
	for w := range n {
		for b := may[w] &^ pivot[w]; b != 0; b &= b - 1 {
			i, bit := 64*w+bits.TrailingZeros64(b), b&-b
			row := s.rows[i*n : i*n+n]
			subMay, subBefore, _ := s.at(depth+1, n)
			for v := range n {
				subMay[v], subBefore[v] = may[v]&row[v], before[v]&row[v]
			}
			s.clique[w] |= bit
			t.extend(r, depth+1, size+1)
			s.clique[w] &^= bit
			may[w] &^= bit
			before[w] |= bit
			if s.truncated {
				return
			}
		}
	}
}

func count(a []uint64) int {
	n := 0
	for _, w := range a {
		n += bits.OnesCount64(w)
	}
	return n
}

// both counts what is in a and b; a is not shorter.
func both(a, b []uint64) int {
	n := 0
	for i, w := range b {
		n += bits.OnesCount64(w & a[i])
	}
	return n
}

func meet(a, b []uint64) bool {
	for i, w := range a {
		if w&b[i] != 0 {
			return true
		}
	}
	return false
}

// emit adds the set in the making.
func (t *Threshold) emit(r *run) {
	s := &t.search
	s.chosen = append(s.chosen[:0], r)
	for w, b := range s.clique {
		for ; b != 0; b &= b - 1 {
			s.chosen = append(s.chosen, s.near[64*w+bits.TrailingZeros64(b)])
		}
	}
	t.addSet(s.chosen)
}
