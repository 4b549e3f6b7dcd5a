package main

import (
	"encoding/json"
	"testing"

	"github.com/gopegasus/pegasus/internal/testcount"
	"github.com/gopegasus/pegasus/internal/testprogram"
)

// TestStopped: a process that is stopped for longer than the others wait for it spoils nothing.
func TestStopped(t *testing.T) {
	for seed := range uint64(testcount.Of(t, "STOPS", 1)) { //nolint:gosec // Above 0.
		out := testprogram.Stopped(t, seed, "-json", "-weights", "7,5,3,11,2,4,6,1,9", "-processes", "4")
		var got struct{ Result, Lost int64 }
		if err := json.Unmarshal(out, &got); err != nil || got.Lost != 0 || got.Result != 9 {
			t.Errorf("seed %d: %v: %s", seed, err, out)
		}
	}
}
