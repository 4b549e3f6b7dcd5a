package scgs_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/internal/testcount"
)

var firstSeed = flag.Uint64("seed", 1, "seed of the first random system")

// systems is on how many random systems a property is checked.
func systems(tb testing.TB) int {
	tb.Helper()
	return testcount.Of(tb, "SYSTEMS", 1000)
}

// draw is a source of choices: a number in [0, n). A seed, rapid and the fuzzer
// each give one.
type draw func(n int) int

func (d draw) chance(percent int) bool { return d(100) < percent }

// forSystems checks a property on random systems from consecutive seeds, and on
// a few of rapid's. It runs beside the other properties.
func forSystems(t *testing.T, property func(t rapid.TB, d draw)) {
	t.Helper()
	t.Parallel()
	s := &seeded{T: t, property: property}
	end := *firstSeed + uint64(systems(t)) //nolint:gosec // It is above 0.
	for s.seed = *firstSeed; s.seed < end; s.seed++ {
		rng := rand.New(rand.NewPCG(s.seed, 0))
		s.choices = s.choices[:0]
		property(s, func(n int) int {
			c := rng.IntN(n)
			s.choices = append(s.choices, c)
			return c
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		property(t, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") })
	})
}

// seeded says of what fails how to repeat it, and shows a smaller system that
// fails too.
type seeded struct {
	*testing.T
	property func(t rapid.TB, d draw)
	seed     uint64
	choices  []int
}

func (s *seeded) Fatalf(format string, args ...any) {
	s.Helper()
	why := fmt.Sprintf(format, args...)
	test := "^" + strings.ReplaceAll(s.Name(), "/", "$/^") + "$"
	s.T.Fatalf("repeat with: PEGASUS_SYSTEMS=1 go test ./scgs -run '%s' -seed %d\n%s\nsmaller: %s",
		test, s.seed, why, s.smaller(why))
}

// smaller leaves out choices and makes them 0 for as long as the property fails.
func (s *seeded) smaller(why string) string {
	choices := slices.Clone(s.choices)
	try := func(c []int) bool {
		w := replay(s.T, s.property, c)
		if w != "" {
			choices, why = c, w
		}
		return w != ""
	}
	for size := len(choices); size > 0; size /= 2 {
		for i := 0; i+size <= len(choices); {
			if !try(slices.Delete(slices.Clone(choices), i, i+size)) {
				i += size
			}
		}
	}
	for i := range choices {
		for choices[i] > 0 {
			c := slices.Clone(choices)
			c[i] /= 2
			if !try(c) {
				break
			}
		}
	}
	return why
}

// replay repeats a property with given choices, then 0, and returns why it
// failed.
func replay(t *testing.T, property func(t rapid.TB, d draw), choices []int) string {
	t.Helper()
	r := &replayed{T: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		property(r, func(n int) int {
			if len(choices) == 0 {
				return 0
			}
			c := min(choices[0], n-1)
			choices = choices[1:]
			return c
		})
	}()
	<-done
	return r.why
}

type replayed struct {
	*testing.T
	why string
}

func (r *replayed) Fatalf(format string, args ...any) {
	r.why = fmt.Sprintf(format, args...)
	runtime.Goexit()
}
