package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// documented are a file of a page, and a session of it.
var (
	documentedFile = regexp.MustCompile("(?s)`([a-z_]+\\.yaml)`:\n\n```yaml\n(.*?)```\n")
	documentedRun  = regexp.MustCompile("(?s)```\n\\$ pegasus (.*?)\n(.*?)```\n")
)

// TestDocumentedRuleTests writes the files of docs/rule-tests.md and runs its
// commands.
func TestDocumentedRuleTests(t *testing.T) {
	page, err := os.ReadFile("../../docs/rule-tests.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files, runs := documentedFile.FindAllSubmatch(page, -1), documentedRun.FindAllSubmatch(page, -1)
	if len(files) != bytes.Count(page, []byte("```yaml")) || len(runs) != 2 {
		t.Fatalf("the page has %d files and %d runs", len(files), len(runs))
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, string(f[1])), f[2], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range runs {
		args := strings.Fields(string(r[1]))
		args[len(args)-1] = filepath.Join(dir, args[len(args)-1])
		_, stdout, stderr := execute(t, args...)
		if got := strings.ReplaceAll(stdout+stderr, dir+string(filepath.Separator), ""); got != string(r[2]) {
			t.Errorf("pegasus %s:\n%s\nthe page has\n%s", r[1], got, r[2])
		}
	}
}
