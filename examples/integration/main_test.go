package main

import (
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAlone compares the sequential integration with the closed form.
func TestAlone(t *testing.T) {
	w, err := alone()
	if err != nil {
		t.Fatal(err)
	}
	peak := func(at float64) float64 {
		const width = 1e-3
		return (math.Atan((1-at)/width) + math.Atan(at/width)) / width
	}
	exact := peak(0.3) + peak(0.7) + (1-math.Cos(40))/40
	if math.Abs(w.Sum-exact) > 1e-8 || w.Error >= bound {
		t.Errorf("integral %.15g ± %g, exact %.15g", w.Sum, w.Error, exact)
	}
}

// TestIntegration runs the program undisturbed, and while five of its processes are
// killed. The verdict compares with the sequential reference, bit by bit.
func TestIntegration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "integration.exe")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"undisturbed": {nil, "122 pieces, 56 starts, of which 0 were lost and repeated; 0 processes killed\n"},
		"killed":      {[]string{"-kills", "5", "-slow", "60ms"}, "; 5 processes killed\n"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), path, c.args...).CombinedOutput()
			if err != nil {
				t.Fatalf("integration %v: %v\n%s", c.args, err, out)
			}
			if text := string(out); !strings.Contains(text, "\nok: the integral is 6273.70319774; at one instant (decision gsync/") || !strings.Contains(text, c.want) {
				t.Errorf("integration %v: the verdict is missing in\n%s", c.args, text)
			}
		})
	}
}
