package main

import (
	"encoding/json"
	"testing"

	"github.com/gopegasus/pegasus/internal/testprogram"
)

func TestMain(m *testing.M) { testprogram.Main(m, main) }

// TestFarm: the example gets all results, also if a process is killed, and refuses what makes no sense.
func TestFarm(t *testing.T) {
	for _, args := range [][]string{
		{"-json", "-weights", "1,2,3,1,1,2,1,1", "-processes", "3"},
		{"-json", "-weights", "7,5,3,11,2,4,6,1,9", "-processes", "4", "-kill", "1"},
		{"-json", "-weights", "7,5,3,11,2,4,6,1,9", "-processes", "4", "-store", "jetstream", "-kill-creator"},
		{"-json", "-weights", "7,5,3,11,2,4,6,1,9", "-processes", "4", "-store", "jetstream", "-kill-server"},
	} {
		out, err := testprogram.Command(t, args...).Output()
		var got struct {
			Result, Processes, Redone, Lost int64
		}
		if err != nil || json.Unmarshal(out, &got) != nil || got.Result == 0 || got.Lost != 0 || len(args) > 4 && args[len(args)-2] == "-kill" && got.Redone == 0 {
			t.Errorf("%v: %v: %s", args, err, out)
		}
	}
	for _, c := range []struct{ flag, value, want string }{
		{"-calls", "0", "farm: -calls: run at least one\n"},
		{"-store", "disk", "farm: -store disk: use memory or jetstream\n"},
		{"-dir", "d", "farm: -dir, -kill-server and -kill-creator need -store jetstream: with memory the tasks die with the process that has put them\n"},
		{"-kill-at", "1", "farm: -kill-at 1: give a part of the work, from 0 to below 1\n"},
		{"-kill", "9", "farm: -processes 2 -kill 9: run 1 to 64 processes, and leave at least one\n"},
	} {
		out, err := testprogram.Command(t, c.flag, c.value, "-processes", "2").CombinedOutput()
		if err == nil || string(out) != c.want {
			t.Errorf("%s %s: %v: %s; want %s", c.flag, c.value, err, out, c.want)
		}
	}
}
