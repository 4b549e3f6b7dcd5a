package main

import (
	"encoding/json"
	"testing"

	"github.com/gopegasus/pegasus/internal/testprogram"
)

func TestMain(m *testing.M) { testprogram.Main(m, main) }

// TestMandelbrot: each way has all rows, the same image, and an efficiency that is possible. A process that is killed loses no row.
func TestMandelbrot(t *testing.T) {
	out, err := testprogram.Command(t, "-table", "-size", "60", "-alone", "4s", "-json").CombinedOutput()
	var got struct {
		Result string
		Ways   []struct {
			Way                 string
			Seconds, Efficiency float64
			Section             string
		}
	}
	if err != nil || json.Unmarshal(out, &got) != nil || got.Result == "" {
		t.Fatalf("%v: %s", err, out)
	}
	var o options
	seconds := map[string]float64{}
	for i, w := range o.ways() {
		if g := got.Ways[i]; g.Way != w.name || g.Efficiency <= 0 || g.Efficiency > 1.05 || g.Section == "" {
			t.Errorf("%s: %+v", w.name, g)
		}
		seconds[w.name] = got.Ways[i].Seconds
	}
	// By the times of the processes: 31 s for equal parts, 20 s without the slow process, 13 s for parts by speed.
	if seconds["equal3"] >= seconds["equal"] || seconds["demand"] >= seconds["equal3"] || seconds["equal"] >= seconds["sync"] {
		t.Errorf("the order of the ways: %v", seconds)
	}
	for _, args := range [][]string{{"-compute"}, {"-way", "gss", "-kill", "1", "-alone", "10s"}} {
		out, err := testprogram.Command(t, append(args, "-size", "60", "-json")...).CombinedOutput()
		var run struct {
			Result       string
			Redone, Lost int64
		}
		if err != nil || json.Unmarshal(out, &run) != nil || run.Result != got.Result || run.Lost != 0 || args[0] == "-way" && run.Redone == 0 {
			t.Errorf("%v: %v: %s", args, err, out)
		}
	}
}

// TestImage: a point of the set has all iterations, and one outside of it has few.
func TestImage(t *testing.T) {
	for _, c := range []struct {
		re, im float64
		want   int
	}{{0, 0, 255}, {-1, 0, 255}, {0.25, 0, 255}, {2.5, 0, 1}, {1, 0, 3}, {-1.8, -1.2, 1}} {
		if got := iterations(c.re, c.im); got != c.want {
			t.Errorf("%v + %vi: %d iterations, want %d", c.re, c.im, got, c.want)
		}
	}
	m := image{200}
	for y := range 100 {
		above, cost := m.row(y)
		below, same := m.row(199 - y)
		if string(above) != string(below) || cost != same {
			t.Errorf("row %d and its mirror image differ", y)
		}
	}
}

// TestCheck: a row that is wrong, missing or out of the image is found.
func TestCheck(t *testing.T) {
	m := image{20}
	rows := map[int][]byte{}
	for y := range m.size {
		rows[y], _ = m.row(y)
	}
	digest, err := m.check(rows)
	if other, _ := (image{21}).check(nil); err != nil || digest == "" || other != "" {
		t.Error(digest, other, err)
	}
	rows[7] = rows[8]
	if _, err := m.check(rows); err == nil || err.Error() != "image: row 7 differs from the row that this process computes" {
		t.Error(err)
	}
	delete(rows, 7)
	if _, err := m.check(rows); err == nil || err.Error() != "image: it has 19 rows instead of 20" {
		t.Error(err)
	}
	o := options{size: 20, image: m}
	if _, err := o.row(t.Context(), 20); err == nil || err.Error() != "row 20: the image has the rows 0 to 19" {
		t.Error(err)
	}
}

// TestFaults: the program refuses flags that make no sense.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-way", "best"}, "mandelbrot: -way best: use one of sync, equal, equal3, ratio, async, demand, marks, ss, css, gss, tss, fac2, quarter, chain, ring, tree\n"},
		{[]string{"-speeds", "1,0"}, "mandelbrot: -speeds: \"0\" is no time from 0.01 to 10000\n"},
		{[]string{"-size", "0"}, "mandelbrot: -size, -alone: give 1 to 10000 rows, and a time above 0\n"},
		{[]string{"-kill", "1"}, "mandelbrot: -kill, -store: the work of this example is calls, which are no tasks: leave both out\n"},
		{[]string{"-processes", "3"}, "mandelbrot: -processes 3: the configuration names the members w1 to w4: run at least 4 processes\n"},
		{[]string{"-store", "jetstream"}, "mandelbrot: -kill, -store: the work of this example is calls, which are no tasks: leave both out\n"},
	} {
		out, err := testprogram.Command(t, c.args...).CombinedOutput()
		if err == nil || string(out) != c.want {
			t.Errorf("%v: %v: %s; want %s", c.args, err, out, c.want)
		}
	}
}
