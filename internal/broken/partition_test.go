//go:build broken && linux

package broken

import (
	"strings"
	"testing"
	"time"
)

// faults are what can be done to the way between a process and the server.
var faults = []struct {
	name     string
	up, down way
	cut      bool
}{
	{name: "cut", cut: true},
	{name: "black hole", up: way{hole: true}, down: way{hole: true}},
	{name: "nothing from it arrives", up: way{hole: true}},
	{name: "nothing arrives at it", down: way{hole: true}},
	{name: "delay", up: way{delay: 150 * time.Millisecond}, down: way{delay: 50 * time.Millisecond}},
	{name: "throttle", up: way{rate: 20_000}, down: way{rate: 20_000}},
}

// TestPartitions cuts off processes of members, and the synchronizer, by a proxy between them
// and the server; each cycle is every kind of fault once.
func TestPartitions(t *testing.T) {
	t.Parallel()
	n := often(t, 2, 100)
	p, random := newPart(t, n), newRandom(t)
	w := newWorld(t, 5)
	w.server()
	ways := map[string]*proxy{"s0": w.through("s0")}
	w.decider("s0", false)
	for i := range w.groups {
		ways[w.groupName(i)] = w.through(w.groupName(i))
		w.members(i)
	}
	since := clock()
	w.until("all to be shown", func() bool { return w.right(since) })
	var healed int64
	for cycle := range n {
		for _, k := range random.Perm(len(faults)) {
			fault := faults[k]
			victim := w.running[w.groupName(random.IntN(len(w.groups)))]
			if (cycle+k)%3 == 0 {
				victim = w.running["s0"]
			}
			way := ways[victim.Name]
			long := between(random, 300*time.Millisecond, 4*time.Second)
			began := clock()
			way.set(fault.up, fault.down, fault.cut)
			if fault.up.hole || fault.down.hole {
				w.until("the hole to be noticed", func() bool { return w.noticed(victim, began) != 0 })
				p.took("a hole is noticed ("+fault.name+")", "at most 2.5 s", time.Duration(w.noticed(victim, began)-began))
			} else {
				elapse(long)
			}
			way.set(way0, way0, false)
			healed = clock()
			p.took("healed ("+fault.name+"): the truth is shown", "", w.shownSince(healed))
		}
		w.until("the barrier to open", func() bool { return w.opened(healed) })
	}
	p.took("states keep still: what is true is shown", "", w.quiesce(healed))
	p.judged(t, w, everything...)
	p.loss(t, w)
}

var way0 way

// through has a process reach the server by a proxy.
func (w *world) through(name string) *proxy {
	w.t.Helper()
	p := newProxy(w.t, "127.0.0.1", w.port)
	w.urls[name] = p.url
	return p
}

// TestLateSignals lets what the leader sends arrive when another one leads: members that have
// accepted the later term ignore it, and refuse the signals in it.
func TestLateSignals(t *testing.T) {
	t.Parallel()
	n := often(t, 2, 100)
	p, random := newPart(t, n), newRandom(t)
	w := newWorld(t, 5)
	ways := map[string]*proxy{"s0": w.through("s0"), "s1": w.through("s1")}
	w.still = true
	w.begin(true)
	var healed int64
	for range n {
		elapse(between(random, 0, 300*time.Millisecond))
		leader := w.leads()
		began := clock()
		ways[leader.Name].set(way{hole: true}, way0, false)
		p.took("nothing from the leader arrives: another one decides", "", w.decidesSince(began))
		elapse(between(random, 0, 500*time.Millisecond))
		healed = clock()
		ways[leader.Name].set(way0, way0, false)
		p.settle(w, leader, healed)
		w.until("the truth to be shown", func() bool { return w.right(healed) })
		w.until("the barrier to open", func() bool { return w.opened(healed) })
	}
	p.took("states keep still: what is true is shown", "", w.quiesce(healed))
	p.judged(t, w, append(everything, "messages of an older term")...)
}

// noticed is when a process said that the server is away; 0 if it did not since.
func (w *world) noticed(p *process, since int64) int64 {
	for i := len(w.logs) - 1; i >= 0 && w.logs[i].at >= since; i-- {
		if l := &w.logs[i]; l.by == p && strings.Contains(l.text, "server is away") {
			return l.at
		}
	}
	return 0
}
