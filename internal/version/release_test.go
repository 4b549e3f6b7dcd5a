package version_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/version"
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
	if got := regexp.MustCompile(`(?m)^const Next = "(v[0-9.]+)"$`).FindStringSubmatch(read("version.go")); got == nil || got[1] != version.Next {
		t.Errorf("the expression of the Makefile finds %q, and the version is %s", got, version.Next)
	}
	sed := `s/^const Next = "(v[0-9.]+)"$/\1/p' internal/version/version.go`
	if !strings.Contains(strings.ReplaceAll(read("../../Makefile"), "$$", "$"), sed) || !strings.Contains(read("../../.github/workflows/release.yaml"), sed) {
		t.Errorf("the Makefile and the workflow read the version by %s", sed)
	}
	_, section, found := strings.Cut(read("../../CHANGELOG.md"), "\n## "+strings.TrimPrefix(version.Next, "v")+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	lines := strings.Split(section, "\n")
	if !found || len(lines) > 60 {
		t.Errorf("the changelog has %d lines for %s, and at most 60 are allowed", len(lines), version.Next)
	}
	for _, l := range lines {
		if len(l) > 160 {
			t.Errorf("a line of the changelog has %d bytes, and at most 160 are allowed: %.60s...", len(l), l)
		}
	}
}
