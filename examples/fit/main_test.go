package main

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/gopegasus/pegasus/internal/testprogram"
)

func TestMain(m *testing.M) { testprogram.Main(m, main) }

// TestFit: the fit has the weights of one process alone, also if processes are withdrawn, are killed and join.
func TestFit(t *testing.T) {
	for _, args := range [][]string{
		{"-rows", "2000"},
		{"-rows", "1000", "-sleep", "400us", "-withdraw", "1", "-join", "1"},
		{"-rows", "1000", "-sleep", "400us", "-withdraw", "1", "-back", "2", "-iterations", "8"},
		{"-rows", "1000", "-sleep", "400us", "-pull"},
		{"-rows", "1000", "-sleep", "400us", "-iterations", "5", "-processes", "3", "-kill", "1"},
	} {
		out, err := testprogram.Command(t, append(args, "-json")...).CombinedOutput()
		var got struct {
			Result, Killed, Lost int64
			Redone               int64    `json:"redone_rows"`
			Moved                *int64   `json:"moved_rows"`
			Yield                *float64 `json:"loop_efficiency"`
			Withdrawing          *float64 `json:"withdrawing_seconds"`
		}
		if err != nil || json.Unmarshal(out, &got) != nil || got.Result == 0 || got.Lost != 0 || (got.Redone > 0) != (got.Killed > 0) || got.Moved == nil ||
			(got.Yield == nil) != slices.Contains(args, "-pull") || (got.Withdrawing == nil) != !slices.Contains(args, "-withdraw") {
			t.Errorf("%v: %v: %s", args, err, out)
		}
	}
	for _, c := range []struct{ flag, value, want string }{
		{"-speeds", "1,0", "fit: -speeds: \"0\" is no speed from 0.01 to 100\n"},
		{"-rows", "-1", "fit: -rows, -iterations, -sleep: give 0 to 1000000 rows, at least 3 iterations, and no negative time\n"},
		{"-kill", "4", "fit: -processes 4 -kill 4 -withdraw 0 -join 0: run 1 to 32 processes, and let at most 32 join and at least one stay\n"},
	} {
		out, err := testprogram.Command(t, c.flag, c.value).CombinedOutput()
		if err == nil || string(out) != c.want {
			t.Errorf("%s %s: %v: %s; want %s", c.flag, c.value, err, out, c.want)
		}
	}
}
