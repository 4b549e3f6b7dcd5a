package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBalanceRecordAndReplay draws a run, writes it down, and gets the same table
// from the trace; the drawing is an SVG.
func TestBalanceRecordAndReplay(t *testing.T) {
	dir := t.TempDir()
	trace, svg := filepath.Join(dir, "run.jsonl"), filepath.Join(dir, "run.svg")
	code, drawn, stderr := execute(t, "balance", "sim", "--nodes", "5", "--groups", "3", "--record", trace, "--svg", svg)
	if code != exitOK || stderr != "" {
		t.Fatalf("exit %d, %s", code, stderr)
	}
	code, replayed, stderr := execute(t, "balance", "sim", "--trace", trace)
	if code != exitOK || stderr != "" || replayed != drawn {
		t.Errorf("exit %d, %s\n%sand replayed\n%s", code, stderr, drawn, replayed)
	}
	picture, err := os.ReadFile(svg)
	if err != nil || !strings.HasPrefix(string(picture), "<svg ") || !strings.Contains(string(picture), ">n5</text>") {
		t.Errorf("%v: %.200s", err, picture)
	}
}

// TestDocumentedPlan pastes the trace and the plans of docs/balance.md.
func TestDocumentedPlan(t *testing.T) {
	page, err := os.ReadFile("../../docs/balance.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```json\n")
	trace, rest, _ := strings.Cut(rest, "```\n")
	_, rest, _ = strings.Cut(rest, "```\n$ pegasus ")
	line, rest, _ := strings.Cut(rest, "\n")
	want, _, ok := strings.Cut(rest, "```\n")
	if !ok {
		t.Fatal("docs/balance.md has no example")
	}
	file := filepath.Join(t.TempDir(), "loads.jsonl")
	if err := os.WriteFile(file, []byte(trace), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := execute(t, strings.Fields(strings.Replace(line, "loads.jsonl", file, 1))...)
	if code != exitOK || stderr != "" || stdout != want {
		t.Errorf("exit %d, %s\n%s\nthe page has\n%s", code, stderr, stdout, want)
	}
}

// TestDocumentedTables checks that every command of docs/balance.md runs, with
// fewer seeds.
func TestDocumentedTables(t *testing.T) {
	page, err := os.ReadFile("../../docs/balance.md")
	if err != nil {
		t.Fatal(err)
	}
	number := 0
	for line := range strings.Lines(string(page)) {
		command, ok := strings.CutPrefix(line, "$ pegasus balance sim ")
		if !ok || strings.Contains(line, ".jsonl") || strings.Contains(line, ".yaml") {
			continue
		}
		number++
		args := append([]string{"balance", "sim"}, strings.Fields(command)...)
		args = append(args, "--seeds", "1", "--nodes", "3", "--tasks", "30") // The last of a flag counts.
		if code, _, stderr := execute(t, args...); code != exitOK {
			t.Errorf("%s: exit %d, %s", line, code, stderr)
		}
	}
	if number < 5 {
		t.Errorf("docs/balance.md has %d tables", number)
	}
}

// TestBalanceSimForeignNames explains moves of tasks whose names would move the cursor.
func TestBalanceSimForeignNames(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "run.jsonl")
	text := "{\"node\":\"a\\u001b[2J\",\"at\":0,\"power\":1}\n{\"node\":\"b\",\"at\":0,\"power\":2}\n" +
		"{\"task\":\"t1\",\"on\":\"a\\u001b[2J\",\"work\":3}\n{\"task\":\"t2\",\"on\":\"a\\u001b[2J\",\"work\":3}\n"
	if err := os.WriteFile(trace, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := execute(t, "balance", "sim", "--trace", trace, "--explain")
	if code != 0 || stderr != "" || strings.Contains(stdout, "\x1b") || !strings.Contains(stdout, "move t2 (3) from a\ufffd[2J to b: ") {
		t.Errorf("exit code %d\n%q\n%s", code, stdout, stderr)
	}
}
