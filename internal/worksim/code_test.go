package worksim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestCode: nodes can run random sets of functions, nodes die, frames are lost. No node gets a task that it cannot run, and all
// work is done, with each strategy.
func TestCode(t *testing.T) {
	for seed := range uint64(24) {
		dice := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // It is a test.
		kind := []string{"receiver", "diffusion", "chunk", "sender"}[seed%4]
		var text strings.Builder
		_, _ = text.WriteString("nodes:\n")
		for i := range 8 {
			set := []int{1, 2, 3, 4}
			dice.Shuffle(4, func(i, k int) { set[i], set[k] = set[k], set[i] })
			set = set[:1+dice.IntN(3)]
			if i == 7 { // Each function is somewhere.
				set = []int{1, 2, 3, 4}
			}
			_, _ = fmt.Fprintf(&text, "  - {count: 2, runs: %s}\n", strings.ReplaceAll(fmt.Sprint(set), " ", ", "))
		}
		_, _ = fmt.Fprintf(&text, "network: {loss: 0.02, double: 0.02}\nwork: {slots: 2, losses: 9, strategy: {kind: %s}}\n", kind)
		_, _ = text.WriteString("kills: {count: 3, from: 200ms, until: 2s, silence: 500ms}\ntasks:\n")
		for i := range 4 {
			_, _ = fmt.Fprintf(&text, "  - {put: {node: %d}, count: 150, weight: {uniform: [0.02, 0.06]}%s}\n", 1+2*i, []string{"", ", kind: bag, items: 5"}[i%2])
		}
		s := parse(t, text.String())
		s.Seed = seed
		if r := mustRun(t, s); r.Moved == 0 || r.Killed != 3 {
			t.Errorf("seed %d: %+v", seed, r)
		}
	}
}
