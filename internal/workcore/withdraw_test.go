package workcore

import (
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/testcount"
)

// TestWithdrawnSpaces: tasks are done once while members are withdrawn and return at random, in either topology, and
// each phase ends although members are withdrawn then.
func TestWithdrawnSpaces(t *testing.T) {
	n := testcount.Of(t, "WORK", 150)
	kills, withdrawals, moves := 0, 0, 0
	for seed := range uint64(n) { //nolint:gosec // Above 0.
		w := newSpace(seed)
		w.withdraws = true
		if w.live(); len(w.faults) > 0 {
			t.Fatalf("seed %d: %s", seed, strings.Join(w.faults, "\n"))
		}
		kills, withdrawals, moves = kills+w.kills, withdrawals+w.withdrawals, moves+w.moves
	}
	if t.Logf("%d worlds: %d kills, %d withdrawals, %d moves", n, kills, withdrawals, moves); withdrawals == 0 {
		t.Error("no member was withdrawn")
	}
}

// TestWithdrawnObjects: as TestObjects, while members are withdrawn and return at random. No member that gives its work
// away begins to run an object that may leave.
func TestWithdrawnObjects(t *testing.T) {
	for _, durable := range []bool{false, true} {
		n := testcount.Of(t, "WORK", 150)
		kills, withdrawals, served, parcels := 0, 0, 0, 0
		for seed := range uint64(n) { //nolint:gosec // Above 0.
			w := newEstate(seed, durable)
			w.withdraws = true
			if w.live(); len(w.faults) > 0 {
				t.Fatalf("durable %v, seed %d: %s", durable, seed, strings.Join(w.faults, "\n"))
			}
			kills, withdrawals, served, parcels = kills+w.kills, withdrawals+w.withdrawals, served+w.served, parcels+w.parcels
		}
		if t.Logf("durable %v: %d worlds: %d kills, %d withdrawals, %d messages, %d parcels", durable, n, kills, withdrawals, served, parcels); withdrawals == 0 {
			t.Error("no member was withdrawn")
		}
	}
}

// TestHysteresis: the condition that would change something has to hold for the hold time without interruption, and
// while both hold the member is withdrawn.
func TestHysteresis(t *testing.T) {
	const s = time.Second
	type step struct {
		at         time.Duration
		when, back bool
		away       bool
		again      time.Duration // -1: never
	}
	for name, c := range map[string]struct {
		hold  time.Duration
		steps []step
	}{
		"at once":   {0, []step{{1 * s, false, false, false, -1}, {2 * s, true, false, true, -1}, {3 * s, false, false, true, -1}, {4 * s, false, true, false, -1}}},
		"both hold": {0, []step{{1 * s, true, true, true, -1}, {2 * s, true, true, true, -1}, {3 * s, false, true, false, -1}}},
		"an interruption begins the time again": {5 * s, []step{
			{1 * s, true, false, false, 6 * s},
			{5 * s, false, false, false, -1},
			{6 * s, true, false, false, 11 * s},
			{10999 * time.Millisecond, true, false, false, 11 * s},
			{11 * s, true, false, true, -1},
			{12 * s, false, true, true, 17 * s},
			{14 * s, true, true, true, -1},
			{15 * s, false, true, true, 20 * s},
			{20 * s, false, true, false, -1},
		}},
	} {
		var h Hysteresis
		for _, step := range c.steps {
			again := clocksync.MaxInstant
			if step.again >= 0 {
				again = clocksync.Instant(step.again)
			}
			if got := h.Judge(clocksync.Instant(step.at), step.when, step.back, c.hold); h.Away != step.away || got != again {
				t.Errorf("%s, at %v: away %v, again at %v; want %v, %v", name, step.at, h.Away, got, step.away, again)
			}
		}
	}
	var h Hysteresis
	h.Judge(1, true, false, s)
	h.Restart() // The rule is another one.
	if again := h.Judge(clocksync.Instant(s), true, false, s); h.Away || again != clocksync.Instant(2*s) {
		t.Errorf("after another rule: away %v, again at %v", h.Away, again)
	}
}
