//go:build broken && linux

package broken

import (
	"math/rand/v2"
	"testing"
	"time"
)

// between draws a time.
func between(random *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(random.Int64N(int64(most-least)))
}

func newRandom(t *testing.T) *rand.Rand {
	t.Helper()
	sum := uint64(0)
	for _, c := range t.Name() {
		sum = sum*31 + uint64(c) //nolint:gosec // A letter.
	}
	return rand.New(rand.NewPCG(*seed, sum)) //nolint:gosec // It has to be the same again.
}

// TestKilledAgents kills processes of members, and starts them again.
func TestKilledAgents(t *testing.T) {
	t.Parallel()
	n := often(t, 4, 500)
	p, random := newPart(t, n), newRandom(t)
	w := newWorld(t, 5)
	w.begin(false)
	var healed int64
	for range n {
		elapse(between(random, 0, 300*time.Millisecond))
		i := random.IntN(len(w.groups))
		w.kill(w.running[w.groupName(i)])
		elapse(between(random, 0, 1500*time.Millisecond)) // It is dropped in some of them.
		healed = clock()
		w.members(i)
		took, what := w.shownSince(healed), "a killed process is started: its members take part"
		if w.putOff() {
			what += "; put off, since they came and went"
		}
		p.took(what, "", took)
	}
	p.took("states keep still: what is true is shown", "", w.quiesce(healed))
	p.judged(t, w, everything...)
}

// TestKilledLeader kills the synchronizer that leads: in two of three cases another one stands
// by, else it is started again.
func TestKilledLeader(t *testing.T) {
	t.Parallel()
	n := often(t, 4, 300)
	p, random := newPart(t, n), newRandom(t)
	w := newWorld(t, 5)
	w.still = true
	w.begin(true)
	leader, standby := "s0", "s1"
	var healed int64
	for i := range n {
		elapse(between(random, 0, 500*time.Millisecond))
		if i%3 == 2 { // Nobody stands by.
			w.kill(w.running[standby])
			w.kill(w.running[leader])
			elapse(between(random, 0, 300*time.Millisecond))
			healed = clock()
			w.decider(leader, false)
			p.took("the leader is started again: it decides", "", w.decidesSince(healed))
			w.until("all to be shown", func() bool { return w.right(healed) })
		} else {
			healed = clock()
			w.kill(w.running[leader])
			p.took("the leader is killed: another one decides", "p99 2 s", w.decidesSince(healed))
			p.took("the leader is killed: the truth is shown", "", w.shownSince(healed))
			leader, standby = standby, leader
		}
		held := clock()
		w.until("the barrier to open", func() bool { return w.opened(held) })
		w.decider(standby, true)
		w.until("one to stand by", func() bool { return w.lastShown.Shown.Standbys > 0 })
	}
	p.took("states keep still: what is true is shown", "", w.quiesce(healed))
	p.judged(t, w, everything...)
}

// decidesSince waits for the first firing of a later term, and gives the time until it.
func (w *world) decidesSince(since int64) time.Duration {
	w.t.Helper()
	w.look()
	term := uint64(0)
	if w.lastFired != nil {
		term = w.lastFired.Firing.Made.Term
	}
	var at int64
	w.until("a later term to decide", func() bool {
		for i := len(w.fired) - 1; i >= 0 && w.fired[i].at > since; i-- {
			if w.fired[i].Made.Term > term {
				at = w.fired[i].at
			}
		}
		return at != 0
	})
	return time.Duration(at - since)
}

// opened reports whether the barrier has opened since: a decision whose witness continued to
// hold is not lost, whatever happens.
func (w *world) opened(since int64) bool {
	for i := len(w.fired) - 1; i >= 0 && w.fired[i].at > since; i-- {
		if w.fired[i].Rule == "all-waited" {
			return true
		}
	}
	return false
}

// TestKilledServer kills the NATS server, and starts it again at its address.
func TestKilledServer(t *testing.T) {
	t.Parallel()
	n := often(t, 4, 200)
	p, random := newPart(t, n), newRandom(t)
	w := newWorld(t, 5)
	w.begin(false)
	var healed int64
	for range n {
		elapse(between(random, 0, 300*time.Millisecond))
		w.kill(w.running["nats"])
		elapse(between(random, 0, 2*time.Second)) // Members are silent for as long, but it does not count.
		healed = w.server()
		p.took("the server is back: the truth is shown", "p99 1 s", w.shownSince(healed))
	}
	w.until("the barrier to open", func() bool { return w.opened(healed) })
	p.took("states keep still: what is true is shown", "", w.quiesce(healed))
	p.judged(t, w, everything...)
	p.loss(t, w)
}

// loss counts the frames lost at the bus, and the reports of that.
func (p *part) loss(t *testing.T, w *world) {
	t.Helper()
	for s := range w.totals {
		if s.Standby || s.err != nil {
			continue
		}
		l, err := w.lossOf(s)
		if err != nil {
			t.Error(err)
			continue
		}
		p.Counts["states that never came"] += l.states
		p.Counts["ranges of them"] += l.ranges
		p.Counts["ranges of them before a member came back"] += l.rejoins
		p.Counts["gaps counted"] += l.gaps
	}
}
