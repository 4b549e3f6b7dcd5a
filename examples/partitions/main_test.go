package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/internal/testprogram"
)

func TestMain(m *testing.M) { testprogram.Main(m, main) }

// TestPartitions: each access is counted once, also if a process is killed, and no partition moves back to where it was
// before. What makes no sense is refused.
func TestPartitions(t *testing.T) {
	for _, args := range [][]string{
		{"-json", "-processes", "3", "-partitions", "12", "-accesses", "1000", "-cost", "2ms"},
		{"-json", "-processes", "4", "-partitions", "12", "-accesses", "1000", "-cost", "6ms", "-baseline=false", "-kill", "1"},
	} {
		out, err := testprogram.Command(t, args...).Output()
		var got struct {
			Redone, Lost int64
			Result       struct {
				Served         int
				Static, Moving figures
			}
		}
		switch r := &got.Result; {
		case err != nil || json.Unmarshal(out, &got) != nil || r.Served != 1000 || got.Lost != 0:
			t.Errorf("%v: %v: %s", args, err, out)
		case args[len(args)-2] == "-kill":
			if got.Redone == 0 {
				t.Errorf("%v: nothing was done again: %s", args, out)
			}
		case r.Moving.P99 == 0 || r.Moving.Returns > 0 || r.Static.P99 == 0 || r.Static.Moves > 0:
			t.Errorf("%v: %s", args, out)
		}
	}
	for _, c := range []struct{ flag, value, want string }{
		{"-partitions", "0", "partitions: -partitions, -accesses, -cost: use 1 to 1000 partitions, 1 to 1000000 accesses, and at most 1s for one\n"},
		{"-dir", "d", "partitions: -dir and -kill-creator: this example does not begin again: its first process puts the work while it runs\n"},
	} {
		out, err := testprogram.Command(t, c.flag, c.value, "-store", "jetstream").CombinedOutput()
		if err == nil || string(out) != c.want {
			t.Errorf("%s %s: %v: %s; want %s", c.flag, c.value, err, out, c.want)
		}
	}
}

// TestWaits: the time below which a part lies is at most a tenth too long.
func TestWaits(t *testing.T) {
	w := Waits{}
	for i := range 1000 {
		w.add(time.Duration(i+1) * time.Millisecond)
	}
	for part, want := range map[float64]time.Duration{0.5: 500 * time.Millisecond, 0.99: 990 * time.Millisecond} {
		if got := w.below(part); got < want || got > want*11/10 {
			t.Errorf("%v of the waits are below %v, want %v", part, got, want)
		}
	}
	if got := (Waits{}).below(0.99); got != 0 {
		t.Errorf("no waits: %v", got)
	}
}
