package balancesim

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/internal/draw"
)

// TestTraceRoundTrip writes an instance and reads it back.
func TestTraceRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Default()
		s.Seed = rapid.Uint64().Draw(t, "seed")
		s.Nodes.Count, s.Tasks.Count = rapid.IntRange(1, 9).Draw(t, "nodes"), rapid.IntRange(0, 40).Draw(t, "tasks")
		s.Tasks.Arrive, s.Tasks.Error = s.Changes.Every, 0.5
		s.Tasks.Groups, s.Tasks.Traffic = 3, 1000
		in := Generate(&s)
		var text bytes.Buffer
		if err := in.WriteTrace(&text); err != nil {
			t.Fatal(err)
		}
		got, err := ReadTrace("x", &text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(in, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestInputs shows what becomes of traces and scenarios.
func TestInputs(t *testing.T) {
	datadriven.Walk(t, filepath.Join("testdata", "inputs"), func(t *testing.T, path string) {
		t.Helper()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			switch d.Cmd {
			case "trace":
				in, err := ReadTrace("run.jsonl", strings.NewReader(d.Input))
				if err != nil {
					return err.Error() + "\n"
				}
				var b strings.Builder
				if err := in.WriteTrace(&b); err != nil {
					return err.Error() + "\n"
				}
				return b.String()
			case "scenario":
				if _, err := Parse("scenario.yaml", []byte(d.Input)); err != nil {
					return err.Error() + "\n"
				}
				return "ok\n"
			case "svg":
				in, err := ReadTrace("run.jsonl", strings.NewReader(d.Input))
				if err != nil {
					return err.Error() + "\n"
				}
				s := Default()
				set := Settings{Scenario: &s}
				set.Spans = true
				r, err := Run(in, set)
				if err != nil {
					return err.Error() + "\n"
				}
				svg := r.SVG(in.Nodes)
				if faults, err := draw.Overlaps(svg); err != nil || len(faults) > 0 {
					t.Errorf("%v %q", err, faults)
				}
				return svg
			}
			d.Fatalf(t, "unknown command %s", d.Cmd)
			return ""
		})
	})
}

// TestLongLine has a line beyond the limit.
func TestLongLine(t *testing.T) {
	_, err := ReadTrace("run.jsonl", strings.NewReader("\n"+strings.Repeat("x", maxLine+1)))
	if err == nil || err.Error() != "run.jsonl:2: the line is longer than 4096 bytes" {
		t.Error(err)
	}
}

// FuzzReadTrace runs what it can read.
func FuzzReadTrace(f *testing.F) {
	f.Add([]byte(`{"node":"a","at":0,"power":1}` + "\n" + `{"task":"t","on":"a","work":2}` + "\n" + `{"task":"u","at":1,"on":"a","work":2,"weight":0}` + "\n" + `{"from":"t","to":"u","bytes":5}`))
	f.Add([]byte(`{"node":"a","at":1,"power":0}` + "\n" + `{"task":"t","on":"a","work":1e12}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		in, err := ReadTrace("x", bytes.NewReader(data))
		if err != nil || len(in.Nodes) > 8 || len(in.Tasks) > 16 {
			return
		}
		s := Default()
		s.Plans.Every = maxTime / 10
		r, err := Run(in, Settings{Scenario: &s})
		if err != nil || r.Unfinished == 0 && r.Time < r.Bound*(1-1e-9)-1e-6 {
			t.Fatalf("%+v, %v", r, err)
		}
	})
}

// FuzzParse reads scenarios; one without an error has no faults.
func FuzzParse(f *testing.F) {
	f.Add([]byte("nodes: {powers: [1, 2]}\ntasks: {count: 3}\nbalance: {alpha: 2}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if s, err := Parse("x", data); err == nil && len(s.Faults()) > 0 {
			t.Fatal(s.Faults())
		}
	})
}

// TestDocumentedScenario reads the file of docs/balance.md, which says that its
// values are the defaults.
func TestDocumentedScenario(t *testing.T) {
	page, err := os.ReadFile("../../docs/balance.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	text, _, ok := strings.Cut(rest, "```\n")
	if !ok {
		t.Fatal("docs/balance.md has no scenario")
	}
	s, err := Parse("docs/balance.md", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Default(), s); diff != "" {
		t.Error(diff)
	}
}
