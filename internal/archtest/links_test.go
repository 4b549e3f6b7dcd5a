package archtest

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestAgentLinksNoObserver: a program that joins a group links neither an NTP client nor the code that
// observes a node, unless it imports them. The last row shows that the test finds what is linked.
func TestAgentLinksNoObserver(t *testing.T) {
	for _, c := range []struct {
		pkg, path string
		want      bool
	}{
		{"agent", "github.com/beevik/ntp", false},
		{"work", "github.com/beevik/ntp", false},
		{"agent", Module + "/observe", false},
		{"work", Module + "/observe", false},
		{"clocksync/source/ntp", "github.com/beevik/ntp", true},
	} {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "./"+c.pkg)
		cmd.Dir, cmd.Env = root, append(os.Environ(), "GOOS=linux")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list -deps ./%s: %v", c.pkg, err)
		}
		if got := slices.Contains(strings.Fields(string(out)), c.path); got != c.want {
			t.Errorf("%s links %s: %t, want %t", c.pkg, c.path, got, c.want)
		}
	}
}
