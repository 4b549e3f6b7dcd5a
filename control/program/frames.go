package program

import "github.com/gopegasus/pegasus/clocksync"

// alloc gives a frame with nothing in it. Frames move when there are more of
// them, so that no pointer to one outlives this.
func (r *Run) alloc() int32 {
	blank := frame{child: -1, prev: -1, next: -1, waits: -1, timer: -1, by: -1, host: -1}
	if n := len(r.free); n > 0 {
		f := r.free[n-1]
		r.free = r.free[:n-1]
		x := &r.frames[f]
		clear(x.parts)
		blank.parts, blank.values, blank.tried = x.parts[:0], x.values[:0], x.tried[:0]
		*x = blank
		return f
	}
	r.frames = append(r.frames, blank)
	return int32(len(r.frames) - 1)
}

// release gives a frame back.
func (r *Run) release(f int32) {
	x := &r.frames[f]
	clear(x.values)
	x.node, x.result, x.reason = -1, "", ""
	r.free = append(r.free, f)
}

// detach takes a frame out of its parent's.
func (r *Run) detach(f int32) {
	x := &r.frames[f]
	if x.prev >= 0 {
		r.frames[x.prev].next = x.next
	} else {
		r.frames[x.parent].child = x.next
	}
	if x.next >= 0 {
		r.frames[x.next].prev = x.prev
	}
}

// waiter is a frame in the list of a predicate, whose next verdict wakes it.
type waiter struct {
	frame, predicate int32
	prev, next       int32
	more             int32 // the frame's next waiter
}

type waiterList struct{ first, last int32 }

// wait puts a frame at the end of a predicate's list.
func (r *Run) wait(f, q int32) {
	w := r.unused
	if w >= 0 {
		r.unused = r.waiters[w].next
	} else {
		w = int32(len(r.waiters))
		r.waiters = append(r.waiters, waiter{})
	}
	list := &r.lists[q]
	r.waiters[w] = waiter{frame: f, predicate: q, prev: list.last, next: -1, more: r.frames[f].waits}
	r.frames[f].waits = w
	if list.last >= 0 {
		r.waiters[list.last].next = w
	} else {
		list.first = w
	}
	list.last = w
}

// unwait takes a frame out of all lists.
func (r *Run) unwait(f int32) {
	for w := r.frames[f].waits; w >= 0; {
		x := r.waiters[w]
		list := &r.lists[x.predicate]
		if x.prev >= 0 {
			r.waiters[x.prev].next = x.next
		} else {
			list.first = x.next
		}
		if x.next >= 0 {
			r.waiters[x.next].prev = x.prev
		} else {
			list.last = x.prev
		}
		r.waiters[w].next = r.unused
		r.unused, w = w, x.more
	}
	r.frames[f].waits = -1
}

// The timers are a heap by deadline, then by which began first.

func (r *Run) setTimer(f int32, due clocksync.Instant) {
	r.frames[f].due = due
	r.timers = append(r.timers, f)
	r.up(len(r.timers)-1, f)
}

func (r *Run) clearTimer(f int32) {
	at := int(r.frames[f].timer)
	if at < 0 {
		return
	}
	r.frames[f].timer = -1
	last := len(r.timers) - 1
	moved := r.timers[last]
	if r.timers = r.timers[:last]; at == last {
		return
	}
	r.up(at, moved)
	r.down(int(r.frames[moved].timer), moved)
}

func (r *Run) earlier(a, b int32) bool {
	x, y := r.frames[a].due, r.frames[b].due
	return x < y || x == y && r.frames[a].seq < r.frames[b].seq
}

// up moves a frame from a place towards the root.
func (r *Run) up(at int, f int32) {
	for ; at > 0 && r.earlier(f, r.timers[(at-1)/2]); at = (at - 1) / 2 {
		r.set(at, r.timers[(at-1)/2])
	}
	r.set(at, f)
}

// down moves a frame from a place towards the leaves.
func (r *Run) down(at int, f int32) {
	for {
		kid := 2*at + 1
		if kid+1 < len(r.timers) && r.earlier(r.timers[kid+1], r.timers[kid]) {
			kid++
		}
		if kid >= len(r.timers) || !r.earlier(r.timers[kid], f) {
			break
		}
		r.set(at, r.timers[kid])
		at = kid
	}
	r.set(at, f)
}

func (r *Run) set(at int, f int32) {
	r.timers[at] = f
	r.frames[f].timer = int32(at)
}
