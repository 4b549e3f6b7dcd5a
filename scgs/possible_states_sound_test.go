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

// atLeast is a predicate that knows what an UNKNOWN may be.
func atLeast(limit float64, refs []scgs.Ref, member func(m int) bool) scgs.Answer {
	var sum scgs.Range
	for m, ref := range refs {
		switch {
		case !member(m):
		case ref == 0:
			sum = scgs.Range{Low: sum.Low + declared.Low, High: sum.High + declared.High}
		default:
			sum = scgs.Range{Low: sum.Low + valueOf(ref), High: sum.High + valueOf(ref)}
		}
	}
	switch {
	case sum.Low >= limit:
		return scgs.Yes
	case sum.High < limit:
		return scgs.No
	}
	return scgs.Inconclusive
}

// troupe is an Extents and a Search whose members come and go, by their places in
// a system.
type troupe struct {
	t     rapid.TB
	s     *system
	x     *extentRun
	q     *searchRun
	now   []clocksync.Domain // of each place
	at    []scgs.Member      // of each place, or -1
	epoch uint64
	limit float64
	sure  int // instants at which something was excluded
}

func newTroupe(t rapid.TB, limit float64, pending, combinations int, s *system) *troupe {
	c := &troupe{t: t, s: s, now: slices.Clone(s.domains), epoch: 1, limit: limit}
	c.x = newExtentRun(t, scgs.ExtentOptions{MaxPending: pending, Declared: declared}, s.specs())
	c.q = newSearchRun(t, func(refs []scgs.Ref) scgs.Answer {
		return atLeast(c.limit, refs, func(m int) bool { return slices.Contains(c.at, scgs.Member(m)) })
	}, scgs.SearchOptions{MaxPending: pending, MaxCombinations: combinations}, s.specs())
	for m := range s.domains {
		c.at = append(c.at, scgs.Member(m))
	}
	return c
}

// shuffle begins an epoch in which one place has left or come back.
func (c *troupe) shuffle(place int) {
	c.check()
	c.epoch++
	defer func() {
		if w := c.q.x.Witness(nil); w != nil {
			c.t.Fatalf("witness %v of an epoch that has ended", w)
		}
	}()
	if m := c.at[place]; m >= 0 {
		c.at[place] = -1
		c.x.x.Epoch(c.epoch, []scgs.Member{m}, nil)
		c.q.x.Epoch(c.epoch, []scgs.Member{m}, nil)
		return
	}
	spec := []scgs.Spec{{Domain: c.now[place]}}
	c.at[place] = c.x.x.Epoch(c.epoch, nil, spec)[0]
	if m := c.q.x.Epoch(c.epoch, nil, spec)[0]; m != c.at[place] {
		c.t.Fatalf("member %d and %d", m, c.at[place])
	}
}

func (c *troupe) put(msg message) {
	msg.member = int(c.at[msg.member])
	if a, b := c.x.put(msg), c.q.put(msg); a != b {
		c.t.Fatalf("%v: %v and %v", msg, a, b)
	}
	c.x.drain()
	c.q.drain()
	if a, b := c.x.x.Until(), c.q.x.Until(); a != b {
		c.t.Fatalf("until %v and %v", a, b)
	}
}

// check compares what was delivered in the epoch with the truth.
func (c *troupe) check() {
	until := c.x.x.Until()
	for at := clocksync.Instant(-20); at < min(until, 80); at++ {
		refs := c.s.really(at)
		var sum scgs.Range
		for m, ref := range refs {
			switch {
			case c.at[m] < 0:
			case ref == 0:
				sum = scgs.Range{Low: sum.Low + declared.Low, High: sum.High + declared.High}
			default:
				sum = scgs.Range{Low: sum.Low + valueOf(ref), High: sum.High + valueOf(ref)}
			}
		}
		if x := extentAt(c.x.found, at); x.Epoch == c.epoch && x.Index > 0 && !inside(sum, x.Sum) {
			c.t.Fatalf("at %v the sum was in %v, delivered %+v\n%v", at, sum, x, c.s)
		}
		truth := atLeast(c.limit, refs, func(m int) bool { return c.at[m] >= 0 })
		for _, f := range slices.Backward(c.q.found) {
			if f.From > at {
				continue
			}
			if f.Epoch == c.epoch && f.Answer == scgs.No {
				c.sure++
				if truth != scgs.No {
					c.t.Fatalf("at %v the predicate was %v, delivered %+v\n%v", at, truth, f, c.s)
				}
			}
			break
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
		c := newTroupe(t, float64(d(8)-2), 1+d(4), 1<<d(8), s)
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
	if sure < *systems/4 || collapsed < uint64(*systems)/10 {
		t.Fatalf("%d answers were No, %d states collapsed: too little was tried", sure, collapsed)
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
		limit := float64(d(8) - 2)
		run := func(pending int) *troupe {
			c := newTroupe(t, limit, pending, 1000, s)
			for _, msg := range s.arrived {
				c.put(msg)
			}
			c.x.x.Finish()
			c.q.x.Finish()
			c.x.drain()
			c.q.drain()
			return c
		}
		exact, limited := run(100), run(1+d(3))
		for at := clocksync.Instant(-40); at < 100; at++ {
			if in, out := extentAt(exact.x.found, at), extentAt(limited.x.found, at); !inside(in.Sum, out.Sum) || !inside(in.Least, out.Least) || !inside(in.Greatest, out.Greatest) {
				t.Fatalf("at %v %+v, with too little room %+v\n%v", at, in, out, s)
			}
			if in, out := answerAt(exact.q.found, at), answerAt(limited.q.found, at); in != out && out == scgs.No {
				t.Fatalf("at %v %v, with too little room %v\n%v", at, in, out, s)
			}
		}
		collapsed += limited.x.x.Stats().Collapsed
	})
	if collapsed < uint64(*systems) {
		t.Fatalf("only %d states collapsed", collapsed)
	}
}
