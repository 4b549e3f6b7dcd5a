package main

import (
	"os"
	"strings"
	"testing"
)

// TestDocumentedRehearsal runs the command of docs/cli.md.
func TestDocumentedRehearsal(t *testing.T) {
	page, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(page), "$ pegasus program run --dry-run configs/programs/search.yaml\n")
	want, _, _ := strings.Cut(rest, "```\n")
	code, stdout, stderr := execute(t, "program", "run", "--dry-run", "../../configs/programs/search.yaml")
	if !ok || code != exitOK || stdout != want || stderr != "" {
		t.Errorf("exit %d\n%s%s\nthe page has\n%s", code, stdout, stderr, want)
	}
}
