package sim

import (
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// LinkSpec describes one direction of a path.
type LinkSpec struct {
	Delay time.Duration // that nothing is below
	// A queue stands in the way: every Burst on average, other traffic adds
	// Backlog to it on average. 0: none.
	Burst, Backlog time.Duration
	Loss           float64 // from 0 to 1
}

// Link is one direction of a path. Messages do not overtake each other.
type Link struct {
	spec  LinkSpec
	world *World
	busy  clocksync.Instant // until then the queue is not empty
	seen  clocksync.Instant // other traffic counts up to here
	last  clocksync.Instant // arrival of the last message
}

// NewLink adds a link.
func (w *World) NewLink(s LinkSpec) *Link {
	return &Link{spec: s, world: w, busy: w.now, seen: w.now}
}

// SetLoss makes the path lose that part of the messages from now on, from 0 to 1.
func (l *Link) SetLoss(part float64) { l.spec.Loss = part }

// Take decides how long a message sent now will take, and whether it arrives.
func (l *Link) Take() (time.Duration, bool) {
	now := l.world.now
	l.traffic(now)
	leaves := max(now, l.busy)
	arrives := max(leaves.Add(l.spec.Delay), l.last)
	if l.world.Rand.Float64() < l.spec.Loss {
		return 0, false
	}
	l.last = arrives
	return arrives.Sub(now), true
}

// Send delivers a message, if it arrives.
func (l *Link) Send(deliver func()) {
	if d, ok := l.Take(); ok {
		l.world.After(d, deliver)
	}
}

// traffic adds what others put into the queue since the last message. What came
// long ago has left again.
func (l *Link) traffic(now clocksync.Instant) {
	if l.spec.Burst == 0 {
		return
	}
	t := max(l.seen, now.Add(-20*l.spec.Burst))
	for t = t.Add(l.world.Exponential(l.spec.Burst)); t < now; t = t.Add(l.world.Exponential(l.spec.Burst)) {
		l.busy = max(l.busy, t).Add(l.world.Exponential(l.spec.Backlog))
	}
	l.seen = now
}
