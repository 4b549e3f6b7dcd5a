//go:build nightly

package main

import (
	"strconv"
	"testing"
)

// TestKills ends a hundred processes, nodes and synchronizers, five in a run, at moments
// that the seed gives.
func TestKills(t *testing.T) {
	again, kills := 0, 0
	for seed := 1; kills < 100; seed++ {
		a, k := disturb(t, "-kills", "5", "-slow", "60ms", "-seed", strconv.Itoa(seed))
		again, kills = again+a, kills+k
		t.Logf("seed %d: %d processes killed, %d blocks ran again", seed, k, a)
	}
	t.Logf("%d processes killed, %d blocks ran again", kills, again)
}
