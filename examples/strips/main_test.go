package main

import (
	"encoding/json"
	"testing"

	"github.com/gopegasus/pegasus/internal/testprogram"
)

func TestMain(m *testing.M) { testprogram.Main(m, main) }

// TestStrips: the strips are those of the sequential computation, also if a process is slow or killed, and no strip
// moves far from its neighbours. What makes no sense is refused.
func TestStrips(t *testing.T) {
	for _, args := range [][]string{
		{"-json", "-processes", "3", "-strips", "12", "-iterations", "25", "-cost", "4ms", "-slow", "2"},
		{"-json", "-processes", "4", "-strips", "12", "-iterations", "25", "-cost", "20ms", "-baseline=false", "-kill", "1"},
	} {
		out, err := testprogram.Command(t, args...).Output()
		var got struct {
			Redone, Lost int64
			Result       struct {
				Strips         int
				Static, Moving figures
			}
		}
		switch r := &got.Result; {
		case err != nil || json.Unmarshal(out, &got) != nil || r.Strips != 12 || got.Lost != 0:
			t.Errorf("%v: %v: %s", args, err, out)
		case args[len(args)-2] == "-kill":
			if got.Redone == 0 {
				t.Errorf("%v: nothing was done again: %s", args, out)
			}
		case r.Static.Moves > 0 || r.Static.Seconds == 0 || r.Moving.Far > 0:
			t.Errorf("%v: %s", args, out)
		}
	}
	for _, c := range []struct{ flag, value, want string }{
		{"-slow", "99", "strips: -strips, -iterations, -cost, -slow: use 1 to 1000 strips, 1 to 10000 iterations, at most 1s for one, and one of the processes\n"},
		{"-kill-creator", "-processes=3", "strips: -dir and -kill-creator: this example does not begin again: its first process puts the work while it runs\n"},
	} {
		out, err := testprogram.Command(t, c.flag, c.value, "-store", "jetstream").CombinedOutput()
		if err == nil || string(out) != c.want {
			t.Errorf("%s %s: %v: %s; want %s", c.flag, c.value, err, out, c.want)
		}
	}
}

// TestJudgeMoves: a move counts as far if neither neighbour was at its new process, and another strip was.
func TestJudgeMoves(t *testing.T) {
	stays := Strip{Places: []Place{{"w1", 0, 9}}}
	for _, c := range []struct {
		about                string
		all                  []Strip
		moves, far, returned int
	}{
		{"nothing moves", []Strip{stays, stays}, 0, 0, 0},
		{"to an empty process, and back to a neighbour", []Strip{stays, {Places: []Place{{"w1", 0, 1}, {"w2", 2, 3}, {"w1", 4, 5}}}}, 2, 0, 1},
		{"to a strip that is no neighbour", []Strip{stays, stays, {Places: []Place{{"w2", 0, 1}, {"w1", 2, 3}}}}, 1, 0, 0},
		{"far", []Strip{stays, {Places: []Place{{"w2", 0, 9}}}, {Places: []Place{{"w2", 0, 1}, {"w1", 2, 3}}}}, 1, 1, 0},
		{"to where the neighbour has left before", []Strip{{Places: []Place{{"w1", 0, 1}, {"w3", 2, 9}}}, {Places: []Place{{"w2", 0, 5}, {"w1", 6, 9}}}, {Places: []Place{{"w2", 0, 9}}}, stays}, 2, 1, 0},
	} {
		var f figures
		f.judgeMoves(c.all)
		if f.Moves != c.moves || f.Far != c.far || f.Returns != c.returned {
			t.Errorf("%s: %+v", c.about, f)
		}
	}
}
