package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocumentedTrace pastes the example of docs/traces.md.
func TestDocumentedTrace(t *testing.T) {
	page, err := os.ReadFile("../../docs/traces.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```json\n")
	trace, rest, _ := strings.Cut(rest, "```\n")
	_, rest, _ = strings.Cut(rest, "```\n")
	session, _, ok := strings.Cut(rest, "```\n")
	if !ok {
		t.Fatal("docs/traces.md has no example")
	}
	file := filepath.Join(t.TempDir(), "trace.jsonl")
	if err := os.WriteFile(file, []byte(trace), 0o600); err != nil {
		t.Fatal(err)
	}
	for command := range strings.SplitSeq(strings.TrimPrefix(session, "$ pegasus "), "$ pegasus ") {
		line, want, _ := strings.Cut(command, "\n")
		code, stdout, stderr := execute(t, words(strings.Replace(line, "trace.jsonl", file, 1))...)
		if code != exitOK || stdout != want || stderr != "" {
			t.Errorf("pegasus %s: exit %d\n%s%s\nthe page has\n%s", line, code, stdout, stderr, want)
		}
	}
}

// words splits a command line at spaces that are not between single quotes.
func words(line string) (list []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			list = append(list, part)
		} else {
			list = append(list, strings.Fields(part)...)
		}
	}
	return list
}
