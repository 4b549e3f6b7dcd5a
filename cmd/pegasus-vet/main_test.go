package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// command runs a command in a directory, and returns its output and error output.
func command(t *testing.T, dir, name string, args ...string) (text string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// build builds a program and returns its path.
func build(t *testing.T, dir, pkg string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program.exe")
	if out, err := command(t, dir, "go", "build", "-o", path, pkg); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// TestOwnExamples runs the analyzer on the examples by go vet. They wait late already: there is nothing to find.
func TestOwnExamples(t *testing.T) {
	vet := build(t, ".", ".")
	if out, err := command(t, root, "go", "vet", "-vettool="+vet, "./examples/..."); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	out, err := command(t, root, "go", "vet", "-vettool="+vet, "-bound=8", "./cmd/pegasus-vet/testdata/assembly")
	if err == nil || !strings.Contains(out, "main.go:50:15: loop of calls that wait at once: cut.Go, weld.Go, paint.Go: keep up to 8 of them open") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestExplain: with -v the command names each call that it leaves alone, and why, with its position.
func TestExplain(t *testing.T) {
	vet := build(t, ".", ".")
	dir := module(t, []byte(`package main

import (
	"context"

	"github.com/gopegasus/pegasus/work"
)

func main() {}

func once(ctx context.Context, c *work.Calls[int, int]) (int, error) {
	return c.Go(ctx, 1).Wait(ctx)
}
`))
	if out, err := command(t, dir, vet, "./..."); err != nil || out != "" {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := command(t, dir, vet, "-v", "./..."); err == nil || !strings.HasSuffix(strings.TrimSpace(out), "main.go:12:9: call of c.Go: left alone: nothing runs beside it") {
		t.Errorf("%v: %s", err, out)
	}
}

// module makes a module with one file that uses this one.
func module(t *testing.T, source []byte) string {
	t.Helper()
	dir := t.TempDir()
	above, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	mod = regexp.MustCompile(`(?m)^module .*$`).ReplaceAll(mod, []byte("module example.com/assembly"))
	mod = append(mod, "\nrequire github.com/gopegasus/pegasus v0.0.0\n\nreplace github.com/gopegasus/pegasus => "+filepath.ToSlash(above)+"\n"...)
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"go.mod": mod, "go.sum": sum, "main.go": source} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestAssemblyFaster: the fix alone makes the synchronous form of examples/assembly at least 1.8 times as fast, with the
// same result. Both run under the same configuration.
func TestAssemblyFaster(t *testing.T) {
	source, err := os.ReadFile(filepath.Join("testdata", "assembly", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join("testdata", "assembly", "main.go.golden"))
	if err != nil {
		t.Fatal(err)
	}
	dir := module(t, source)
	before := build(t, dir, ".")
	if out, err := command(t, dir, build(t, ".", "."), "-fix", "./..."); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	fixed, err := os.ReadFile(filepath.Join(dir, "main.go"))
	if err != nil || !bytes.Equal(fixed, want) {
		t.Fatalf("%v: the fixed program differs from main.go.golden: %s", err, fixed)
	}
	slow, fast := measure(t, before), measure(t, build(t, dir, "."))
	t.Logf("%.2f s before the fix, %.2f s after it", slow.Seconds, fast.Seconds)
	if slow.Result == "" || fast.Result != slow.Result || slow.Seconds < 1.8*fast.Seconds {
		t.Errorf("%+v before the fix, %+v after it", slow, fast)
	}
}

// measured is what a run of the example prints.
type measured struct {
	Seconds float64
	Result  string
}

func measure(t *testing.T, program string) (m measured) {
	t.Helper()
	out, err := command(t, t.TempDir(), program, "-parts", "60", "-json")
	if err != nil || json.Unmarshal([]byte(out), &m) != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return m
}
