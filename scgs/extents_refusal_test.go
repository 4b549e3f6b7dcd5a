package scgs_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

func TestDeclaredRange(t *testing.T) {
	const text = "scgs: the declared range is from %s: give a Low that is not above High, and make one of them finite"
	for _, c := range []struct {
		declared scgs.Range
		fault    string
		unknown  scgs.Range // what an UNKNOWN then is
	}{
		{scgs.Range{}, "", scgs.Range{Low: math.Inf(-1), High: math.Inf(1)}},
		{scgs.Range{Low: 0, High: 1}, "", scgs.Range{Low: 0, High: 1}},
		{scgs.Range{Low: 0, High: math.Inf(1)}, "", scgs.Range{Low: 0, High: math.Inf(1)}},
		{scgs.Range{Low: -math.MaxFloat64, High: 5}, "", scgs.Range{Low: math.Inf(-1), High: 5}},
		{scgs.Range{Low: 3, High: 1}, "3 to 1", scgs.Range{}},
		{scgs.Range{Low: math.NaN(), High: 1}, "NaN to 1", scgs.Range{}},
		{scgs.Range{Low: 0, High: math.NaN()}, "0 to NaN", scgs.Range{}},
		{scgs.Range{Low: math.Inf(1), High: math.Inf(1)}, "+Inf to +Inf", scgs.Range{}},
		{scgs.Range{Low: math.Inf(-1), High: math.Inf(-1)}, "-Inf to -Inf", scgs.Range{}},
	} {
		x, err := scgs.NewExtents(scgs.ExtentOptions{Declared: c.declared})
		if c.fault != "" {
			if want := fmt.Sprintf(text, c.fault); err == nil || err.Error() != want {
				t.Errorf("%v: %v, want %s", c.declared, err, want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%v: %v", c.declared, err)
			continue
		}
		x.Epoch(1, nil, []scgs.Spec{{Domain: "d"}})
		x.Finish()
		var e scgs.Extent
		if !x.Next(&e) || e.Sum != c.unknown || e.Least != c.unknown || e.Greatest != c.unknown {
			t.Errorf("%v: %+v, want %v", c.declared, e, c.unknown)
		}
	}
}

// TestPossibleRefusals gives each reason, and says that what is refused changes
// nothing.
func TestPossibleRefusals(t *testing.T) {
	at := func(domain clocksync.Domain, t clocksync.Instant) clocksync.Stamp {
		return clocksync.Stamp{Domain: domain, Mono: t, Within: clocksync.Around(t, 1)}
	}
	forever := clocksync.Stamp{Domain: "d", Mono: clocksync.MaxInstant, Within: clocksync.Interval{Earliest: clocksync.MaxInstant, Latest: clocksync.MaxInstant}}
	q := newExtentRun(t, scgs.ExtentOptions{}, []scgs.Spec{{Domain: "d"}}).x
	for i, c := range []struct{ got, want scgs.Reason }{
		{q.Start(1, 1, at("d", 10), 1), scgs.NoMember},
		{q.End(-1, 1, at("d", 10)), scgs.NoMember},
		{q.Start(0, 0, at("d", 10), 1), scgs.Malformed},
		{q.Start(0, 1, at("e", 10), 1), scgs.Foreign},
		{q.Start(0, 1, at("d", 10), 1), scgs.Accepted},
		{q.Start(0, 1, at("d", 11), 2), scgs.Duplicate},
		{q.Start(0, 2, at("d", 9), 2), scgs.Regress},
		{q.Evidence(0, 1, at("d", 9)), scgs.Regress},
		{q.Evidence(0, 1, at("d", 12)), scgs.Accepted},
		{q.Start(0, 2, at("d", 13), 2), scgs.Accepted},
		{q.Evidence(0, 1, at("d", 14)), scgs.Stale}, // of a state that has ended
		{q.Lost(0), scgs.Accepted},
		{q.Evidence(0, 2, at("d", 14)), scgs.Stale}, // of a member given up
		{q.Start(0, 3, at("d", 15), 3), scgs.Accepted},
		{q.Evidence(0, 3, forever), scgs.Accepted},
		{q.Lost(0), scgs.Regress}, // it promised
		{q.Restart(0, "d", clocksync.MaxInstant), scgs.Regress},
		{q.Lost(1), scgs.NoMember},
		{q.Restart(1, "d", clocksync.MaxInstant), scgs.NoMember},
		{q.Evidence(1, 1, forever), scgs.NoMember},
	} {
		if c.got != c.want {
			t.Errorf("input %d: %v, want %v", i, c.got, c.want)
		}
	}
	st := q.Stats()
	if st.States != 3 || st.Evidence != 2 || st.Gaps != 0 || refusals(st) != 14 {
		t.Errorf("%+v, %d refused", st, refusals(st))
	}
	q.Finish()
	if why := q.End(0, 4, at("d", 20)); why != scgs.NoMember {
		t.Errorf("after Finish: %v", why)
	}
}

// TestPossibleMemoryIsBounded lets one member continue, first while the other one is
// silent and then while its clock has no bound.
func TestPossibleMemoryIsBounded(t *testing.T) {
	const pending = 50
	x := newExtentRun(t, scgs.ExtentOptions{MaxPending: pending}, []scgs.Spec{{Domain: "a"}, {Domain: "b"}}).x
	most := 0
	step := func(i int, bound clocksync.Instant) {
		now := clocksync.Instant(10 * i)
		x.Start(0, uint64(i), clocksync.Stamp{Domain: "a", Mono: now, Within: clocksync.Interval{Earliest: now, Latest: bound}}, float64(i))
		var e scgs.Extent
		for x.Next(&e) {
		}
		most = max(most, x.Kept(0))
	}
	for i := 1; i <= 1000; i++ {
		step(i, clocksync.Instant(10*i))
	}
	x.Lost(1)
	for i := 1001; i <= 2000; i++ {
		step(i, clocksync.MaxInstant)
	}
	if most > pending+2 || x.Stats().Collapsed < 1500 {
		t.Fatalf("held %d states at most, %d collapsed", most, x.Stats().Collapsed)
	}
}
