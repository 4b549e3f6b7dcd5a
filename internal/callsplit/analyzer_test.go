package callsplit_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/gopegasus/pegasus/internal/callsplit"
)

// analyzer returns the analyzer with flags.
func analyzer(t *testing.T, flags ...string) *analysis.Analyzer {
	t.Helper()
	a := callsplit.New()
	if err := a.Flags.Parse(flags); err != nil {
		t.Fatal(err)
	}
	return a
}

const pair = "-calls=fixed/paired.Asker.Ask=fixed/paired.Asker.Start"

// TestFixes: each program of testdata/src/fixed gets the fix in its golden file.
func TestFixes(t *testing.T) {
	list := programs(t, "fixed")
	if len(list) < 20 {
		t.Errorf("%d programs", len(list))
	}
	analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), analyzer(t, pair), list...)
}

// TestLeftAlone: no program of testdata/src/alone gets a fix, as it would be wrong, and each says why.
func TestLeftAlone(t *testing.T) {
	list := programs(t, "alone")
	if len(list) < 5 {
		t.Errorf("%d programs", len(list))
	}
	for _, result := range analysistest.Run(t, analysistest.TestData(), analyzer(t, "-explain"), list...) {
		for _, d := range result.Action.Diagnostics {
			if len(d.SuggestedFixes) > 0 {
				t.Errorf("%s has a fix", result.Action)
			}
		}
	}
}

func programs(t *testing.T, group string) (list []string) {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join("testdata", "src", group, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		list = append(list, group+"/"+filepath.Base(dir))
	}
	return list
}

// run is what one run of a program comes to.
type run struct {
	Fail, Text string
	Calls      []string
	Now, Most  int
}

const mainHead = `package main

import (
	"context"
	"encoding/json"
	"os"

	"github.com/gopegasus/pegasus/work"
`

const mainBody = `
type run struct {
	Fail, Text string
	Calls      []string
	Now, Most  int
}

func try(fail string, f func(context.Context, *work.Space) (any, error)) run {
	s := &work.Space{Fail: fail, Made: map[string]bool{}}
	v, err := f(context.Background(), s)
	return run{fail, work.Text(v, err), s.Calls(), s.Now, s.Most}
}

func main() {
	out := map[string][]run{}
	for name, f := range all {
		first := try("", f)
		list := []run{first}
		for _, call := range first.Calls {
			list = append(list, try(call, f))
		}
		out[name] = list
	}
	_ = json.NewEncoder(os.Stdout).Encode(out)
}
`

// TestProgramsRunTheSame runs each program before and after its fix: with the same result, and sooner in virtual time. Then
// each call of the program fails in turn, and the result is the same as well.
func TestProgramsRunTheSame(t *testing.T) {
	list := programs(t, "fixed")
	before, after := runAll(t, list, false), runAll(t, list, true)
	for _, name := range list {
		b, a := before[name], after[name]
		if len(b) < 2 || len(a) != len(b) {
			t.Errorf("%s: %d runs before the fix, %d after it", name, len(b), len(a))
			continue
		}
		for i := range b {
			if a[i].Fail != b[i].Fail || a[i].Text != b[i].Text {
				t.Errorf("%s: %+v before the fix, %+v after it", name, b[i], a[i])
			}
		}
		if !strings.HasSuffix(b[0].Text, "<nil>") || fmt.Sprint(a[0].Calls) != fmt.Sprint(b[0].Calls) {
			t.Errorf("%s: %+v before the fix, %+v after it", name, b[0], a[0])
		}
		if sooner := a[0].Now < b[0].Now; !sooner && name != "fixed/between" || a[0].Most > 33 {
			t.Errorf("%s: it takes %d before the fix and %d after it, with %d open calls", name, b[0].Now, a[0].Now, a[0].Most)
		}
		t.Logf("%s: %d, %d after the fix; %d runs", name, b[0].Now, a[0].Now, len(b))
	}
}

// runAll builds one program of all, with their golden files if they are fixed, and runs it.
func runAll(t *testing.T, list []string, fixed bool) map[string][]run {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "src"), os.DirFS(filepath.Join("testdata", "src"))); err != nil {
		t.Fatal(err)
	}
	var imports strings.Builder
	var table strings.Builder
	table.WriteString("\nvar all = map[string]func(context.Context, *work.Space) (any, error){\n")
	for i, name := range list {
		fmt.Fprintf(&imports, "\tp%d %q\n", i, name)
		fmt.Fprintf(&table, "\t%q: p%d.Run,\n", name, i)
		if file := filepath.Join(dir, "src", name, filepath.Base(name)+".go"); fixed {
			if err := os.Rename(file+".golden", file); err != nil {
				t.Fatal(err)
			}
		}
	}
	source := mainHead + imports.String() + ")\n" + table.String() + "}\n" + mainBody
	if err := os.MkdirAll(filepath.Join(dir, "src", "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "src", "run", "main.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", "run")
	cmd.Env = append(os.Environ(), "GO111MODULE=off", "GOFLAGS=", "GOPATH="+dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	var runs map[string][]run
	if err := json.Unmarshal(out, &runs); err != nil {
		t.Fatal(err)
	}
	return runs
}

// TestFlags shows the faults of flags.
func TestFlags(t *testing.T) {
	for _, c := range []struct{ flag, want string }{
		{"-calls=a.F", `pair "a.F": give the function that waits and the function that starts, as PACKAGE.FUNC=PACKAGE.START`},
		{"-calls=a.F=b.G", `pair "a.F=b.G": its functions are of two packages or types: give two of the same one`},
		{"-bound=1", "the number of open calls must be between 2 and 1024"},
		{"-bound=1025", "the number of open calls must be between 2 and 1024"},
		{"-bound=many", "the number of open calls must be between 2 and 1024"},
	} {
		a := callsplit.New()
		a.Flags.Init("", flag.ContinueOnError)
		a.Flags.SetOutput(new(bytes.Buffer))
		if err := a.Flags.Parse([]string{c.flag}); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: %v", c.flag, err)
		}
	}
}
