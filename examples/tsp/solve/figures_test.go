package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/examples/tsp/bnb"
)

func TestMain(m *testing.M) {
	p, err := build()
	if err != nil {
		panic(err)
	}
	builder = func() (*program, error) {
		dir, err := os.MkdirTemp("", "tsp-solve-")
		return &program{dir: dir, exe: p.exe}, err
	}
	code := m.Run()
	if err := p.remove(); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// Figures as the command prints them. Whether the instance is hard enough for ratios to
// count depends on the machine.
func TestFigures(t *testing.T) {
	const n = `[0-9.]+`
	for show, cells := range map[string]string{
		"cost":  `random:70:2 +70 +6853000 \| +\d+( +` + n + `){3} \| +\d+( +` + n + `){3} \| +` + n + ` +` + n + ` \| (NOT|good)`,
		"speed": `random:70:2 +70 +6853000 \| +\d+( +` + n + `){3} \| +\d+( +` + n + `){3} \| +\d+ +` + n + ` +` + n + ` \| (NOT|good)`,
	} {
		var out, errs bytes.Buffer
		if code := run([]string{"-show", show, "-cap", "1h", "random:70:2"}, &out, &errs); code != exitGood {
			t.Fatalf("%s: exit code %d, %s", show, code, &errs)
		}
		if !regexp.MustCompile(`\n` + cells + `\n\nall as wanted: (NOT|good)\n$`).MatchString(out.String()) {
			t.Errorf("%s:\n%s", show, &out)
		}
	}
}

func TestControl(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"-show", "control", "-cap", "1h", "-most", "17", "-skip", "ulysses16,fri26"}, &out, &errs); code != exitGood {
		t.Fatalf("exit code %d, %s", code, &errs)
	}
	var rows strings.Builder
	for _, c := range []struct {
		name       string
		n, optimum int
	}{{"burma14", 14, 3323}, {"gr17", 17, 2085}} {
		fmt.Fprintf(&rows, `\n%-14s %5d %8d %8d %8d \| +\d+ +\d+\.\d{3}( +[0-9.]*[1-9][0-9.]*){2} +\d+ \| (NOT|good)`, c.name, c.n, c.optimum, c.optimum, c.optimum)
	}
	want := `^\w+/\w+, \d+ processors, go.+; best of 1, cap 1h0m0s; 2 processes x 1 thread .*\n\ninstance .*` + rows.String() + `\n\nall as wanted: (NOT|good)\n$`
	if !regexp.MustCompile(want).MatchString(out.String()) {
		t.Errorf("got\n%s", &out)
	}
}

// What is not proven within the cap is told, and an index that contradicts a
// proof refused.
func TestControlFails(t *testing.T) {
	dir := t.TempDir()
	for file, text := range map[string]string{
		"square.tsp": "NAME: square\nTYPE: TSP\nDIMENSION: 4\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n1 0 0\n2 0 5\n3 5 5\n4 5 0\nEOF\n",
		"INDEX.csv":  "name,optimum\nsquare,21\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	want := "solve: square: 20 is said to be optimal, published is 21: the index or the program is wrong\n"
	if code := run([]string{"-show", "control", "-cap", "1h", filepath.Join(dir, "square.tsp")}, &out, &errs); code != exitFailed || errs.String() != want {
		t.Errorf("exit code %d, %q", code, &errs)
	}
	out.Reset()
	if code := run([]string{"-show", "control", "-cap", "1s", "random:200:1"}, &out, &out); code != exitGood || !strings.Contains(out.String(), " | NOT\n\nall as wanted: NOT\n") {
		t.Errorf("exit code %d, %s", code, &out)
	}
	out.Reset()
	if code := run([]string{"-show", "cost", "-cap", "1h", "gr17"}, &out, &out); code != exitFailed || !strings.HasSuffix(out.String(), "solve: gr17: the first cut proves it: take a harder instance\n") {
		t.Errorf("exit code %d, %s", code, &out)
	}
	out.Reset()
	if code := run([]string{"-show", "cost", "-cap", "1ns", "kroA100"}, &out, &out); code != exitFailed || !strings.HasSuffix(out.String(), "solve: kroA100: not proven within the cap\n") {
		t.Errorf("exit code %d, %s", code, &out)
	}
}

func TestBuildOutsideTheModule(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, err := build(); err == nil || !strings.HasPrefix(err.Error(), "cannot build examples/tsp: exit status 1: run this inside the module, with go in the path\n") {
		t.Errorf("%v", err)
	}
}

// The verdicts, at the limits.
func TestVerdicts(t *testing.T) {
	for i, c := range []struct {
		x             comparison
		bare, control float64
		good          bool
	}{
		{cost, 3, 3.15, true},
		{cost, 3, 3.2, false},
		{cost, 2.9, 2.9, false},
		{speed, 3.7, 2, true},
		{speed, 3.6, 2, false},
		{speed, 2, 1, false},
	} {
		if good := c.x.good(bare{search: c.bare}, controlled{Search: c.control}); good != c.good {
			t.Errorf("%d: %+v is %s", i, c, verdict(good))
		}
	}
	for c, want := range map[controlled]bool{
		{Proven: true, whole: 5}:   true,
		{Proven: true, whole: 5.1}: false,
		{whole: 1}:                 false,
	} {
		if c.good() != want {
			t.Errorf("%+v is %s", c, verdict(!want))
		}
	}
}

// All begin with a tour that is as good as a short look finds, or better.
func TestLongLook(t *testing.T) {
	list, err := gather([]string{"eil51"}, 229, "")
	if err != nil {
		t.Fatal(err)
	}
	tour := longLook(list[0], options{seed: 1})
	if err := bnb.Verify(list[0].in, tour, 426); err != nil {
		t.Error(err)
	}
	if got := numbered([]int{2, 0, 1}); got != "3\n1\n2\n" {
		t.Errorf("%q", got)
	}
}
