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

// TestDocumentedConfigs compares the sessions of docs/cli.md with the files of
// testdata that they are of; they may leave out the end.
func TestDocumentedConfigs(t *testing.T) {
	page, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"check bad.yaml": "faulty.yaml", "config show levels.yaml": "levels.yaml"}
	for _, r := range documentedRun.FindAllSubmatch(page, -1) {
		args := strings.Fields(string(r[1]))
		file, ok := files[string(r[1])]
		if !ok {
			continue
		}
		delete(files, string(r[1]))
		shown := args[len(args)-1]
		args[len(args)-1] = "testdata/configs/" + file
		_, stdout, stderr := execute(t, args...)
		if got := strings.ReplaceAll(stdout+stderr, "testdata/configs/"+file, shown); !strings.HasPrefix(got, string(r[2])) {
			t.Errorf("pegasus %s:\n%s\nthe page has\n%s", r[1], got, r[2])
		}
	}
	if len(files) > 0 {
		t.Errorf("the page has no session of %v", files)
	}
}
