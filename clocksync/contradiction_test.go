package clocksync_test

import (
	"fmt"
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
)

// TestAContradictionWithThePast is a wall clock set back by 3 s whose daemon
// claims 10 ms before and after.
func TestAContradictionWithThePast(t *testing.T) {
	e := estimator(t, clocksync.Config{})
	e.Observe(clocksync.Observation{Mono: 100 * second, Boot: 100 * second, Wall: 1000 * second})
	before, after := word("daemon", 100*second, 900*second-10*ms, 900*second+10*ms), word("daemon", 102*second, 897*second-10*ms, 897*second+10*ms)
	before.Wall, after.Wall = true, true
	add(t, e, before)
	wantOffset(t, e.Bound(101*second), clocksync.Synchronized, before.Offset.Widen(50_003))
	if c := e.Observe(clocksync.Observation{Mono: 101*second + 500*ms, Boot: 101*second + 500*ms, Wall: 998*second + 500*ms}); c != clocksync.Stepped {
		t.Fatalf("the step is seen as %v", c)
	}
	wantOffset(t, e.Bound(101*second+500*ms), clocksync.Unknown, clocksync.Unbounded)
	add(t, e, after)
	b := e.Bound(102 * second)
	wantOffset(t, b, clocksync.Untrusted, clocksync.Unbounded)
	if b.Tainted != 101*second {
		t.Errorf("tainted since %v, want the last good bound at %v", b.Tainted, 101*second)
	}
	r := e.Diagnostics(102 * second)
	want := clocksync.Taint{From: 101 * second, Noticed: 102 * second, To: clocksync.MaxInstant, Outliers: []string{"ntp/daemon"}, Past: true}
	if len(r.Taints) != 1 || fmt.Sprint(r.Taints[0]) != fmt.Sprint(want) || r.Contradictions != 1 || r.Steps != 1 {
		t.Errorf("%+v, want %+v", r, want)
	}

	// Trust comes back after 8 samples that agree.
	for i := range clocksync.Instant(8) {
		wantOffset(t, e.Bound((103+i)*second), clocksync.Untrusted, clocksync.Unbounded)
		again := word("daemon", (103+i)*second, 897*second-10*ms, 897*second+10*ms)
		again.Wall = true
		add(t, e, again)
	}
	b = e.Bound(110 * second)
	wantOffset(t, b, clocksync.Synchronized, interval(897*second-10*ms, 897*second+10*ms))
	if got := e.Diagnostics(110 * second).Taints[0].To; got != 110*second || b.Tainted != clocksync.MaxInstant || b.Within(109*second) != clocksync.Unbounded {
		t.Errorf("the taint ended at %v; the bound is %+v", got, b)
	}
}

func TestAStepInsideTheBound(t *testing.T) {
	e := estimator(t, clocksync.Config{})
	e.Observe(clocksync.Observation{Mono: 100 * second, Boot: 100 * second, Wall: 1000 * second})
	before, after := word("daemon", 100*second, 895*second, 905*second), word("daemon", 102*second, 892*second, 902*second)
	before.Wall, after.Wall = true, true
	add(t, e, before)
	e.Bound(100 * second)
	e.Observe(clocksync.Observation{Mono: 101 * second, Boot: 101 * second, Wall: 998 * second})
	add(t, e, after)
	wantOffset(t, e.Bound(102*second), clocksync.Synchronized, interval(895*second-100_006, 902*second))
}

func TestAStepIsNothingToOtherSources(t *testing.T) {
	e := estimator(t, clocksync.Config{})
	e.Observe(clocksync.Observation{Mono: second, Boot: second, Wall: second})
	add(t, e, word("a", 2*second, -5, 5))
	e.Observe(clocksync.Observation{Mono: 3 * second, Boot: 3 * second, Wall: 99 * second})
	if b := e.Bound(3 * second); b.Quality.Status != clocksync.Synchronized {
		t.Errorf("%+v", b)
	}
}

func TestASuspendVoidsAll(t *testing.T) {
	e := estimator(t, clocksync.Config{})
	e.Observe(clocksync.Observation{Mono: 10 * second, Boot: 10 * second, Wall: 10 * second})
	add(t, e, word("a", 11*second, -5, 5))
	e.Bound(11 * second)
	if c := e.Observe(clocksync.Observation{Mono: 12 * second, Boot: 99 * second, Wall: 99 * second}); c != clocksync.Suspended {
		t.Fatalf("seen as %v", c)
	}
	wantOffset(t, e.Bound(12*second), clocksync.Unknown, clocksync.Unbounded)
	straddles := word("a", 12*second+1, -5, 5)
	if r := e.Add(straddles); r != clocksync.Void {
		t.Errorf("an exchange that began before the suspend is %v", r)
	}
	add(t, e, word("a", 13*second, 87*second, 87*second+9))
	b := e.Bound(14 * second)
	wantOffset(t, b, clocksync.Synchronized, interval(87*second, 87*second+9).Widen(50_003))
	if b.Within(14*second-1) != clocksync.Unbounded || b.Tainted != clocksync.MaxInstant {
		t.Errorf("%+v", b)
	}
	if r := e.Diagnostics(14 * second); r.Suspends != 1 || r.Refused[clocksync.Void] != 1 || r.Contradictions != 0 {
		t.Errorf("%+v", r)
	}
}

func TestWhoContradictsItselfIsWrongForAWhile(t *testing.T) {
	e := estimator(t, clocksync.Config{Faults: 1})
	for i := range clocksync.Instant(10) {
		at := (10 + i) * second
		liar := word("c", at, 6*ms, 8*ms)
		if i == 0 {
			liar.Offset = interval(-9*ms, -7*ms)
		}
		add(t, e, word("a", at, -10*ms, 7*ms), word("b", at, -8*ms, 5*ms), liar)
		b := e.Bound(at)
		r := e.Diagnostics(at)
		// Before its second word and from its ninth on, c and a may be right and b wrong.
		want := map[bool]clocksync.Interval{true: interval(-8*ms, 5*ms), false: interval(-9*ms, 5*ms)}[i > 0]
		if i >= 8 {
			want = interval(-8*ms, 5*ms) // But the offset cannot have jumped there.
		}
		got := b.OffsetAt(at)
		if got.Earliest.Sub(want.Earliest).Abs() > 1e6 || got.Latest.Sub(want.Latest).Abs() > 1e6 {
			t.Errorf("after %d words %v, want %v", i+1, got, want)
		}
		if wrong := r.Servers[2].Standing == clocksync.Outvoted; wrong != (i > 0) {
			t.Errorf("after %d words c is %v", i+1, r.Servers[2].Standing)
		}
		if i == 9 && r.Servers[2].Contradicted != 1 {
			t.Errorf("%+v", r.Servers[2])
		}
	}
}

// TestTwoThatNeverAgree asks two servers in turn that are a second apart: at no
// time does one of them alone bring trust back.
func TestTwoThatNeverAgree(t *testing.T) {
	e := estimator(t, clocksync.Config{Timeline: clocksync.UTC})
	lost := false
	for i := range clocksync.Instant(100) {
		at := i * second
		add(t, e, word("a", at, 0, 10))
		first := e.Bound(at).Quality.Status
		add(t, e, word("b", at+1, second, second+10))
		second := e.Bound(at + 1).Quality.Status
		if lost && (first != clocksync.Untrusted || second != clocksync.Untrusted) {
			t.Fatalf("round %d: %v, then %v", i, first, second)
		}
		lost = lost || second == clocksync.Untrusted
	}
	if !lost {
		t.Fatal("both are believed")
	}
}
