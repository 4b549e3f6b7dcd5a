package scgs_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
)

// realities are the true times that the stamps of a system admit, by search: of
// each clock, all times its events can have, in the order of their readings.
type realities struct {
	events   map[clocksync.Domain][]clocksync.Stamp
	fine     int // steps of true time in a unit of the stamps: all events find place in order within it
	from, to int
}

func newRealities(all [][]state) *realities {
	r := &realities{events: map[clocksync.Domain][]clocksync.Stamp{}}
	for _, list := range all {
		for _, s := range list {
			for _, e := range []clocksync.Stamp{s.start, s.end} {
				if !slices.Contains(r.events[e.Domain], e) {
					r.events[e.Domain] = append(r.events[e.Domain], e)
				}
				r.from, r.to = min(r.from, int(e.Within.Earliest)), max(r.to, int(e.Within.Latest))
			}
		}
	}
	for _, events := range r.events {
		slices.SortFunc(events, func(a, b clocksync.Stamp) int { return int(a.Mono - b.Mono) })
		r.fine = max(r.fine, len(events)+1)
	}
	r.from, r.to = r.from*r.fine, r.to*r.fine
	return r
}

// admits reports whether there is a reality in which some events are at the
// instant x or before, and others at y or later. Clocks do not influence each
// other.
func (r *realities) admits(before []clocksync.Stamp, x int, after []clocksync.Stamp, y int) bool {
	for _, events := range r.events {
		can := make([]bool, r.to-r.from+1) // the last event was at that time
		for i, e := range events {
			from, to := int(e.Within.Earliest)*r.fine, int(e.Within.Latest)*r.fine
			if slices.Contains(before, e) {
				to = min(to, x)
			}
			if slices.Contains(after, e) {
				from = max(from, y)
			}
			next := make([]bool, len(can))
			earlier := i == 0 // some event before it can have been before t
			for t := range can {
				at := t + r.from
				ok := earlier
				if i > 0 && events[i-1].Mono == e.Mono {
					ok = can[t]
				}
				next[t] = ok && at >= from && at <= to
				earlier = earlier || can[t]
			}
			can = next
		}
		if !slices.Contains(can, true) {
			return false
		}
	}
	return true
}

// overlap reports whether in some reality all of the starts are before all of
// the ends.
func (r *realities) overlap(starts, ends []clocksync.Stamp) bool {
	for x := r.from; x <= r.to; x++ {
		if r.admits(starts, x, ends, x+1) {
			return true
		}
	}
	return false
}

// separate reports whether in some reality the end is no later than the start.
func (r *realities) separate(start, end clocksync.Stamp) bool {
	for x := r.from; x <= r.to; x++ {
		if r.admits([]clocksync.Stamp{end}, x, []clocksync.Stamp{start}, x) {
			return true
		}
	}
	return false
}

// TestPairTestsAgreeWithRealisations looks for realities in which the runs of a
// tuple overlap, and for ones in which two of them do not.
func TestPairTestsAgreeWithRealisations(t *testing.T) {
	found := map[string]int{}
	forSystems(t, func(t rapid.TB, d draw) {
		if d(20) > 0 { // it is slow
			return
		}
		s := newSystemOf(2+d(2), 1+d(4), d, hazards{ends: 30})
		s.sameReadingSameTime()
		all := read(len(s.domains), slices.Concat(s.streams...), runs)
		r := newRealities(all)
		if !r.admits(nil, 0, nil, 0) {
			t.Fatalf("no reality at all\n%v", s)
		}
		for _, heads := range tuples(all, func(a, b state) bool { return true }) {
			var starts, ends []clocksync.Stamp
			for m, k := range heads {
				starts, ends = append(starts, all[m][k].start), append(ends, all[m][k].end)
			}
			possible := passes(all, heads, mayOverlap)
			if r.overlap(starts, ends) != possible {
				t.Fatalf("%v: possible %v, and realities say otherwise\n%v", heads, possible, s)
			}
			found[fmt.Sprint("possible ", possible)]++
		}
		for m := range all {
			for n := range m {
				for _, a := range all[m] {
					for _, b := range all[n] {
						found[fmt.Sprint("certain ", r.certain(t, a, b))]++
						found[fmt.Sprint("certain ", r.certain(t, b, a))]++
					}
				}
			}
		}
	})
	if len(found) < 4 && systems(t) >= 2000 {
		t.Fatalf("not all cases were met: %v", found)
	}
}

// sameReadingSameTime gives the stamps of a reading one interval.
func (s *system) sameReadingSameTime() {
	within := map[clocksync.Instant]clocksync.Interval{}
	for _, msg := range slices.Concat(s.streams...) {
		i, ok := within[msg.at.Mono]
		if !ok {
			i = clocksync.Unbounded
		}
		within[msg.at.Mono], _ = i.Intersect(msg.at.Within)
	}
	for _, stream := range s.streams {
		for i := range stream {
			stream[i].at.Within = within[stream[i].at.Mono]
		}
	}
}

// certain checks that one run certainly starts before the other ends if and only
// if that is so in every reality.
func (r *realities) certain(t rapid.TB, a, b state) bool {
	t.Helper()
	certain := clocksync.CertainlyBefore(a.start, b.end)
	if r.separate(a.start, b.end) == certain && a.start.Within.Latest != b.end.Within.Earliest {
		t.Fatalf("%v before %v: certain %v, realities say otherwise\n%v", a.start, b.end, certain, r.events)
	}
	return certain
}

func passes(all [][]state, t tuple, test func(a, b state) bool) bool {
	for m, k := range t {
		for n, j := range t {
			if !test(all[m][k], all[n][j]) {
				return false
			}
		}
	}
	return true
}
