package program

import (
	"container/heap"

	"github.com/gopegasus/pegasus/clocksync"
)

// allocFrame gives a frame with nothing in it. Frames move when there are more of
// them, so that no pointer to one outlives this.
func (r *Run) allocFrame() int32 {
	blank := frame{inside: none, waits: -1, timer: -1, by: -1, host: -1}
	if n := len(r.free); n > 0 {
		f := r.free[n-1]
		r.free = r.free[:n-1]
		x := &r.frames[f]
		clear(x.parts)
		blank.parts, blank.values, blank.tried = x.parts[:0], x.values[:0], x.tried[:0]
		*x = blank
		return f
	}
	r.frames, r.beside, r.onHost = append(r.frames, blank), append(r.beside, link{}), append(r.onHost, link{})
	return int32(len(r.frames) - 1)
}

// releaseFrame gives a frame back.
func (r *Run) releaseFrame(f int32) {
	x := &r.frames[f]
	clear(x.values)
	x.node, x.result, x.reason = -1, "", ""
	r.free = append(r.free, f)
}

// chain is a list of numbered things, oldest first. -1 stands for none.
type chain struct{ first, last int32 }

// link is what a chain keeps of each.
type link struct{ prev, next int32 }

var none = chain{-1, -1}

// pushLink puts the thing of that number, whose link is among those, at the end.
func (c *chain) pushLink(links []link, i int32) {
	links[i] = link{c.last, -1}
	if c.last >= 0 {
		links[c.last].next = i
	} else {
		c.first = i
	}
	c.last = i
}

// removeLink takes it out; its own link stays as it is.
func (c *chain) removeLink(links []link, i int32) {
	l := &links[i]
	if l.prev >= 0 {
		links[l.prev].next = l.next
	} else {
		c.first = l.next
	}
	if l.next >= 0 {
		links[l.next].prev = l.prev
	} else {
		c.last = l.prev
	}
}

// waiter is a frame in the list of a predicate, whose next verdict wakes it.
type waiter struct {
	frame, predicate int32
	more             int32 // the frame's next waiter, or the next that is free
}

// listWaiting puts a frame at the end of a predicate's list.
func (r *Run) listWaiting(f, q int32) {
	w := r.unused
	if w >= 0 {
		r.unused = r.waiters[w].more
	} else {
		w = int32(len(r.waiters))
		r.waiters, r.waiting = append(r.waiters, waiter{}), append(r.waiting, link{})
	}
	r.waiters[w] = waiter{frame: f, predicate: q, more: r.frames[f].waits}
	r.frames[f].waits = w
	r.lists[q].pushLink(r.waiting, w)
}

// unlistFrame takes a frame out of all lists.
func (r *Run) unlistFrame(f int32) {
	for w := r.frames[f].waits; w >= 0; {
		x := &r.waiters[w]
		r.lists[x.predicate].removeLink(r.waiting, w)
		x.more, r.unused, w = r.unused, w, x.more
	}
	r.frames[f].waits = -1
}

func (r *Run) setTimer(f int32, due clocksync.Instant) {
	at := len(r.timers)
	r.timers = append(r.timers, f)
	r.frames[f].due, r.frames[f].timer = due, int32(at)
	heap.Fix((*timers)(r), at)
}

func (r *Run) clearTimer(f int32) {
	if at := r.frames[f].timer; at >= 0 {
		heap.Remove((*timers)(r), int(at))
		r.frames[f].timer = -1
	}
}

// timers is a run as the heap of its timers: by deadline, then by which began first.
type timers Run

func (t *timers) Len() int { return len(t.timers) }

func (t *timers) Less(i, j int) bool {
	x, y := &t.frames[t.timers[i]], &t.frames[t.timers[j]]
	return x.due < y.due || x.due == y.due && x.seq < y.seq
}

func (t *timers) Swap(i, j int) {
	t.timers[i], t.timers[j] = t.timers[j], t.timers[i]
	t.frames[t.timers[i]].timer, t.frames[t.timers[j]].timer = int32(i), int32(j)
}

// Push is not used: it would allocate.
func (t *timers) Push(any) {}

func (t *timers) Pop() any {
	t.timers = t.timers[:len(t.timers)-1]
	return nil
}
