package agent

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

const (
	callersTurns = 4 // one caller takes no more at once
	credit       = time.Millisecond
	dearState    = 50 * time.Microsecond
	dearTurns    = 3 // on end
)

// turns decides which goroutine steps a machine that no goroutine owns. A caller that has
// brought something takes the turn that has become due, if no other goroutine is in a turn.
// Turns that become due by time, or that callers leave, are handed to one goroutine. turns
// knows nothing of the machine. All methods but worth need the lock.
//
// Once callers have spent a millisecond on end on turns that send no signals, these turns pause
// for twice their time: faster states are gathered, and taken together. Where a state takes
// longer than several times the cost of waking the goroutine, the goroutine takes all turns,
// beside the callers.
//
// No mark is lost: it is made under the lock. A goroutine in a turn looks for marks under the
// lock before it says, within the same hold, that the turn is free.
type turns struct {
	pace
	taken   bool              // a caller or the goroutine is in a turn
	over    bool              // nobody begins one any more
	callers clocksync.Instant // when they may take turns again
	dear    int               // of the last turns on end
	left    sync.Cond         // a turn has ended

	handed chan struct{} // capacity 1: there is something for the goroutine
	timer  *time.Timer
	armed  clocksync.Instant // when the timer fires; MaxInstant if it does not

	look atomic.Int64 // before it begin would do nothing for a caller
}

func newTurns(lock sync.Locker) *turns {
	t := &turns{handed: make(chan struct{}, 1), timer: time.NewTimer(0), armed: clocksync.MinInstant}
	t.left.L = lock
	t.pace = pace{until: clocksync.MaxInstant, nearer: func() {
		if !t.taken { // A caller in a turn looks itself.
			t.lookAt(clocksync.MinInstant)
		}
	}}
	t.lookAt(clocksync.MaxInstant)
	return t
}

func (t *turns) lookAt(at clocksync.Instant) { t.look.Store(int64(at)) }

// isWorthAsking reports whether a caller has reason to ask for a turn. It needs no lock: it sees
// the marks of the caller itself. The clock is read only where it matters.
func (t *turns) isWorthAsking(now func() clocksync.Instant) bool {
	at := clocksync.Instant(t.look.Load())
	return at == clocksync.MinInstant || at != clocksync.MaxInstant && at <= now()
}

// beginTurn reports whether the turn that is due belongs to the asker, the goroutine or a
// caller. Where it belongs to none yet, it sees to it that the goroutine asks in time.
func (t *turns) beginTurn(now clocksync.Instant, caller bool) bool {
	switch {
	case t.taken || t.over:
		t.lookAt(clocksync.MaxInstant)
		return false
	case t.until > now || caller && t.callers > now:
		t.arm(now)
		return false
	}
	t.taken = true
	t.lookAt(clocksync.MaxInstant)
	return true
}

// seizeTurn takes a turn that need not be due, when nobody is in one.
func (t *turns) seizeTurn() {
	t.awaitCalm()
	t.taken = true
}

// endTurn says that who was in a turn has left it.
func (t *turns) endTurn(now clocksync.Instant) {
	t.taken = false
	t.arm(now)
	t.left.Broadcast()
}

// arm has the goroutine ask when the next turn is due.
func (t *turns) arm(now clocksync.Instant) {
	if t.until <= now {
		notifyChannel(t.handed)
		t.lookAt(t.callers) // It may be sooner.
		return
	}
	if t.until < t.armed { // An early one does no harm.
		t.armed = t.until
		t.timer.Reset(t.until.Sub(now))
	}
	t.lookAt(t.until)
}

// awaitTurn returns when the goroutine is to ask for a turn, with the lock held, or false,
// without, when it is to stop.
func (t *turns) awaitTurn(stop <-chan struct{}) bool {
	fired := false
	select {
	case <-t.handed:
	case <-t.timer.C:
		fired = true
	case <-stop:
		return false
	}
	t.left.L.Lock()
	if fired {
		t.armed = clocksync.MaxInstant
	}
	return true
}

// pauseCallers says when callers may take turns again, after one of so many states that is over
// now. A single long turn is not dear yet: its goroutine may have been stopped.
func (t *turns) pauseCallers(now clocksync.Instant, took time.Duration, states int, signals bool) {
	most := dearState * time.Duration(max(states, 1))
	if took <= most {
		t.dear = 0
	} else {
		t.dear++
	}
	switch {
	case t.dear == dearTurns:
		t.dear, t.callers = dearTurns-1, clocksync.MaxInstant
	case signals:
		t.callers = min(t.callers, now)
	default:
		t.callers = max(min(t.callers, now), now.Add(-credit)).Add(2 * min(took, most))
	}
}

// closeTurns has nobody begin a turn any more.
func (t *turns) closeTurns() {
	t.over = true
	t.lookAt(clocksync.MaxInstant)
}

// awaitCalm waits until nobody is in a turn. The lock is not held meanwhile.
func (t *turns) awaitCalm() {
	for t.taken {
		t.left.Wait()
	}
}
