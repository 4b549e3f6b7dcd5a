package worksim

import (
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// State is what a node does.
type State uint8

// The states.
const (
	Idle   State = iota // it has no task
	Busy                // a slot works
	Moving              // no slot works, and tasks wait here for objects that are on their way
)

// Lane is what one node does from the begin of the run on.
type Lane []Span

// Span is from when on a node is in a state, until the next span or its end. The last one has the state Idle.
type Span struct {
	At    time.Duration // since the begin of the run
	State State
}

// lane is the one of a node that runs.
type lane struct {
	spans Lane
	ended bool
}

// set notes a state from an instant on.
func (l *lane) set(at clocksync.Instant, state State) {
	last := len(l.spans) - 1
	switch {
	case l.ended || last >= 0 && l.spans[last].State == state:
	case last >= 0 && l.spans[last].At == at.Sub(0):
		if l.spans[last].State = state; last > 0 && l.spans[last-1].State == state {
			l.spans = l.spans[:last]
		}
	default:
		l.spans = append(l.spans, Span{at.Sub(0), state})
	}
}

// endLane ends it.
func (l *lane) endLane(at clocksync.Instant) {
	l.set(at, Idle)
	if n := len(l.spans); n == 0 || l.spans[n-1].At != at.Sub(0) {
		l.spans = append(l.spans, Span{at.Sub(0), Idle})
	}
	l.ended = true
}

// shareOfTime is the part of the time in which the node was in a state.
func (l *lane) shareOfTime(state State) float64 {
	sum, last := time.Duration(0), len(l.spans)-1
	if last < 0 || l.spans[last].At == 0 {
		return 0
	}
	for i, s := range l.spans[:last] {
		if s.State == state {
			sum += l.spans[i+1].At - s.At
		}
	}
	return sum.Seconds() / l.spans[last].At.Seconds()
}

// noteState notes what a node does now.
func (n *node) noteState() {
	state := Idle
	if n.data != nil && n.queued > 0 {
		state = Moving
	}
	for i := range n.slots {
		if n.slots[i].runs {
			state = Busy
		}
	}
	n.lane.set(n.world.Now(), state)
}
