//go:build system && unix

package main

import (
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/gopegasus/pegasus/internal/testcount"
	"github.com/gopegasus/pegasus/internal/testprogram"
)

// TestHoldersKilled: each run kills, at a random moment, processes that hold images and run tasks on them. The vectors equal a sequential
// run's, no task is lost, and the tasks of the killed processes are done again.
func TestHoldersKilled(t *testing.T) {
	for i := range testcount.Of(t, "BLOCKMATCH_KILLS", 2) {
		store := []string{"memory", "jetstream"}[i%2]
		args := []string{"-frames", "3", "-calibrated", "-processes", "4", "-phase", "3", "-mean", "3ms", "-kill", strconv.Itoa(1 + i/2%2), "-kill-at", strconv.FormatFloat(0.8*rand.New(rand.NewPCG(uint64(i), 0)).Float64(), 'f', 3, 64), "-seed", strconv.Itoa(i + 1), "-store", store, "-json"}
		out, err := testprogram.Command(t, args...).CombinedOutput()
		var run struct {
			Result       string
			Redone, Lost int64
		}
		if err != nil || json.Unmarshal(out, &run) != nil || run.Result == "" || run.Lost != 0 || run.Redone == 0 {
			t.Errorf("%v: %v: %s", args, err, out)
		}
	}
}
