package rearm_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/rearm"
	"github.com/gopegasus/pegasus/scgs"
)

// open are the runs that are open, by member.
type open map[scgs.Member]scgs.Part

func (o open) Run(m scgs.Member) (scgs.Part, bool) { p, ok := o[m]; return p, ok }

// at is an event on a host's clock, which is wrong by at most bound.
func at(host, ms, bound int) clocksync.Stamp {
	i := func(ms int) clocksync.Instant { return clocksync.Instant(ms * 1_000_000) }
	return clocksync.Stamp{Domain: clocksync.Domain(fmt.Sprint("h", host)), Mono: i(ms), Within: clocksync.Interval{Earliest: i(ms - bound), Latest: i(ms + bound)}}
}

// group is a threshold of 2 with three members, one to a host.
type group struct {
	t     *rearm.Threshold
	open  open
	seq   uint64
	bound int
}

func newGroup(k, members, bound int) *group {
	g := &group{open: open{}, bound: bound}
	g.t = rearm.New(k, g.open)
	for m := range members {
		g.t.Enter(scgs.Member(m)) //nolint:gosec // Few.
	}
	return g
}

func (g *group) begin(m scgs.Member, ms int) {
	g.seq++
	s := at(int(m), ms, g.bound)
	g.open[m] = scgs.Part{Member: m, Seq: g.seq, Start: s, End: s, Open: true}
	g.t.Start(m, g.seq)
}

func (g *group) alive(ms int, members ...scgs.Member) {
	for _, m := range members {
		p := g.open[m]
		p.End = at(int(m), ms, g.bound)
		g.open[m] = p
	}
}

func (g *group) end(m scgs.Member, ms int) {
	p := g.open[m]
	p.End, p.Open = at(int(m), ms, g.bound), false
	delete(g.open, m)
	g.t.End(&p)
}

func (g *group) set(members ...scgs.Member) (runs []scgs.Part) {
	for _, m := range members {
		runs = append(runs, g.open[m])
	}
	return runs
}

func TestAsk(t *testing.T) {
	for _, bound := range []int{0, 3} {
		g := newGroup(2, 3, bound)
		g.begin(0, 10)
		g.begin(1, 20)
		g.alive(30, 0, 1)
		if g.t.HasFired() {
			t.Error("nothing has fired yet")
		}
		if a := g.t.Ask(g.set(0, 1)); a != rearm.Alarm {
			t.Errorf("the first set: %v", a)
		}
		g.t.Fire(g.set(0, 1))
		g.begin(2, 40)
		if a := g.t.Ask(g.set(0, 1, 2)); a != rearm.Perhaps {
			t.Errorf("a third member, and nothing was heard of the others since: %v", a)
		}
		g.alive(60, 0, 1, 2)
		if a := g.t.Ask(g.set(0, 1, 2)); a != rearm.Grown {
			t.Errorf("a third member, all at once: %v", a)
		}
		g.end(0, 70)
		g.end(1, 80)
		g.alive(90, 2)
		g.begin(0, 100)
		g.alive(120, 0, 2)
		if a := g.t.Ask(g.set(0, 2)); a != rearm.Alarm {
			t.Errorf("only one was in a run from 80 to 100: %v", a)
		}
		g.t.Forget()
		if g.t.HasFired() {
			t.Error("it was to forget")
		}
	}
}

// TestPerhaps: hosts whose clocks may be wrong by more than the gap lasted.
func TestPerhaps(t *testing.T) {
	g := newGroup(2, 3, 20)
	g.begin(0, 100)
	g.begin(1, 100)
	g.alive(200, 0, 1)
	g.t.Fire(g.set(0, 1))
	g.begin(2, 210)
	g.end(1, 205)
	g.alive(300, 0, 2)
	if a := g.t.Ask(g.set(0, 2)); a != rearm.Perhaps {
		t.Errorf("a gap of 5 ms between clocks that may be wrong by 20: %v", a)
	}
}

// TestLeave: the number of a member that has left is given to another.
func TestLeave(t *testing.T) {
	g := newGroup(2, 3, 0)
	g.begin(0, 10)
	g.begin(1, 10)
	g.alive(30, 0, 1)
	g.t.Fire(g.set(0, 1))
	edges := g.t.Edges()
	g.t.Leave([]scgs.Member{1})
	delete(g.open, 1)
	g.t.Enter(1)
	if g.t.Edges() == edges {
		t.Error("a run that ends because its member leaves is an edge")
	}
	g.begin(1, 50)
	g.alive(60, 0, 1)
	if a := g.t.Ask(g.set(0, 1)); a == rearm.Grown {
		t.Errorf("the run of another member of that number: %v", a)
	}
}

// TestAgainstTruth: on exact clocks a set is a new alarm if and only if fewer than k members were in a run
// at some instant between it and each set that has fired.
func TestAgainstTruth(t *testing.T) {
	var alarms, grown int
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 0))
		const members = 5
		k := 2 + r.IntN(3)
		g := newGroup(k, members, 0)
		low := true // Fewer than k were in a run since it last fired.
		for ms := 1; ms < 60; ms++ {
			m := scgs.Member(r.IntN(members)) //nolint:gosec // Few.
			if _, on := g.open[m]; on {
				g.end(m, ms)
			} else {
				g.begin(m, ms)
			}
			var all []scgs.Member
			for m := range g.open {
				all = append(all, m)
			}
			slices.Sort(all)
			if low = low || len(all) < k; len(all) < k {
				continue
			}
			for m := range g.open {
				p := g.open[m]
				p.End = clocksync.Stamp{Domain: p.Start.Domain, Mono: at(0, ms, 0).Mono + 1, Within: clocksync.Interval{Earliest: at(0, ms, 0).Mono + 1, Latest: at(0, ms, 0).Mono + 1}}
				g.open[m] = p
			}
			set := g.set(all...)
			a := g.t.Ask(set)
			if (a == rearm.Alarm) != low {
				t.Fatalf("seed %d, %d ms, k %d: answer %v for %v; fewer than k since the last alarm: %v", seed, ms, k, a, all, low)
			}
			switch a {
			case rearm.Alarm:
				alarms++
			case rearm.Grown:
				grown++
			}
			g.t.Fire(set)
			low = false
		}
	}
	if alarms == 0 || grown == 0 {
		t.Errorf("%d alarms, %d grown", alarms, grown)
	}
	t.Logf("%d alarms, %d grown", alarms, grown)
}
