package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/examples/tsp/tsplib"
)

func TestReadTour(t *testing.T) {
	in, err := tsplib.Load("random:4:1")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "tour")
	for text, want := range map[string]string{
		"tour 2 1 4 3\n": "",
		"2\n1\n4\n3\n":   "",
		"1 2 3":          "-tour: " + file + " has 3 cities, the instance has 4 cities",
		"":               "-tour: " + file + " has 0 cities, the instance has 4 cities",
		"1 2 x 4":        "-tour: " + file + `: city 3 is "x": use the numbers from 1 to 4, each once`,
		"0 1 2 3":        "-tour: " + file + `: city 1 is "0": use the numbers from 1 to 4, each once`,
		"1 2 3 2":        "-tour: " + file + `: city 4 is "2": use the numbers from 1 to 4, each once`,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		tour, err := readTour(file, in)
		if want == "" && (err != nil || !slices.Equal(tour, []int{1, 0, 3, 2})) || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%q: %v, %v, want %s", text, tour, err, want)
		}
	}
	if tour, err := readTour("", in); tour != nil || err != nil {
		t.Errorf("without a file: %v, %v", tour, err)
	}
	if _, err := readTour(file+"s", in); err == nil || !strings.HasPrefix(err.Error(), "-tour: open ") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestTourGiven: a run begins with the tour of another one, which nothing in it
// can beat.
func TestTourGiven(t *testing.T) {
	p := begin(t, "-instance", "kroA100", "-processes", "1", "-threads", "1")
	if code := p.end(t); code != exitGood {
		t.Fatalf("exit code %d: %s", code, p.stderr)
	}
	var line string
	for l := range strings.Lines(p.stdout.String()) {
		if strings.HasPrefix(l, "tour ") {
			line = l
		}
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "tour")
	if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	p = begin(t, "-instance", "kroA100", "-processes", "2", "-threads", "1", "-tour", file, "-json", "-journal", dir)
	code, r := p.finish(t)
	checkProven(t, code, r, "kroA100", 21282)
	if r.Nodes == 0 || r.Search <= 0 || r.Busy <= 0 {
		t.Errorf("%+v", r)
	}
	files, err := filepath.Glob(filepath.Join(dir, "tsp-*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("journal files %v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(data), `"event":"best"`); n != 1 || !strings.Contains(string(data), `"from":"coordinator","length":21282}`) {
		t.Errorf("%d best tours:\n%s", n, data)
	}
}
