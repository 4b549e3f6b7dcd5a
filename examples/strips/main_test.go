package main

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/internal/testprogram"
)

func TestMain(m *testing.M) { testprogram.Main(m, main) }

// TestStrips: the strips are what the sequential computation comes to, also if a process is slow or killed, or the one
// that has created them.
func TestStrips(t *testing.T) {
	for _, args := range [][]string{
		{"-processes", "3", "-slow"},
		{"-processes", "4", "-kill", "1"},
		{"-processes", "3", "-store", "jetstream"},
		{"-processes", "4", "-store", "jetstream", "-kill-creator"},
		{"-processes", "3", "-store", "jetstream", "-kill-server"},
	} {
		out, err := testprogram.Command(t, append(args, "-json", "-strips", "12", "-iterations", "70", "-cost", "5ms")...).CombinedOutput()
		var got struct {
			Result, Processes, Redone, Lost int64
			Seconds                         float64
			Figures                         struct{ Static, Moves float64 }
		}
		if err != nil || json.Unmarshal(out, &got) != nil || got.Result != 12 || got.Lost != 0 || slices.Contains(args, "-kill") && got.Redone == 0 ||
			slices.Contains(args, "-slow") && (got.Figures.Moves == 0 || got.Figures.Static == 0) {
			t.Errorf("%v: %v: %s", args, err, out)
		}
	}
	out, err := testprogram.Command(t, "-strips", "1").CombinedOutput()
	want := "strips: -strips 1 -iterations 100 -cost 10ms: use 2 to 10000, 1 to 1000000, and no negative time\n"
	if err == nil || string(out) != want {
		t.Errorf("%v: %s; want %s", err, out, want)
	}
}

// TestSequential: strips that exchange borders come to the same as the whole matrix, in any order of the strips.
func TestSequential(t *testing.T) {
	p, err := problemOf(7, 9, 0, false, 3)
	if err != nil {
		t.Fatal(err)
	}
	list := make([]*Strip, p.strips)
	for i := range list {
		list[i] = &Strip{ID: i, Strips: p.strips, Left: p.iterations, Rows: p.rows[i*rowsOf : (i+1)*rowsOf]}
	}
	for range p.iterations {
		for i, st := range list {
			if i > 0 {
				list[i-1].Below = append(list[i-1].Below, st.Rows[0])
			}
			if i < len(list)-1 {
				list[i+1].Above = append(list[i+1].Above, st.Rows[rowsOf-1])
			}
		}
		for _, st := range slices.Backward(list) {
			st.step()
		}
	}
	want := p.sequential()
	for i, st := range list {
		if !reflect.DeepEqual(st.Rows, want[i*rowsOf:(i+1)*rowsOf]) || st.Left != 0 || len(st.Above)+len(st.Below) > 0 {
			t.Errorf("strip %d: %v, want %v", i, st, want[i*rowsOf:(i+1)*rowsOf])
		}
	}
	if reflect.DeepEqual(want, p.rows) || len(want) != len(p.rows) {
		t.Error("nothing was computed")
	}
}

// TestRelax: a cell becomes the mean of its neighbours, with 0 beyond the columns.
func TestRelax(t *testing.T) {
	row := func(at int, v float64) []float64 {
		r := make([]float64, columns)
		r[at] = v
		return r
	}
	got := relax(row(0, 4), [][]float64{row(1, 8), row(columns-1, 16)}, row(columns-1, 20))
	want := [][]float64{row(0, 3), row(1, 2)}
	want[0][2], want[0][columns-1] = 2, 4
	want[1][columns-1], want[1][columns-2] = 5, 4
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestRefused: numbers out of range are named.
func TestRefused(t *testing.T) {
	for _, c := range [][3]int{{1, 1, 0}, {10_001, 1, 0}, {2, 0, 0}, {2, 1_000_001, 0}, {2, 1, -1}} {
		if _, err := problemOf(c[0], c[1], time.Duration(c[2]), false, 1); err == nil || !strings.HasPrefix(err.Error(), "-strips") {
			t.Errorf("%v: %v", c, err)
		}
	}
}
