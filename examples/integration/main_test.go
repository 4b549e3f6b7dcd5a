package main

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/testprogram"
)

func TestMain(m *testing.M) { testprogram.Main(m, main) }

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
	if again, kills := disturb(t); again != 0 || kills != 0 {
		t.Errorf("undisturbed, %d blocks ran again and %d processes were killed", again, kills)
	}
	if again, kills := disturb(t, "-kills", "5", "-slow", "60ms"); kills != 5 {
		t.Errorf("%d processes killed, %d blocks ran again", kills, again)
	}
}

var verdict = regexp.MustCompile(`^122 pieces from 56 blocks, each used once; (\d+) ran again; (\d+) nodes and (\d+) synchronizers killed
ok: the integral is 6273\.70319774; at one instant \(decision gsync/[0-9/]+\) the errors of 4 processes were together 1\.6e-11, below 1e-10; one process comes to the same
$`)

// disturb runs the program, and returns how many blocks ran again and how many
// processes were killed.
func disturb(t *testing.T, args ...string) (again, kills int) {
	t.Helper()
	out, err := testprogram.Command(t, args...).CombinedOutput()
	m := verdict.FindSubmatch(out)
	if err != nil || m == nil {
		t.Fatalf("integration %v: %v, no verdict in\n%s", args, err, out)
	}
	n := make([]int, 3)
	for i := range n {
		n[i], _ = strconv.Atoi(string(m[1+i])) // They are digits.
	}
	return n[0], n[1] + n[2]
}

// TestOnce: a result that is used twice, or by nobody, is found.
func TestOnce(t *testing.T) {
	whole := []use{{"divide", 0, 0, 1}, {"integrate", 1, 0, 2}, {"integrate", 1, 1, 3}, {"integrate", 1, 2, 4}, {"integrate", 1, 3, 5}, {"refine", 2, 0, 6}}
	if blocks, err := once(whole, 2); blocks != 6 || err != nil {
		t.Errorf("%d, %v", blocks, err)
	}
	for want, used := range map[string][]use{
		"1 blocks are missing": whole[1:],
		"part 3, run 7":        append(whole[:6:6], use{"integrate", 1, 3, 7}),
		"part 3, run 4":        append(slices.Delete(slices.Clone(whole), 4, 5), use{"integrate", 1, 3, 4}),
		"round 2":              append(whole[:6:6], use{"integrate", 2, 0, 7}),
	} {
		if _, err := once(used, 2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
