package scgs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// TestFaultsBetweenLevelsNeverAdd loses summaries, gives groups up, lets them come
// back and begin new runs, and loses what their members report. Whatever the root
// finds is a global state of the whole history.
func TestFaultsBetweenLevelsNeverAdd(t *testing.T) {
	found, gaps, dropped := 0, uint64(0), uint64(0)
	forSystems(t, func(t rapid.TB, d draw) {
		s := newSystemOf(2+d(3), 1+d(4), d, hazards{longer: 8, ends: 15, loss: 10, infinite: 10, restarts: 10, moves: 50, losts: 3})
		f := newForest(t, d, s, 2+d(2), scgs.Options{MaxPending: 1 + d(3)})
		whole := expect(len(s.domains), slices.Concat(s.streams...))
		check := func(l *level, value []scgs.Ref) {
			if l.event.Kind != scgs.Opened {
				return
			}
			if text := strings.Trim(fmt.Sprint(value), "[]"); !slices.Contains(whole, text) {
				t.Fatalf("%s is no global state\n%v", text, f)
			}
			found++
		}
		f.root.tells = check
		for _, msg := range s.arrived {
			f.put(msg)
			for _, l := range f.levels {
				if l.above != nil {
					l.fault(d)
				}
				l.forward(func() bool { return !d.chance(15) })
			}
		}
		for _, l := range f.levels {
			gaps += l.d.Stats().Gaps
			dropped += l.d.Stats().Collapsed
		}
	})
	if found == 0 || gaps == 0 || dropped == 0 {
		t.Fatalf("%d global states, %d gaps, %d states dropped", found, gaps, dropped)
	}
}

// fault does something to a group that its detector above must survive.
func (l *level) fault(d draw) {
	switch d(40) {
	case 0:
		l.above.d.Lost(l.member)
	case 1: // it restarts and has forgotten everything but its members
		l.above.d.Restart(l.member, "", clocksync.MaxInstant)
		l.d.Share(l.shared...)
	case 2:
		l.d.Share()
	case 3:
		l.d.Epoch(uint64(2+d(5)), nil, nil)
	}
}

// FuzzSummary gives a detector summaries of all kinds. It refuses them or lives
// with them.
func FuzzSummary(f *testing.F) {
	f.Add([]byte{1, 1, 1, 2, 0, 5, 5, 9, 9, 9, 1, 1, 20, 20, 20, 1, 2, 2, 2, 0, 7, 7, 12, 12, 12, 1, 1, 9, 9, 9})
	f.Fuzz(func(t *testing.T, data []byte) { fuzzSummary(data) })
}

func fuzzSummary(data []byte) {
	next := func() int {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return int(b)
	}
	instant := func() clocksync.Instant {
		switch b := next(); b {
		case 255:
			return clocksync.MaxInstant
		case 254:
			return clocksync.MinInstant
		default:
			return clocksync.Instant(b)
		}
	}
	d, top := scgs.NewDetector(scgs.Options{MaxPending: 3}), scgs.NewDetector(scgs.Options{})
	d.Share("x")
	d.Epoch(1, nil, []scgs.Spec{{Group: true}, {Group: true}, {Domain: "x"}})
	top.Epoch(1, nil, []scgs.Spec{{Group: true}})
	names := []clocksync.Domain{"x", "y", "", "z"}
	var ev scgs.Event
	var up scgs.Summary
	for seq := uint64(1); len(data) > 0; seq++ {
		m := next() % 3
		if m == 2 {
			d.Start(2, seq, clocksync.Stamp{Domain: "x", Mono: instant(), Within: clocksync.Exactly(clocksync.Instant(next()))}, 0)
		} else {
			s := scgs.Summary{Run: uint64(next() % 4), Number: uint64(next()), Index: uint64(next()), From: instant()}
			for range 1 + next()%3 {
				s.Rows = append(s.Rows, scgs.Row{
					Domain: names[next()%len(names)], StartMono: instant(), StartLatest: instant(),
					Held:  scgs.Ends{Mono: instant(), Earliest: instant(), Latest: instant()},
					Ended: scgs.Ends{Mono: instant(), Earliest: instant(), Latest: instant()},
				})
			}
			d.Summary(scgs.Member(m), &s, 0)
		}
		for more := true; more; {
			more = d.Next(&ev)
			if d.Summarize(&up) {
				top.Summary(0, &up, 0)
			}
		}
		for _, n := range d.Needs(nil) {
			d.NeedsFor(nil, n)
		}
		d.Witness(nil)
		for top.Next(&ev) {
			top.Current()
		}
	}
}
