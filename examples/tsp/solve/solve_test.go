package main

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/examples/tsp/bnb"
	"github.com/gopegasus/pegasus/examples/tsp/tsplib"
)

func TestProofs(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"-runs", "2", "gr17", "random:5:1", "burma14"}, &out, &errs); code != exitGood {
		t.Fatalf("exit code %d, %s", code, &errs)
	}
	want := regexp.MustCompile(`^.+, \d+ processors, \w+/\w+, go.+; one thread, processor seconds, best of 2, cap 1m0s

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

func TestProofsInJSON(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"-json", "gr17"}, &out, &errs); code != exitGood {
		t.Fatalf("exit code %d, %s", code, &errs)
	}
	want := `^{"machine":"[^"]+","rows":\[{"instance":"gr17","n":17,"optimum":2085,"length":2085,"lower_bound":2085,"proven":true,"nodes":0,"processor_seconds":[0-9.e-]+}\],"runs":1,"show":"proofs"}\n$`
	if !regexp.MustCompile(want).MatchString(out.String()) {
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
		"-show all":         `-show "all": use proofs, pairs, estimates, cost, speed, control or peers`,
		"-show pairs -json": "-json does not go with -show pairs: leave it out",
		"-cap 0s":           "-cap 0s: use a time above 0, such as 60s",
		"-most 0":           "-most 0: use a number of cities from 1",
		"-runs 0":           "-runs 0: use a number from 1",
		"gr17 -json":        "-json stands behind an instance: put flags first",
		"-frob":             "flag provided but not defined: -frob",
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

func TestSpearman(t *testing.T) {
	for _, c := range []struct {
		x, y []float64
		want float64
	}{
		{[]float64{1, 2, 3, 4}, []float64{10, 200, 3000, 40000}, 1},
		{[]float64{1, 2, 3, 4}, []float64{4, 3, 2, 1}, -1},
		{[]float64{1, 2, 3}, []float64{2, 1, 3}, 0.5},
		{[]float64{1, 2, 2, 3}, []float64{1, 2, 3, 4}, 4.5 / math.Sqrt(4.5*5)}, // by hand, ranks 0 1.5 1.5 3
	} {
		if got := spearman(c.x, c.y); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v and %v: %g, want %g", c.x, c.y, got, c.want)
		}
	}
	if got := shown([]float64{1, 2}, []float64{3, 3}); got != "equal" {
		t.Errorf("a constant correlates: %s", got)
	}
}

// The gap tells the work in subtasks; the number of full tours does not, as the
// counts of nodes, which are the same on every machine, show.
func TestGapRanksTheWorkAndLeavesDoNot(t *testing.T) {
	for _, c := range []struct {
		spec string
		kind bnb.Kind
	}{{"random:80:9", bnb.Edges}, {"random:100:1", bnb.Prefix}, {"st70", bnb.Prefix}} {
		list, err := gather([]string{c.spec}, 229, "")
		if err != nil {
			t.Fatal(err)
		}
		r, err := rank(list[0], c.kind, options{seed: 1, limit: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		gap, leaves := spearman(r.nodes, r.gap), spearman(r.nodes, r.leaves)
		t.Logf("%s, %v: %d parts, gap %.2f, leaves %.2f", c.spec, c.kind, len(r.nodes), gap, leaves)
		if len(r.nodes) < estimateParts || math.IsNaN(gap) || gap < 0.6 || gap < leaves+0.3 {
			t.Errorf("%s, %v: %d parts, correlation %.2f of the gap, %.2f of the leaves", c.spec, c.kind, len(r.nodes), gap, leaves)
		}
	}
}

func TestEstimates(t *testing.T) {
	var out bytes.Buffer
	if code := run([]string{"-show", "estimates", "gr17", "st70"}, &out, &out); code != exitGood {
		t.Fatalf("exit code %d, %s", code, &out)
	}
	if s := out.String(); !strings.Contains(s, "\ngr17           edges   falls into 0 parts only\n") || !regexp.MustCompile(`\nst70           prefix +3\d +1 `).MatchString(s) {
		t.Errorf("got\n%s", s)
	}
}

// However goroutines share a search, they find and prove the same length.
func TestTogether(t *testing.T) {
	p := problem(t, "random:70:2")
	for _, how := range []plan{{1, true}, {2, true}, {4, true}, {2, false}, {1, false}} {
		r, err := together(p, how, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if r.length != p.Length() || r.nodes == 0 || r.busy <= 0 {
			t.Errorf("%+v: %+v", how, r)
		}
		if r.given > 0 && (how.workers == 1 || !how.donate) {
			t.Errorf("%+v: %d subtasks given to nobody", how, r.given)
		}
	}
}

func TestTogetherEndsWhenItIsLate(t *testing.T) {
	p := problem(t, "random:70:2")
	for _, how := range []plan{{1, true}, {3, true}, {2, false}} {
		if r, err := together(p, how, 0); !errors.Is(err, errLate) {
			t.Errorf("%+v: %+v, %v", how, r, err)
		}
	}
}

func TestPairs(t *testing.T) {
	var out bytes.Buffer
	if code := run([]string{"-show", "pairs", "st70"}, &out, &out); code != exitGood || !regexp.MustCompile(`\nst70              70 +[0-9. |]+\n$`).MatchString(out.String()) {
		t.Errorf("exit code %d, %s", code, &out)
	}
}

func problem(tb testing.TB, spec string) *bnb.Problem {
	tb.Helper()
	in, err := tsplib.Load(spec)
	if err != nil {
		tb.Fatal(err)
	}
	p, err := bnb.Prepare(in, bnb.Options{Seed: 1})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// BenchmarkPairs measures the speed-up of two goroutines over one, in turn.
func BenchmarkPairs(b *testing.B) {
	for _, spec := range []string{"kroA100", "random:150:1"} {
		b.Run("instance="+spec, func(b *testing.B) {
			p := problem(b, spec)
			var one, two searched
			for b.Loop() {
				for _, leg := range []struct {
					workers int
					least   *searched
				}{{1, &one}, {2, &two}} {
					r, err := together(p, plan{leg.workers, true}, time.Hour)
					if err != nil {
						b.Fatal(err)
					}
					if leg.least.took == 0 || r.took < leg.least.took {
						*leg.least = r
					}
				}
			}
			b.ReportMetric(speedUp(one, two), "speed-up")
			b.ReportMetric(undisturbed(one, two), "undisturbed")
		})
	}
}
