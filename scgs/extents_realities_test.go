package scgs_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// TestNothingPossibleIsMissed compares with the pair test of Possibly: whatever
// passes it is within what is delivered for the latest of its starts.
func TestNothingPossibleIsMissed(t *testing.T) {
	tried := 0
	forSystems(t, func(t rapid.TB, d draw) {
		s := newSystem(d, hazards{})
		r := newExtentRun(t, scgs.ExtentOptions{}, s.specs())
		for _, msg := range s.arrived {
			r.put(msg)
			r.drain()
		}
		r.x.Finish()
		r.drain()
		all := make([][]state, len(s.domains))
		for m := range all {
			all[m] = states(s.streams[m])
		}
		for _, tuple := range product(all) {
			if !pairwisePossible(tuple) {
				continue
			}
			tried++
			at, sum, least, greatest := clocksync.MinInstant, 0.0, math.Inf(1), math.Inf(-1)
			for _, st := range tuple {
				v := valueOf(st.ref)
				at, sum, least, greatest = max(at, st.start.Within.Earliest), sum+v, min(least, v), max(greatest, v)
			}
			x := extentAt(r.found, at)
			if !inside(scgs.Range{Low: sum, High: sum}, x.Sum) || !inside(scgs.Range{Low: least, High: least}, x.Least) ||
				!inside(scgs.Range{Low: greatest, High: greatest}, x.Greatest) {
				t.Fatalf("%v is possible at %v, delivered %+v\n%v", tuple, at, x, s)
			}
		}
	})
	if tried < systems(t) {
		t.Fatalf("only %d tuples", tried)
	}
}

// pairwisePossible is the test of Possibly for any two states and for each with
// itself; an open one may last for ever.
func pairwisePossible(tuple []state) bool {
	for _, a := range tuple {
		for _, b := range tuple {
			switch {
			case !b.closed:
			case a.start.Domain == b.end.Domain && a.start.Mono >= b.end.Mono:
				return false
			case a.start.Within.Earliest >= b.end.Within.Latest:
				return false
			}
		}
	}
	return true
}

func product(all [][]state) [][]state {
	tuples := [][]state{nil}
	for _, member := range all {
		var longer [][]state
		for _, t := range tuples {
			for _, s := range member {
				longer = append(longer, append(slices.Clone(t), s))
			}
		}
		tuples = longer
	}
	return tuples
}

// life is a member's events in order of its readings, each with the state that
// follows it, 0 for UNKNOWN.
type life []episode

type episode struct {
	lo, hi clocksync.Instant
	after  scgs.Ref
	mono   clocksync.Instant // equal ones happened at once
}

const horizon = 30

// realise enumerates at which whole instants the events can have happened, and
// notes after each what may have been until the next.
func (l life) realise(seen *[horizon]map[scgs.Ref]bool) {
	when := make([]clocksync.Instant, len(l))
	var place func(i int)
	place = func(i int) {
		if i == len(l) {
			for t := range clocksync.Instant(horizon) {
				now := scgs.Ref(0)
				for k, w := range when {
					if w <= t {
						now = l[k].after
					}
				}
				seen[t][now] = true
			}
			return
		}
		from := max(l[i].lo, 0)
		to := min(l[i].hi, horizon)
		if i > 0 {
			from = max(from, when[i-1])
			if l[i].mono == l[i-1].mono {
				to = min(to, when[i-1])
			}
		}
		for when[i] = from; when[i] <= to; when[i]++ {
			place(i + 1)
		}
	}
	place(0)
}

// newLife draws what a member does, as messages of which some are lost, and as
// events: a loss is an event at any time between its neighbours.
func newLife(d draw, m int) ([]message, life) {
	var (
		stream  []message
		events  life
		rule    clocksync.Monotone
		now     = scgs.Ref(0)
		t       = clocksync.Instant(5)
		seq     uint64
		missing bool
	)
	for n := 1 + d(4); n > 0; n-- {
		t += clocksync.Instant(1 + d(3))
		at := clocksync.Stamp{Domain: name(m), Mono: t, Within: clocksync.Interval{
			Earliest: t - clocksync.Instant(d(4)), Latest: t + clocksync.Instant(d(4)),
		}}
		if d.chance(10) {
			at.Within.Latest = clocksync.MaxInstant
		}
		at, _ = rule.Next(at)
		msg := message{member: m, action: start, seq: seq + 1, ref: scgs.Ref(100*m + n), at: at}
		switch {
		case d.chance(15) && seq > 0:
			seq++
			missing = true
			continue
		case d.chance(30) && now != 0:
			msg.action, msg.seq = evidence, seq
		case d.chance(15) && now != 0:
			msg.action = end
		}
		if missing {
			events = append(events, episode{clocksync.MinInstant, clocksync.MaxInstant, 0, clocksync.MinInstant})
			now, missing = 0, false
		}
		seq = msg.seq
		switch msg.action {
		case start:
			now = msg.ref
		case end:
			now = 0
		}
		events = append(events, episode{at.Within.Earliest, at.Within.Latest, now, t})
		stream = append(stream, msg)
	}
	return stream, events
}

// TestExtentsAreAttained enumerates the realities that the stamps of members with
// clocks of their own admit: each end of a sum is that of one of them.
func TestExtentsAreAttained(t *testing.T) {
	forSystems(t, func(t rapid.TB, d draw) {
		s := &system{}
		var lives []life
		for m := range 1 + d(3) {
			stream, events := newLife(d, m)
			s.domains = append(s.domains, name(m))
			s.streams, lives = append(s.streams, stream), append(lives, events)
		}
		s.deliver(d, hazards{})
		r := newExtentRun(t, scgs.ExtentOptions{Declared: scgs.Range{Low: -5, High: 5}}, s.specs())
		for _, msg := range s.arrived {
			r.put(msg)
			r.drain()
		}
		r.x.Finish()
		r.drain()
		var want [horizon]scgs.Range
		for _, l := range lives {
			var seen [horizon]map[scgs.Ref]bool
			for t := range seen {
				seen[t] = map[scgs.Ref]bool{}
			}
			l.realise(&seen)
			for t, refs := range seen {
				own := hull()
				for ref := range refs {
					v := scgs.Range{Low: valueOf(ref), High: valueOf(ref)}
					if ref == 0 {
						v = scgs.Range{Low: -5, High: 5}
					}
					widen(&own, v)
				}
				want[t].Low += own.Low
				want[t].High += own.High
			}
		}
		for at := range want {
			if got := extentAt(r.found, clocksync.Instant(at)).Sum; got != want[at] {
				t.Fatalf("at %d the sum is in %v, want %v\n%v\n%v", at, got, want[at], lives, s)
			}
		}
	})
}

func extentAt(found []scgs.Extent, at clocksync.Instant) scgs.Extent {
	x := scgs.Extent{}
	for _, f := range found {
		if f.From <= at {
			x = f
		}
	}
	return x
}

// TestWiderBoundsOnlyWiden adds to all bounds.
func TestWiderBoundsOnlyWiden(t *testing.T) {
	forSystems(t, func(t rapid.TB, d draw) {
		s := newSystem(d, hazards{loss: 10, ends: 15})
		run := func() []scgs.Extent {
			r := newExtentRun(t, scgs.ExtentOptions{Declared: scgs.Range{Low: -9, High: 9}}, s.specs())
			for _, msg := range s.arrived {
				r.put(msg)
				r.drain()
			}
			r.x.Finish()
			r.drain()
			return r.found
		}
		narrow := run()
		for i := range s.arrived {
			w := &s.arrived[i].at.Within
			w.Earliest, w.Latest = w.Earliest-2, w.Latest+3
		}
		wide := run()
		for _, f := range slices.Concat(narrow, wide) {
			in, out := extentAt(narrow, f.From), extentAt(wide, f.From)
			if !inside(in.Sum, out.Sum) || !inside(in.Least, out.Least) || !inside(in.Greatest, out.Greatest) {
				t.Fatalf("at %v narrow %+v, wide %+v\n%v", f.From, in, out, s)
			}
		}
	})
}

func inside(a, b scgs.Range) bool { return b.Low <= a.Low && a.High <= b.High }

// TestAnsweredNeedsGoOn answers what is asked for until nothing is: then nothing
// is left to be delivered.
func TestAnsweredNeedsGoOn(t *testing.T) {
	asked := 0
	forSystems(t, func(t rapid.TB, d draw) {
		s := newSystem(d, hazards{ends: 15, infinite: 10})
		r := newExtentRun(t, scgs.ExtentOptions{}, s.specs())
		for _, msg := range s.arrived[:d(len(s.arrived)+1)] {
			r.put(msg)
			r.drain()
		}
		for needs := r.x.Needs(nil); len(needs) > 0; needs = r.x.Needs(nil) {
			asked += len(needs)
			until := r.x.Until()
			for _, n := range needs {
				at := clocksync.Stamp{Domain: s.domains[n.Member], Mono: clocksync.Instant(5000 + asked), Within: clocksync.Interval{
					Earliest: n.AfterTime + 1, Latest: max(n.AfterTime, 200) + 1,
				}}
				if n.AfterTime == clocksync.MinInstant { // nobody has said anything that ends
					at.Within.Earliest = -100
				}
				why := r.x.Evidence(n.Member, max(1, n.Seq), at)
				if why != scgs.Accepted {
					t.Fatalf("%+v: %v\n%v", n, why, s)
				}
			}
			if r.drain(); r.x.Until() <= until || r.x.Until() <= needs[0].AfterTime {
				t.Fatalf("until %v, then %v though %+v was answered\n%v", until, r.x.Until(), needs, s)
			}
		}
		n := len(r.found)
		r.x.Finish()
		if r.drain(); len(r.found) > n {
			t.Fatalf("nothing was asked for, and %+v was to come\n%v", r.found[n:], s)
		}
	})
	if asked < systems(t) {
		t.Fatalf("only %d needs", asked)
	}
}

// TestCoarseReadings is about states that start and end by the same reading: they
// were never held, unless their stamps show that the clock is too coarse.
func TestCoarseReadings(t *testing.T) {
	for _, c := range []struct {
		name  string
		third clocksync.Interval
		want  string
	}{
		{"stamps agree", clocksync.Interval{Earliest: 10, Latest: 13}, "[-inf:0..9 9:1 10:1..3 12:3]"},
		{"stamps differ", clocksync.Interval{Earliest: 15, Latest: 16}, "[-inf:0..9 9:1..2 12:2 15:2..3 16:3]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, err := scgs.NewExtents(scgs.ExtentOptions{Declared: scgs.Range{High: 9}})
			if err != nil {
				t.Fatal(err)
			}
			x.Epoch(1, nil, []scgs.Spec{{Domain: "d"}})
			for i, within := range []clocksync.Interval{{Earliest: 5, Latest: 9}, {Earliest: 9, Latest: 12}, c.third} {
				at := clocksync.Stamp{Domain: "d", Mono: clocksync.Instant(10 * min(i, 1)), Within: within}
				if why := x.Start(0, uint64(i+1), at, float64(i+1)); why != scgs.Accepted {
					t.Fatal(why)
				}
			}
			x.Finish()
			var got []string
			var e scgs.Extent
			for x.Next(&e) {
				got = append(got, fmt.Sprintf("%v:%v", e.From, between(e.Sum)))
			}
			if text := fmt.Sprint(got); text != c.want {
				t.Fatalf("got %s, want %s", text, c.want)
			}
		})
	}
}
