package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPagesAreNew compares docs/cli with what the commands say.
func TestPagesAreNew(t *testing.T) {
	want, err := markdown(newRoot())
	if err != nil {
		t.Fatal(err)
	}
	const dir = "../../docs/cli"
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
		page, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if string(page) != string(want[e.Name()]) {
			t.Errorf("docs/cli/%s is not what the command says: run make docs", e.Name())
		}
	}
	if made := slices.Sorted(maps.Keys(want)); !slices.Equal(names, made) {
		t.Errorf("docs/cli has %v, the commands make %v: run make docs", names, made)
	}
}

// TestManPages writes them where nothing is yet.
func TestManPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "share", "man1")
	if code, stdout, stderr := execute(t, "man", dir); code != exitOK || stdout+stderr != "" {
		t.Fatalf("exit %d, %q, %q", code, stdout, stderr)
	}
	page, err := os.ReadFile(filepath.Join(dir, "pegasus-run.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`.TH "PEGASUS-RUN" "1"`, "pegasus-run - Run the synchronizers", `\fB--http\fP`} {
		if !strings.Contains(string(page), text) {
			t.Errorf("the page has no %q:\n%s", text, page)
		}
	}
	if hidden, err := filepath.Glob(filepath.Join(dir, "pegasus-man*")); err != nil || hidden != nil {
		t.Errorf("pages of hidden commands: %v, %v", hidden, err)
	}
	file := filepath.Join(dir, "pegasus.1")
	if code, _, stderr := execute(t, "docs", file); code != exitFailure || !strings.HasPrefix(stderr, "pegasus: mkdir "+file) {
		t.Errorf("into a file: exit %d, %q", code, stderr)
	}
}

// TestCompletion asks as a shell does.
func TestCompletion(t *testing.T) {
	for line, want := range map[string]string{
		"run ":                              "yaml yml :8",
		"run " + goodConfig + " --name ":    "gsync :4",
		"run " + goodConfig + " --member":   "--members :4",
		"run " + goodConfig + " --members ": "gsync=2 :4",
		"run " + levelsConfig + " --name ":  "gsync other :4",
		"run missing.yaml --name ":          ":4",
		"run --name ":                       ":4",
		"run --timeline ":                   "utc utc-smeared :4",
		"detect --modality ":                "inst definitely possibly atleast :4",
		"completion ":                       "bash fish powershell zsh :4",
		"health ":                           ":4",
		"hea":                               "health :4",
	} {
		code, stdout, _ := execute(t, append([]string{"__completeNoDesc"}, strings.Split(line, " ")...)...)
		if got := strings.Join(strings.Fields(stdout), " "); code != exitOK || got != want {
			t.Errorf("%q: exit %d, %q, want %q", line, code, got, want)
		}
	}
	for shell := range shells {
		code, stdout, stderr := execute(t, "completion", shell)
		if code != exitOK || !strings.Contains(stdout, "__complete") || stderr != "" {
			t.Errorf("%s: exit %d, %d bytes, %q", shell, code, len(stdout), stderr)
		}
	}
}
