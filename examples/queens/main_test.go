package main

import (
	"encoding/json"
	"testing"

	"github.com/gopegasus/pegasus/internal/testprogram"
)

func TestMain(m *testing.M) { testprogram.Main(m, main) }

// TestQueens: the example gets all results, also if a process is killed, and refuses what makes no sense.
func TestQueens(t *testing.T) {
	for _, args := range [][]string{{"-json", "-n", "10"}, {"-json", "-n", "15", "-processes", "3", "-kill", "1"}} {
		out, err := testprogram.Command(t, args...).Output()
		var got struct {
			Result, Processes, Redone, Lost int64
		}
		if err != nil || json.Unmarshal(out, &got) != nil || got.Result == 0 || got.Lost != 0 || len(args) > 4 && args[len(args)-2] == "-kill" && got.Redone == 0 {
			t.Errorf("%v: %v: %s", args, err, out)
		}
	}
	for _, c := range []struct{ flag, value, want string }{
		{"-n", "0", "queens: -n 0: write 1 to 16\n"},
		{"-kill", "9", "queens: -processes 2 -kill 9: run 1 to 64 processes, and leave at least one\n"},
	} {
		out, err := testprogram.Command(t, c.flag, c.value, "-processes", "2").CombinedOutput()
		if err == nil || string(out) != c.want {
			t.Errorf("%s %s: %v: %s; want %s", c.flag, c.value, err, out, c.want)
		}
	}
}
