package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestProofs(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"-runs", "2", "gr17", "random:5:1", "burma14"}, &out, &errs); code != exitGood {
		t.Fatalf("exit code %d, %s", code, &errs)
	}
	want := regexp.MustCompile(`^\w+/\w+, \d+ processors, go.+; best of 2, cap 1m0s; one thread, processor seconds

instance           n  optimum   length    bound    nodes   seconds
random:5:1         5        \?  +(\d+)  +(\d+)  +\d+  +\d+\.\d{3}
burma14           14     3323     3323     3323        0  +\d+\.\d{3}
gr17              17     2085     2085     2085        0  +\d+\.\d{3}

proven within 0.1s: \d, 1s: \d, 10s: \d, 60s: 3, of 3
$`)
	if m := want.FindStringSubmatch(out.String()); m == nil || m[1] != m[2] {
		t.Errorf("got\n%s", &out)
	}
}

func TestWhatIsNotProvenDoesNotCount(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"-cap", "1ns", "kroA100"}, &out, &errs); code != exitGood {
		t.Fatalf("exit code %d, %s", code, &errs)
	}
	if s := out.String(); !strings.Contains(s, " >1e-09\n") || !strings.Contains(s, "0.1s: 0, 1s: 0, 10s: 0, 60s: 0, of 1\n") {
		t.Errorf("got\n%s", s)
	}
}

func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	solve := func(args ...string) (stdout, stderr string) {
		var out, errs bytes.Buffer
		if code := run(append(args, dir), &out, &errs); (code == exitGood) != (errs.Len() == 0) {
			t.Errorf("exit code %d with error %q", code, &errs)
		}
		return out.String(), errs.String()
	}
	if _, err := solve(); err != "solve: no file *.tsp in "+dir+": name a directory of TSPLIB files\n" {
		t.Errorf("empty directory: %q", err)
	}
	write("square.tsp", "NAME: square\nTYPE: TSP\nDIMENSION: 4\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n1 0 0\n2 0 5\n3 5 5\n4 5 0\nEOF\n")
	if out, _ := solve(); !strings.Contains(out, "\nsquare             4        ?       20 ") {
		t.Errorf("without an index:\n%s", out)
	}
	if out, err := solve("-most", "3", "-skip", "x"); out != "" || err != "solve: nothing is left: -most 3 and -skip \"x\" leave every instance out\n" {
		t.Errorf("with a limit of 3 cities: %q\n%s", err, out)
	}
	index := filepath.Join(dir, "INDEX.csv")
	for text, want := range map[string]string{
		"name,optimum\nsquare,21\n": "solve: square: a tour of 20 and a bound of 20 contradict the published optimum 21: the index or the solver is wrong\n",
		"name,optimum\nsquare,x\n":  "solve: " + index + ": line 2: optimum \"x\" is no whole number\n",
		"name,best\nsquare,20\n":    "solve: " + index + ": line 1: columns name and optimum are needed\n",
		"name,optimum\nsquare\n":    "solve: cannot read " + index + ": record on line 2: wrong number of fields\n",
		"":                          "solve: " + index + ": line 1: columns name and optimum are needed\n",
		"name,optimum\nsquare,20\n": "",
	} {
		write("INDEX.csv", text)
		if out, err := solve(); err != want || want == "" && !strings.Contains(out, "\nsquare             4       20       20 ") {
			t.Errorf("index %q: error %q, want %q\n%s", text, err, want, out)
		}
	}
}

func TestWrongUsage(t *testing.T) {
	for args, want := range map[string]string{
		"-show all":    `-show "all": use proofs, cost, speed or control`,
		"-cap 0s":      "-cap 0s: use a time above 0, such as 60s",
		"-most 0":      "-most 0: use a number of cities from 1",
		"-runs 0":      "-runs 0: use a number from 1",
		"gr17 -runs 2": "-runs stands behind an instance: put flags first",
		"-frob":        "flag provided but not defined: -frob",
	} {
		var out, errs bytes.Buffer
		if code := run(strings.Fields(args), &out, &errs); code != exitUsage || errs.String() != "solve: "+want+"\n"+usage || out.Len() > 0 {
			t.Errorf("%s: exit code %d, %q", args, code, &errs)
		}
	}
	var out, errs bytes.Buffer
	if code := run([]string{"-h"}, &out, &errs); code != exitGood || out.String() != usage {
		t.Errorf("-h: exit code %d, %q", code, &out)
	}
	if code := run([]string{"nowhere"}, &out, &errs); code != exitFailed || !strings.HasPrefix(errs.String(), `solve: tsplib: no instance "nowhere"`) {
		t.Errorf("exit code %d, %q", code, &errs)
	}
}
