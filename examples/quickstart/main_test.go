package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestQuickstart builds the program as a user would, runs it and reads its
// verdict.
func TestQuickstart(t *testing.T) {
	program := filepath.Join(t.TempDir(), "quickstart.exe")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), program).CombinedOutput()
	if err != nil {
		t.Fatalf("quickstart: %v\n%s", err, out)
	}
	for _, line := range []string{
		"w1: best 10, cancelled by all-idle", "w2: best 10, cancelled by all-idle", "w3: best 10, cancelled by all-idle",
		"ok: at one instant all three knew the best result and were idle",
	} {
		if !strings.Contains(string(out), line+"\n") {
			t.Errorf("the line %q is missing in\n%s", line, out)
		}
	}
}

// TestReadmeShowsQuickstart keeps the README's first code block equal to the
// program, and the program short.
func TestReadmeShowsQuickstart(t *testing.T) {
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(program, []byte("\n")); lines >= 80 {
		t.Errorf("main.go has %d lines, a first program has fewer than 80", lines)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(readme), "```go\n")
	block, _, closed := strings.Cut(rest, "```\n")
	if !ok || !closed || block != string(program) {
		t.Error("the first Go block of README.md is not examples/quickstart/main.go: copy it there")
	}
}

// TestModuleOfYourOwn does the steps of the README in another module, as far as they need no network and
// compile nothing again: with the replace, Go finds every package that the program is built from.
func TestModuleOfYourOwn(t *testing.T) {
	clone, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, steps, _ := strings.Cut(string(readme), "\n## In a module of your own\n")
	steps, _, _ = strings.Cut(steps, "\n## ")
	mine, did := t.TempDir(), 0
	for line := range strings.Lines(steps) {
		words := strings.Fields(strings.ReplaceAll(line, "../pegasus", clone))
		switch {
		case len(words) > 2 && words[0] == "cp":
			copyInto(t, mine, words[1])
			copyInto(t, mine, filepath.Join(clone, "go.sum")) // As "go mod tidy" leaves it, and more.
		case len(words) > 2 && words[0] == "go" && words[1] == "mod" && words[2] != "tidy":
			outside(t, mine, words[1:]...)
		default:
			continue
		}
		did++
	}
	if did != 3 {
		t.Fatalf("%d steps are known of\n%s", did, steps)
	}
	if deps := outside(t, mine, "list", "-mod=mod", "-deps", "."); !strings.Contains(deps, "github.com/gopegasus/pegasus/synchronizer\n") {
		t.Errorf("the program is built from\n%s", deps)
	}
}

// copyInto copies a file into a directory.
func copyInto(t *testing.T, dir, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, filepath.Base(file)), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// outside runs the go command in a directory outside of this module.
func outside(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
