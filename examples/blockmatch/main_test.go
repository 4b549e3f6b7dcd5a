package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/gopegasus/pegasus/internal/testprogram"
)

func TestMain(m *testing.M) { testprogram.Main(m, main) }

// TestBlockmatch: all strategies find the vectors of a sequential run, by several phases, also if a process is killed.
func TestBlockmatch(t *testing.T) {
	out, err := testprogram.Command(t, "-table", "-frames", "3", "-phase", "2", "-window", "7", "-json").CombinedOutput()
	var table struct {
		Result     string
		Strategies []struct {
			Strategy            string
			Seconds, Efficiency float64
		}
	}
	if err != nil || json.Unmarshal(out, &table) != nil || table.Result == "" || len(table.Strategies) != len(strategies) {
		t.Fatalf("%v: %s", err, out)
	}
	for i, s := range table.Strategies {
		if s.Strategy != strategies[i] || s.Seconds <= 0 || s.Efficiency <= 0 {
			t.Errorf("%+v", s)
		}
	}
	results := map[string]bool{}
	for _, args := range [][]string{
		{"-frames", "1", "-calibrated", "-processes", "4"},
		{"-frames", "1", "-calibrated", "-processes", "2", "-store", "jetstream"},
		{"-frames", "2", "-calibrated", "-processes", "4", "-kill", "1", "-phase", "1", "-mean", "5ms"},
		{"-frames", "2", "-calibrated", "-processes", "4", "-kill", "1", "-strategy", "receiver", "-mean", "5ms"},
	} {
		out, err := testprogram.Command(t, append(args, "-json")...).CombinedOutput()
		var run struct {
			Result       string
			Efficiency   float64
			Redone, Lost int64
		}
		if err != nil || json.Unmarshal(out, &run) != nil || run.Result == "" || run.Lost != 0 || slices.Contains(args, "-kill") && run.Redone == 0 {
			t.Errorf("%v: %v: %s", args, err, out)
		}
		results[run.Result] = true
		if run.Efficiency <= 0 || run.Efficiency > 1.05 {
			t.Errorf("%v: an efficiency of %v", args, run.Efficiency)
		}
	}
	if len(results) != 2 { // Of one frame, and of two.
		t.Errorf("%d different results", len(results))
	}
}

// TestSearch: a block of the background lies where it has moved from, and abandoning a place early changes no vector.
func TestSearch(t *testing.T) {
	f := newFilm(3)
	f.objects = nil
	before, image := f.image(4), f.image(5)
	places := window(7)
	for _, b := range []int{across + 1, blocks/2 + across/2, blocks - across - 2} {
		if v := search(before, image, b, places); v.DX != -f.pan[0] || v.DY != -f.pan[1] {
			t.Errorf("block %d: %+v, and the background moves by %v", b, v, f.pan)
		}
	}
	f = newFilm(4)
	before, image = f.image(0), f.image(1)
	for b := range blocks {
		if b%7 > 0 {
			continue
		}
		least := vector{Error: 256 * 256}
		for _, p := range places {
			if v := search(before, image, b, [][2]int{p}); v.Error < least.Error {
				least = v
			}
		}
		if v := search(before, image, b, places); v != least {
			t.Errorf("block %d: %+v; without abandoning %+v", b, v, least)
		}
	}
}

// TestWindow: each displacement is there once, and the nearest come first.
func TestWindow(t *testing.T) {
	for _, n := range []int{0, 1, 2, 9} {
		places := window(n)
		seen, last := map[[2]int]bool{}, 0
		for _, p := range places {
			ring := max(p[0], -p[0], p[1], -p[1])
			if seen[p] || ring < last {
				t.Errorf("%v comes twice, or after a farther one", p)
			}
			seen[p], last = true, ring
		}
		if len(places) != (2*n+1)*(2*n+1) || last != n {
			t.Errorf("%d: %d places up to %d", n, len(places), last)
		}
	}
}

// TestCheck: a vector that is wrong or missing is found.
func TestCheck(t *testing.T) {
	f := newFilm(1)
	images := [][]byte{f.image(0), f.image(1)}
	o := options{frames: 1, blocks: 100, mean: 1, places: window(1)}
	vectors := map[string][]vector{}
	for i := range blocks {
		id := part{Frame: 1, First: i - i%o.blocks}.id()
		vectors[id] = append(vectors[id], search(images[0], images[1], i, o.places))
	}
	digest, _, err := o.check(images, vectors)
	if err != nil || digest == "" {
		t.Fatal(err)
	}
	last := vectors["match/1/1600"] // Of 20 blocks.
	right := last[19]
	last[19].DX += 2
	want := fmt.Sprintf("block 1619 of image 1: the vectors %v of its task differ from %v of a sequential run", last, right)
	if _, _, err := o.check(images, vectors); err == nil || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
	vectors["match/1/1600"] = last[:19]
	if _, _, err := o.check(images, vectors); err == nil || err.Error() != "vectors: there are 1619 instead of 1620" {
		t.Error(err)
	}
	if _, err := o.match(t.Context(), part{1, 1600, 21}); err == nil || err.Error() != "21 blocks from 1600 of image 1: images have blocks from 0 to 1619, and numbers from 1" {
		t.Error(err)
	}
	if err := checkImages(images[0], images[1][1:]); err == nil || err.Error() != "images: they have 414720 and 414719 bytes instead of 414720" {
		t.Error(err)
	}
}

// TestFaults: the program refuses flags that make no sense.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-blocks", "1621"}, "blockmatch: -frames, -phase, -blocks, -window, -mean: give 1 to 1000 frames, at least one a phase, 1 to 1620 blocks, 0 to 255 pixels, and a time above 0\n"},
		{[]string{"-strategy", "best"}, "blockmatch: -strategy best: use one of diffusion, receiver, static\n"},
	} {
		out, err := testprogram.Command(t, c.args...).CombinedOutput()
		if err == nil || string(out) != c.want {
			t.Errorf("%v: %v: %s; want %s", c.args, err, out, c.want)
		}
	}
}
