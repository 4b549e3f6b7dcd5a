//go:build broken && linux

package broken

import (
	"math"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestStopped stops processes of each role for 0.1 to 20 s and lets them continue.
func TestStopped(t *testing.T) {
	t.Parallel()
	n := often(t, 3, 200)
	p, random := newPart(t, n), newRandom(t)
	w := newWorld(t, 5)
	w.begin(true)
	lasts := random.Perm(n) // So that all lengths are there, whatever their order.
	var healed int64
	for i := range n {
		elapse(between(random, 0, 300*time.Millisecond))
		long := time.Duration(0.1 * math.Pow(200, (float64(lasts[i])+random.Float64())/float64(n)) * float64(time.Second))
		role := []string{aMember, aSynchronizer, aServer}[i%3]
		victim := w.running["nats"]
		switch role {
		case aMember:
			victim = w.running[w.groupName(random.IntN(len(w.groups)))]
		case aSynchronizer:
			victim = w.leads()
		}
		w.send(victim, syscall.SIGSTOP)
		elapse(long)
		w.send(victim, syscall.SIGCONT)
		healed = clock()
		if role == aSynchronizer {
			p.settle(w, victim, healed)
		}
		p.took("a stopped "+role+" goes on: the truth is shown", "", w.shownSince(healed))
		w.until("the barrier to open", func() bool { return w.opened(healed) })
	}
	p.took("states keep still: what is true is shown", "", w.quiesce(healed))
	p.judged(t, w, everything...)
}

// leads is the process that leads, by the shown state.
func (w *world) leads() *process {
	w.t.Helper()
	w.until("one to lead", func() bool { return w.running[w.lastBy.Name] == w.lastBy })
	return w.lastBy
}

// settle waits until one of two synchronizers leads and the other one stands by. A stopped
// synchronizer ends if the other one has begun meanwhile, and is started again.
func (p *part) settle(w *world, stopped *process, healed int64) {
	w.t.Helper()
	other := "s0"
	if stopped.Name == other {
		other = "s1"
	}
	for _, name := range []string{stopped.Name, other} {
		w.running[name].mayEnd = true
	}
	w.until("one to lead and the other to stand by, or to end", func() bool {
		return w.hasEnded("s0") || w.hasEnded("s1") || w.lastShown.At > healed && w.lastShown.Shown.Standbys > 0
	})
	for _, name := range []string{"s0", "s1"} {
		one := w.running[name]
		one.mayEnd = false
		if w.hasEnded(name) {
			p.Counts["leaders that ended, since another one led"]++
			if text := w.complaints(); !strings.Contains(text, "runs already") && !strings.Contains(text, "another") {
				w.t.Errorf("%s has ended: %v; %s", name, one.err, text)
			}
			w.over(one)
			w.decider(name, true)
			w.until("one to stand by", func() bool { return w.lastShown.At > one.ended && w.lastShown.Shown.Standbys > 0 })
		}
	}
}

func (w *world) hasEnded(name string) bool {
	select {
	case <-w.running[name].done:
		return true
	default:
		return false
	}
}
