package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/examples/tsp/bnb"
	"github.com/gopegasus/pegasus/internal/testwait"
)

func TestMain(m *testing.M) {
	p, err := build()
	if err != nil {
		panic(err)
	}
	builder = func() (*program, error) { return &program{exe: p.exe}, nil }
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
		"speed": `random:70:2 +70 +6853000 \| +\d+( +` + n + `){3} \| +\d+( +` + n + `){3} +\d+ +` + n + ` +` + n + ` \| +` + n + ` +` + n + ` \| (NOT|good)`,
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
	if code := run([]string{"-show", "control", "-cap", "1h", "-most", "17", "-skip", "ulysses16,fri26", "-json"}, &out, &errs); code != exitGood {
		t.Fatalf("exit code %d, %s", code, &errs)
	}
	var f figure[*controlRow]
	d := json.NewDecoder(&out)
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range f.Rows {
		names = append(names, r.Instance)
		if c := r.Control; !c.Proven || c.Length != r.Optimum || c.LowerBound != r.Optimum || c.Whole <= 0 || c.Processor <= 0 {
			t.Errorf("%+v", r)
		}
	}
	if !slices.Equal(names, []string{"burma14", "gr17"}) || f.Show != "control" || f.Runs != 1 {
		t.Errorf("%+v", f)
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
	at := func(bare, control float64) sides {
		var s sides
		s.Bare.Search, s.Control.Search = bare, control
		return s
	}
	for i, c := range []struct {
		row  row
		good bool
	}{
		{&costRow{at(3, 3.15), 1.05, 2}, true},
		{&costRow{at(3, 3.2), 1.06, 1}, false},
		{&costRow{at(2.9, 2.9), 1, 1}, false},
		{&speedRow{sides: at(3.7, 2), SpeedUp: 1.85}, true},
		{&speedRow{sides: at(3.6, 2), SpeedUp: 1.8}, false},
		{&speedRow{sides: at(2, 1), SpeedUp: 2}, false},
		{&controlRow{Control: controlled{Proven: true, Whole: 5}}, true},
		{&controlRow{Control: controlled{Proven: true, Whole: 5.1}}, false},
		{&controlRow{Control: controlled{Whole: 1}}, false},
		{&peerRow{sides: at(4, 2.1), Peers: []peerShare{{bare: bare{Search: 3}}, {bare: bare{Search: 2}}}}, true},
		{&peerRow{sides: at(4, 2.2), Peers: []peerShare{{bare: bare{Search: 3}}, {bare: bare{Search: 2}}}}, false},
	} {
		if c.row.good() != c.good {
			t.Errorf("%d: %+v is %s", i, c.row, verdict(!c.good))
		}
	}
}

// Each peer hands every part out once, to two at a time, and proves the optimum.
func TestPeers(t *testing.T) {
	parts := make([][]byte, 20)
	for i := range parts {
		parts[i] = []byte{byte(i)}
	}
	for _, p := range peers {
		t.Run(p.name, func(t *testing.T) {
			var mu sync.Mutex
			var got []byte
			now, most := 0, 0
			if err := p.run(parts, func(part []byte) error {
				mu.Lock()
				now++
				most = max(most, now)
				got = append(got, part...)
				mu.Unlock()
				testwait.Elapse(time.Millisecond) // Room for one more than allowed.
				mu.Lock()
				defer mu.Unlock()
				now--
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			slices.Sort(got)
			if !bytes.Equal(got, slices.Concat(parts...)) || most > peerWorkers {
				t.Errorf("%d at a time, parts %v", most, got)
			}
			if err := p.run(parts, func([]byte) error { return errLate }); err == nil || !strings.Contains(err.Error(), errLate.Error()) {
				t.Errorf("a search that fails: %v", err)
			}
			list, err := gather([]string{"random:70:2"}, 229, "")
			if err != nil {
				t.Fatal(err)
			}
			tour := longLook(list[0], options{seed: 1})
			length := list[0].in.TourLength(tour)
			r, err := p.share(list[0], tour, 4, length, options{limit: time.Hour})
			if err != nil || r.Nodes == 0 || r.Search <= 0 || r.Search > r.Whole || r.Busy <= 0 {
				t.Errorf("%+v, %v", r, err)
			}
			if _, err := p.share(list[0], tour, 1000, length, options{limit: time.Hour}); err == nil || err.Error() != "cutting it into 1000 parts proves it: take a harder instance" {
				t.Errorf("more parts than there are nodes: %v", err)
			}
		})
	}
}

func TestPeerLines(t *testing.T) {
	r := &peerRow{sides{"square", 4, 20, bare{Search: 4, Busy: 4, Nodes: 9, Whole: 5, Processor: 4.5}, controlled{Search: 2, Busy: 3.8, Nodes: 10, Whole: 2.5, Processor: 5}}, []peerShare{
		{"errgroup", 8, bare{Search: 2.5, Busy: 4, Nodes: 11, Whole: 3, Processor: 4.25}},
	}}
	want := `square             4       20 bare                  9    4.000    5.000    4.500   1.00     1.00
square             4       20 errgroup, 8          11    2.500    3.000    4.250   1.60     1.60
square             4       20 control              10    2.000    2.500    5.000   1.90     2.00`
	if got := r.cells(); got != want {
		t.Errorf("got\n%s", got)
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
