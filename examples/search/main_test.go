package main

import (
	"math"
	"math/rand/v2"
	"regexp"
	"testing"

	"github.com/gopegasus/pegasus/internal/testprogram"
)

func TestMain(m *testing.M) { testprogram.Main(m, main) }

// TestPendulum compares the integration with the closed form for small angles, and
// the measurements with the pendulum that they are made of.
func TestPendulum(t *testing.T) {
	const pull, start = 9.81, 1e-4
	for i, angle := range swing(parameters{pull, 0, start}) {
		if want := start * math.Cos(math.Sqrt(pull)*between*float64(i)); math.Abs(angle-want) > 1e-3*start {
			t.Fatalf("angle %d: %g, want %g", i, angle, want)
		}
	}
	if e := distance(parameters{9.81, 0.02, 2.5}); e > 0.005 || e == 0 {
		t.Errorf("the errors of measurement are %g together", e)
	}
}

// TestClimb: a climb ends no higher than it begins, where it says, and is repeatable.
func TestClimb(t *testing.T) {
	one := func() (parameters, float64) {
		return climb(rand.New(rand.NewPCG(1, 1)), func() bool { return false }) //nolint:gosec // It is to be repeatable.
	}
	p, e := one()
	if q, f := one(); q != p || f != e || distance(p) != e {
		t.Errorf("%v at %v, then %v at %v", e, p, f, q)
	}
	if _, first := climb(rand.New(rand.NewPCG(1, 1)), func() bool { return true }); first <= e { //nolint:gosec // Likewise.
		t.Errorf("from %v to %v", first, e)
	}
}

var verdict = regexp.MustCompile(`(?m)^n[0-3]-[01] has found pull 9\.\d+, drag 0\.0\d+, start -?2\.\d+ after \d+ climbs of all
ok: error 0\.00\d+, below 0\.004, and the same in one process; by decision gsync/\d+/\d+ [1-7] others of 8 climbers were stopped inside their regions$`)

// TestSearch runs the program from places where one climber finds something long before
// all others, and as its first climb. Its verdict evaluates what was found in one
// process, and counts those that were stopped twice: as they say, and as the synchronizer does.
func TestSearch(t *testing.T) {
	for _, seed := range []string{"1", "5"} {
		out, err := testprogram.Command(t, "-seed", seed).CombinedOutput()
		if err != nil || !verdict.Match(out) {
			t.Errorf("search -seed %s: %v, no verdict in\n%s", seed, err, out)
		}
	}
}
