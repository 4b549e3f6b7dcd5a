package bnb

// descend improves the current tour until no city in the queue has a move, or
// until it made the given number of moves (negative: no limit). It says
// whether the queue is empty.
func (im *Improver) descend(moves int) bool {
	for len(im.queue) > 0 && moves != 0 {
		c := im.queue[len(im.queue)-1]
		if im.exchange(c) || im.relocate(c) {
			moves--
			continue // the city stays queued until nothing helps
		}
		im.pop(c)
	}
	return len(im.queue) == 0
}

func (im *Improver) push(cities ...int32) {
	for _, c := range cities {
		if !im.queued[c] {
			im.queued[c] = true
			im.queue = append(im.queue, c)
		}
	}
}

// pop removes c, which was on top when it was looked at.
func (im *Improver) pop(c int32) {
	im.queue = im.queue[:len(im.queue)-1]
	im.queued[c] = false
}

func (im *Improver) dist(a, b int32) int { return im.in.Dist(int(a), int(b)) }

// exchange makes the first 2-opt move that shortens the tour and joins city a
// with one of its near ones.
func (im *Improver) exchange(a int32) bool {
	for _, forward := range [2]bool{true, false} {
		b := im.beside(a, forward)
		ab := im.dist(a, b)
		for _, c := range im.near[int(a)*im.k : (int(a)+1)*im.k] {
			gain := ab - im.dist(a, c)
			if gain <= 0 {
				break
			}
			d := im.beside(c, forward)
			gain += im.dist(c, d) - im.dist(b, d)
			if gain <= 0 {
				continue
			}
			im.ring.swap(a, b, c, d)
			im.length -= gain
			im.push(a, b, c, d)
			return true
		}
	}
	return false
}

func (im *Improver) beside(c int32, forward bool) int32 {
	if forward {
		return im.ring.next(c)
	}
	return im.ring.prev(c)
}

// relocate makes the first Or-opt move that shortens the tour: a path of one
// to three cities that begins at s is carried to where s stands beside one of
// its near cities, either way round.
func (im *Improver) relocate(s int32) bool {
	for _, forward := range [2]bool{true, false} {
		p, t := im.beside(s, !forward), s
		for size := 1; size <= 3 && size <= len(im.best)-3; size++ {
			if size > 1 {
				t = im.beside(t, forward)
			}
			if im.relocatePath(p, s, t, im.beside(t, forward), size, forward) {
				return true
			}
		}
	}
	return false
}

func (im *Improver) relocatePath(p, s, t, q int32, size int, forward bool) bool {
	freed := im.dist(p, s) + im.dist(t, q) - im.dist(p, q)
	for _, a := range im.near[int(s)*im.k : (int(s)+1)*im.k] {
		gain := freed - im.dist(s, a)
		if gain <= 0 {
			return false
		}
		if im.within(a, s, size, forward) {
			continue
		}
		for _, ahead := range [2]bool{true, false} {
			b := im.beside(a, ahead)
			if im.within(b, s, size, forward) {
				continue
			}
			full := gain + im.dist(a, b) - im.dist(t, b)
			if full <= 0 {
				continue
			}
			im.ring.carry(p, s, t, q, a, b)
			im.length -= full
			im.push(p, s, t, q, a, b)
			return true
		}
	}
	return false
}

// within tells whether c is on the path of the given size that begins at s.
func (im *Improver) within(c, s int32, size int, forward bool) bool {
	n := int32(len(im.ring.order))
	off := im.ring.pos[c] - im.ring.pos[s]
	if !forward {
		off = -off
	}
	if off < 0 {
		off += n
	}
	return int(off) < size
}
