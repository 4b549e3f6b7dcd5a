package main

import (
	"regexp"
	"testing"

	"github.com/gopegasus/pegasus/internal/testprogram"
)

func TestMain(m *testing.M) { testprogram.Main(m, main) }

// TestShares: the shares of a number are all odd ones up to its root, each once.
func TestShares(t *testing.T) {
	for _, n := range []int64{9, 15, 25, 49, 121, 1001, 10403, 1_000_003, 1_000_000_007} {
		next := int64(3)
		for i := range halves * threads {
			from, to := share(n, i)
			if from != next {
				t.Errorf("%d: share %d begins at %d, want %d", n, i, from, next)
			}
			for next < to {
				next += 2
			}
		}
		if next*next <= n {
			t.Errorf("%d: the shares end before %d", n, next)
		}
	}
}

// TestAlone compares the reference with factors that are known.
func TestAlone(t *testing.T) {
	for n, want := range map[int64]int64{9: 3, 11: none, 35: 5, 10403: 101, 1_000_000_007: none, 999_983 * 999_979: 999_979} {
		if got := alone(n); got != want {
			t.Errorf("%d: %d, want %d", n, got, want)
		}
	}
}

// TestFactors runs the program on its processes. Both synchronizers must have
// cancelled something.
func TestFactors(t *testing.T) {
	out, err := testprogram.Command(t).CombinedOutput()
	if err != nil {
		t.Fatalf("factors: %v\n%s", err, out)
	}
	want := regexp.MustCompile(`^100000150042000063 = 2000003 x 50000000021
100650022967500459 = 82500017 x 1220000027
1000000000000037 is prime
cancelled as needless: [1-9]\d* threads by their synchronizer, [1-9]\d* blocks by the synchronizer of the processes
ok: one loop finds the same
$`)
	if !want.Match(out) {
		t.Errorf("factors: the verdict is missing in\n%s", out)
	}
}
