package scgs_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// really gives what state each member of the system was in between the instants
// at and at+1, 0 if it was in none.
func (s *system) really(at clocksync.Instant) []scgs.Ref {
	refs := make([]scgs.Ref, len(s.streams))
	for m, stream := range s.streams {
		for i, msg := range stream {
			if msg.action == restart || trueTime(msg.at) > at {
				continue
			}
			switch cut := i+1 < len(stream) && stream[i+1].action == restart; {
			case cut || msg.action == end: // of one that was cut off nobody knows how long it lasted
				refs[m] = 0
			case msg.action == start:
				refs[m] = msg.ref
			}
		}
	}
	return refs
}

// trueTime is when a stamp of a random system was read.
func trueTime(at clocksync.Stamp) clocksync.Instant {
	return at.Mono - clocksync.Instant(1000*(3-int(at.Domain[1]-'0')))
}

// declared bounds the values that UNKNOWN stands for.
var declared = scgs.Range{Low: -1, High: 3}

// troupe is an Extents whose members come and go, by their places in a system.
type troupe struct {
	t     rapid.TB
	s     *system
	x     *extentRun
	now   []clocksync.Domain // of each place
	at    []scgs.Member      // of each place, or -1
	epoch uint64
	sure  int // instants at which something was excluded
}

func newTroupe(t rapid.TB, pending int, s *system) *troupe {
	c := &troupe{t: t, s: s, now: slices.Clone(s.domains), epoch: 1}
	c.x = newExtentRun(t, scgs.ExtentOptions{MaxPending: pending, Declared: declared}, s.specs())
	for m := range s.domains {
		c.at = append(c.at, scgs.Member(m))
	}
	return c
}

// shuffle begins an epoch in which one place has left or come back.
func (c *troupe) shuffle(place int) {
	c.check()
	c.epoch++
	if m := c.at[place]; m >= 0 {
		c.at[place] = -1
		c.x.x.Epoch(c.epoch, []scgs.Member{m}, nil)
		return
	}
	c.at[place] = c.x.x.Epoch(c.epoch, nil, []scgs.Spec{{Domain: c.now[place]}})[0]
}

func (c *troupe) put(msg message) {
	msg.member = int(c.at[msg.member])
	c.x.put(msg)
	c.x.drain()
}

// check compares what was delivered in the epoch with the truth.
func (c *troupe) check() {
	until := c.x.x.Until()
	for at := clocksync.Instant(-20); at < min(until, 80); at++ {
		refs := c.s.really(at)
		var sum, all scgs.Range
		for m, ref := range refs {
			if c.at[m] >= 0 {
				all = scgs.Range{Low: all.Low + declared.Low, High: all.High + declared.High}
			}
			switch {
			case c.at[m] < 0:
			case ref == 0:
				sum = scgs.Range{Low: sum.Low + declared.Low, High: sum.High + declared.High}
			default:
				sum = scgs.Range{Low: sum.Low + valueOf(ref), High: sum.High + valueOf(ref)}
			}
		}
		x := extentAt(c.x.found, at)
		if x.Epoch != c.epoch || x.Index == 0 {
			continue
		}
		if !inside(sum, x.Sum) {
			c.t.Fatalf("at %v the sum was in %v, delivered %+v\n%v", at, sum, x, c.s)
		}
		if !inside(all, x.Sum) {
			c.sure++
		}
	}
}

// TestPossibleSoundUnderEverything loses, doubles, restarts, gives up, moves to
// other clocks, removes and adds members, and overflows queues: what is excluded
// must never have been.
func TestPossibleSoundUnderEverything(t *testing.T) {
	sure, collapsed := 0, uint64(0)
	forSystems(t, func(t rapid.TB, d draw) {
		s := newSystem(d, hazards{loss: 15, duplicates: 10, ends: 15, restarts: 15, moves: 50, losts: 8, infinite: 10})
		c := newTroupe(t, 1+d(4), s)
		for _, msg := range s.arrived {
			if d.chance(5) {
				c.shuffle(msg.member)
			}
			if msg.action == restart {
				c.now[msg.member] = msg.domain
			}
			c.put(msg)
		}
		c.check()
		sure += c.sure
		collapsed += c.x.x.Stats().Collapsed
	})
	if sure < systems(t)/4 || collapsed < uint64(systems(t))/10 {
		t.Fatalf("something was excluded %d times, %d states collapsed: too little was tried", sure, collapsed)
	}
}

// TestOverflowOnlyWidens makes the windows wide, and leaves too little room for
// them.
func TestOverflowOnlyWidens(t *testing.T) {
	collapsed := uint64(0)
	forSystems(t, func(t rapid.TB, d draw) {
		s := newSystem(d, hazards{loss: 5, infinite: 30})
		for i := range s.arrived {
			w := &s.arrived[i].at.Within
			w.Earliest -= 15
			if w.Latest != clocksync.MaxInstant {
				w.Latest += 15
			}
		}
		run := func(pending int) *troupe {
			c := newTroupe(t, pending, s)
			for _, msg := range s.arrived {
				c.put(msg)
			}
			c.x.x.Finish()
			c.x.drain()
			return c
		}
		exact, limited := run(100), run(1+d(3))
		for at := clocksync.Instant(-40); at < 100; at++ {
			if in, out := extentAt(exact.x.found, at), extentAt(limited.x.found, at); !inside(in.Sum, out.Sum) || !inside(in.Least, out.Least) || !inside(in.Greatest, out.Greatest) {
				t.Fatalf("at %v %+v, with too little room %+v\n%v", at, in, out, s)
			}
		}
		collapsed += limited.x.x.Stats().Collapsed
	})
	if collapsed < uint64(systems(t)) {
		t.Fatalf("only %d states collapsed", collapsed)
	}
}
