package workcore

import (
	"strings"
	"testing"

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
