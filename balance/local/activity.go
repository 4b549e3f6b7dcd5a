package local

import (
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// Bounds of the memory of an Activity: a window of time is divided by resolution, and
// changes closer together than that are merged.
const (
	kept       = 256
	resolution = 120 // two changes of three are at least window/resolution apart, so kept covers the window
)

// Activity is when a member was active, which is when at least one task ran (ALDY,
// section 4.2: the load l(t) is the number of active workers). The zero value is a
// member that was never active and has no slot. Its memory is bounded: where changes
// come close together, Busy is wrong by at most 1/120 of the longest time that Busy
// was asked for, and exact elsewhere.
type Activity struct {
	running, slots int
	freeSince      clocksync.Instant // when the slots were last all taken, or a first one was freed
	window         time.Duration     // the longest that Busy was asked for
	points         [kept]point       // a ring: changes between active and not active
	first, number  int
}

// point is a change, and how long the member was active before it.
type point struct {
	at   clocksync.Instant
	busy time.Duration
}

// Set tells how many tasks run from now on, and how many slots there are. Negative
// numbers count as 0.
func (a *Activity) Set(now clocksync.Instant, running, slots int) {
	running, slots = max(0, running), max(0, slots)
	wasActive, wasFree := a.Active(), a.Free() > 0
	busy := a.busyUntil(now)
	a.running, a.slots = running, slots
	if a.Free() > 0 != wasFree {
		a.freeSince = now
	}
	if a.Active() != wasActive {
		a.remember(point{now, busy})
	}
}

// Free returns how many slots have no task.
func (a *Activity) Free() int { return max(0, a.slots-a.running) }

// Slots returns how many tasks can run at a time.
func (a *Activity) Slots() int { return a.slots }

// Active reports whether a task runs: a(t) of ALDY.
func (a *Activity) Active() bool { return a.running > 0 }

// forever is how long a member that never was active is idle.
const forever = time.Duration(1<<63 - 1)

// Idle returns how long no task has run, 0 while one runs. A member that never was
// active has always been idle.
func (a *Activity) Idle(now clocksync.Instant) time.Duration {
	switch {
	case a.Active():
		return 0
	case a.number == 0:
		return forever
	}
	return max(0, now.Sub(a.point(a.number-1).at))
}

// freeFor returns how long at least one slot has been free; ok: one is.
func (a *Activity) freeFor(now clocksync.Instant) (d time.Duration, ok bool) {
	if a.number == 0 {
		return forever, a.Free() > 0
	}
	return max(0, now.Sub(a.freeSince)), a.Free() > 0
}

// Busy returns for how much of the last time the member was active: the integral of
// a(u) over u from now-last to now. From the first call on, changes are remembered for
// the longest time that was asked for.
func (a *Activity) Busy(now clocksync.Instant, last time.Duration) time.Duration {
	a.window = max(a.window, last)
	from := now.Add(-last)
	next := point{now, a.busyUntil(now)}
	total := next.busy
	for i := a.number - 1; i >= 0; i-- {
		p := *a.point(i)
		if p.at <= from { // Between two points, activity is even.
			return total - p.busy - part(next.busy-p.busy, from.Sub(p.at), next.at.Sub(p.at))
		}
		next = p
	}
	return total - next.busy
}

// part returns n times of/whole, and 0 of nothing. It is exact where n is 0 or whole.
func part(n, of, whole time.Duration) time.Duration {
	switch {
	case n == 0 || whole == 0:
		return 0
	case n == whole:
		return of
	}
	return time.Duration(float64(n) * (float64(of) / float64(whole)))
}

// busyUntil returns how long the member was active until now since it began.
func (a *Activity) busyUntil(now clocksync.Instant) time.Duration {
	if a.number == 0 {
		return 0
	}
	last := a.point(a.number - 1)
	if a.Active() {
		return last.busy + max(0, now.Sub(last.at))
	}
	return last.busy
}

func (a *Activity) point(i int) *point { return &a.points[(a.first+i)%kept] }

// remember appends a change. It takes the place of the last one if that is close to the
// one before.
func (a *Activity) remember(p point) {
	switch {
	case a.number > 1 && p.at.Sub(a.point(a.number-2).at) < a.window/resolution:
		a.number--
	case a.number == kept:
		a.first, a.number = (a.first+1)%kept, a.number-1
	}
	a.number++
	*a.point(a.number - 1) = p
}
