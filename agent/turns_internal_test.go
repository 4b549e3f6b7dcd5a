package agent

import (
	"sync"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

const second = clocksync.Instant(time.Second)

func handedOver(t *turns) bool {
	select {
	case <-t.handed:
		return true
	default:
		return false
	}
}

func at(now clocksync.Instant) func() clocksync.Instant {
	return func() clocksync.Instant { return now }
}

func newTestTurns(t *testing.T) *turns {
	t.Helper()
	turns := newTurns(new(sync.Mutex))
	turns.timer.Stop()
	turns.armed = clocksync.MaxInstant
	turns.left.L.Lock()
	return turns
}

// TestWhoIsInATurn: one goroutine at a time, and only when a turn is due; a goroutine that brings
// more meanwhile leaves it to the one in the turn.
func TestWhoIsInATurn(t *testing.T) {
	turns := newTestTurns(t)
	if turns.isWorthAsking(at(second)) || turns.beginTurn(second, true) {
		t.Fatal("a turn begins though none is due")
	}
	turns.bringForward(clocksync.MinInstant)
	if !turns.isWorthAsking(at(second)) || !turns.beginTurn(second, true) {
		t.Fatal("the turn that is due is not the caller's")
	}
	turns.until = clocksync.MaxInstant // As the goroutine that takes due turns does.
	turns.bringForward(second + 1)
	if turns.isWorthAsking(at(second+2)) || turns.beginTurn(second+2, true) || turns.beginTurn(second+2, false) {
		t.Error("two are in a turn")
	}
	turns.endTurn(second + 2)
	if !handedOver(turns) {
		t.Error("what came during the turn is nobody's")
	}
	if !turns.isWorthAsking(at(second+3)) || !turns.beginTurn(second+3, true) {
		t.Error("a caller who comes before the goroutine does not get the turn")
	}
}

// TestHandOver: the goroutine takes a turn that is due later in time, and is woken once.
func TestHandOver(t *testing.T) {
	turns := newTestTurns(t)
	turns.bringForward(2 * second)
	if !turns.isWorthAsking(at(second)) {
		t.Error("nobody arms the timer")
	}
	if turns.beginTurn(second, true) || turns.armed != 2*second || handedOver(turns) {
		t.Errorf("armed for %v, want %v", turns.armed, 2*second)
	}
	if turns.isWorthAsking(at(second + 1)) {
		t.Error("the timer would be armed again")
	}
	if !turns.isWorthAsking(at(2*second)) || !turns.beginTurn(2*second, false) {
		t.Error("the turn that time has made due does not begin")
	}
	turns.left.L.Unlock()
	turns.timer.Reset(0)
	if !turns.awaitTurn(nil) || turns.armed != clocksync.MaxInstant {
		t.Error("a timer that has fired counts as armed")
	}
	turns.left.L.Unlock()
	stop := make(chan struct{})
	close(stop)
	if turns.awaitTurn(stop) {
		t.Error("a goroutine that is to stop asks for a turn")
	}
	turns.left.L.Lock()
}

// TestCredit: callers have a millisecond of turns on end without signals, each of which then
// leaves them twice its time; after a signal they may at once.
func TestCredit(t *testing.T) {
	turns := newTestTurns(t)
	now, n := second, 0
	const took = 10 * time.Microsecond
	for ; turns.callers <= now; n++ {
		turns.bringForward(clocksync.MinInstant)
		if !turns.beginTurn(now, true) {
			t.Fatal("no turn within the credit")
		}
		turns.until = clocksync.MaxInstant
		now = now.Add(took)
		turns.pauseCallers(now, took, 1, false)
		turns.endTurn(now)
	}
	if want := int(credit / took); n != want {
		t.Errorf("%d turns of %v on end, want %d", n, took, want)
	}
	turns.bringForward(clocksync.MinInstant)
	if turns.beginTurn(now, true) || !handedOver(turns) {
		t.Error("a turn beyond the credit is not handed over")
	}
	if turns.isWorthAsking(at(turns.callers-1)) || !turns.isWorthAsking(at(turns.callers)) {
		t.Error("a caller does not ask again when its time has come")
	}
	if !turns.beginTurn(now, false) {
		t.Error("the goroutine has no turn")
	}
	turns.pauseCallers(now, took, 1, true)
	if turns.callers > now {
		t.Error("a turn with signals keeps callers away")
	}
}

// TestDearTurns: after three long ones on end the goroutine takes all, until one is short;
// many states may take longer.
func TestDearTurns(t *testing.T) {
	turns := newTestTurns(t)
	now := second
	for range dearTurns {
		turns.pauseCallers(now, 10*dearState, 20, false)
	}
	if turns.callers == clocksync.MaxInstant {
		t.Error("turns of many states are dear")
	}
	for range dearTurns - 1 {
		turns.pauseCallers(now, 2*dearState, 1, false)
	}
	if turns.callers == clocksync.MaxInstant {
		t.Error("two turns are dear already")
	}
	turns.pauseCallers(now, 2*dearState, 1, false)
	turns.bringForward(clocksync.MinInstant)
	if turns.beginTurn(now+1000*second, true) || !turns.beginTurn(now, false) {
		t.Error("a dear turn is a caller's")
	}
	turns.pauseCallers(now, dearState, 1, false)
	if turns.callers == clocksync.MaxInstant {
		t.Error("callers never come back")
	}
}

// TestCloseTurns: no goroutine begins a turn any more, and calm waits for the end of a turn.
func TestCloseTurns(t *testing.T) {
	turns := newTestTurns(t)
	turns.seizeTurn()
	turns.closeTurns()
	left := make(chan bool)
	go func() {
		turns.left.L.Lock()
		defer turns.left.L.Unlock()
		left <- turns.taken
		turns.endTurn(second)
	}()
	turns.left.L.Unlock()
	if !<-left {
		t.Error("nobody is in the turn that was seized")
	}
	turns.left.L.Lock()
	turns.awaitCalm()
	turns.bringForward(clocksync.MinInstant)
	if turns.taken || turns.beginTurn(second, true) || turns.beginTurn(second, false) {
		t.Error("a turn begins after the end")
	}
}
