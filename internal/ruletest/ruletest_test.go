package ruletest_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"github.com/gopegasus/pegasus/internal/ruletest"
	"github.com/gopegasus/pegasus/internal/yamlconf"
)

// parse reads a file of tests whose configuration is in testdata.
func parse(src string) (*ruletest.File, error) {
	return ruletest.Parse("t.yaml", []byte(src), func(path string) (string, []byte, error) {
		src, err := os.ReadFile(filepath.Join("testdata", "configs", path))
		if err != nil {
			return path, nil, errors.New("no such file")
		}
		return path, src, nil
	})
}

// TestRuns runs the tests of testdata/runs and shows what they tell: "test" the
// failures, "log" everything.
func TestRuns(t *testing.T) {
	datadriven.Walk(t, "testdata/runs", func(t *testing.T, path string) {
		t.Helper()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			f, err := parse(d.Input)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			var b strings.Builder
			for _, test := range f.Tests {
				r := test.Run()
				fmt.Fprintf(&b, "%s: ok=%t seed=%d\n", test.Name, r.OK(), r.Seed)
				for i := range r.Failures {
					b.WriteString(r.Failures[i].String())
				}
				if d.Cmd == "log" {
					b.WriteString(strings.Join(r.Log, "\n") + "\n")
				}
			}
			return b.String()
		})
	})
}

// TestFaults shows the faults of the files of testdata/faults.
func TestFaults(t *testing.T) {
	datadriven.Walk(t, "testdata/faults", func(t *testing.T, path string) {
		t.Helper()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			src := d.Input
			if d.Cmd == "body" { // of one test of two members
				src = "config: two.yaml\ntests:\n- name: a\n" + indent(d.Input)
			}
			if d.Cmd == "threads" {
				src = "config: levels.yaml\ntests:\n- name: a\n  synchronizer: tsync\n" + indent(d.Input)
			}
			_, err := parse(src)
			if err == nil {
				return "no fault\n"
			}
			return err.Error() + "\n"
		})
	})
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(text, "\n", "\n  ") + "\n"
}

// lossy is a test whose run hangs on chance.
const lossy = `
config: two.yaml
tests:
  - name: lossy
    seeds: 5
    network: {loss: 0.2, delay: 3ms, windows: [{from: 1s, to: 1.5s, members: [w2]}]}
    initial: phase=search load=0
    members:
      w1..w2: {skew: 2ms, states: 0s load=0+1x20 every 100ms | 3s phase=idle}
    expect:
      - {predicate: all-idle, at: 12s, truth: true}
`

// TestSame runs a test twice and wants the same to happen.
func TestSame(t *testing.T) {
	f, err := parse(lossy)
	if err != nil {
		t.Fatal(err)
	}
	first, second := f.Tests[0].Run(), f.Tests[0].Run()
	if len(first.Log) < 5 || !first.OK() {
		t.Fatalf("%v, %v", first.Failures, first.Log)
	}
	if d := cmp.Diff(first.Log, second.Log); d != "" {
		t.Error(d)
	}
	if len(f.Tests) != 1 || first.Seed != 5 {
		t.Errorf("the last seed was %d, want 5", first.Seed)
	}
}

// FuzzParse wants each text to be a file of tests that can be run, or to be
// refused with places.
func FuzzParse(f *testing.F) {
	f.Add(lossy)
	for _, dir := range []string{"runs", "faults"} {
		files, err := filepath.Glob(filepath.Join("testdata", dir, "*"))
		if err != nil || len(files) == 0 {
			f.Fatalf("%d files, %v", len(files), err)
		}
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			for block := range strings.SplitSeq(string(src), "----") {
				if i := strings.Index(block, "config:"); i >= 0 {
					f.Add(block[i:])
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, src string) {
		file, err := parse(src)
		if err == nil {
			for _, test := range file.Tests {
				if test.Small() {
					test.First().Run()
				}
			}
			return
		}
		e, ok := errors.AsType[*yamlconf.Error](err)
		if !ok || len(e.Faults) == 0 {
			t.Fatalf("%q: %T without faults: %v", src, err, err)
		}
		for _, fault := range e.Faults {
			if fault.Line < 1 || fault.Column < 1 || fault.Message == "" {
				t.Fatalf("%q: a fault without a place: %+v", src, fault)
			}
		}
	})
}

// BenchmarkRun runs a minute of members that change their states ten times a
// second.
func BenchmarkRun(b *testing.B) {
	for _, n := range []int{2, 10, 100} {
		b.Run(fmt.Sprintf("members=%d", n), func(b *testing.B) {
			f, err := parse(fmt.Sprintf(`
config: two.yaml
tests:
  - name: a minute
    initial: phase=search load=0
    members: {w1..w%d: "0s load=0+1x600 every 100ms"}
    expect: [{never: all-idle}]
`, n))
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if r := f.Tests[0].Run(); !r.OK() {
					b.Fatal(r.Failures)
				}
			}
		})
	}
}
