package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestRelease: the Makefile, the workflow and the changelog speak of the version that the program prints.
func TestRelease(t *testing.T) {
	read := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got := regexp.MustCompile(`(?m)^const next = "(v[0-9.]+)"$`).FindStringSubmatch(read("version.go")); got == nil || got[1] != next {
		t.Errorf("the expression of the Makefile finds %q, and the version is %s", got, next)
	}
	sed := `s/^const next = "(v[0-9.]+)"$/\1/p' cmd/pegasus/version.go`
	if !strings.Contains(strings.ReplaceAll(read("../../Makefile"), "$$", "$"), sed) || !strings.Contains(read("../../.github/workflows/release.yaml"), sed) {
		t.Errorf("the Makefile and the workflow read the version by %s", sed)
	}
	_, section, found := strings.Cut(read("../../CHANGELOG.md"), "\n## "+strings.TrimPrefix(next, "v")+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	lines := strings.Split(section, "\n")
	if !found || len(lines) > 60 {
		t.Errorf("the changelog has %d lines for %s, and at most 60 are allowed", len(lines), next)
	}
	for _, l := range lines {
		if len(l) > 160 {
			t.Errorf("a line of the changelog has %d bytes, and at most 160 are allowed: %.60s...", len(l), l)
		}
	}
}
