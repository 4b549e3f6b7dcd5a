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
