package synccore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/synccore"
)

// BenchmarkParse reads a configuration of so many predicates.
func BenchmarkParse(b *testing.B) {
	for _, n := range []int{1, 20, 200} {
		b.Run(fmt.Sprintf("predicates=%d", n), func(b *testing.B) {
			var src strings.Builder
			src.WriteString("synchronizers:\n  g:\n    members: {group: w}\n    state: {phase: {enum: [idle, search]}, load: float}\n    predicates:\n")
			for i := range n {
				fmt.Fprintf(&src, "      p%d:\n        when: all(members, .phase == \"idle\") and mean(map(members, .load)) < 0.%d\n        signal: {kind: cancel, region: r}\n", i, i+1)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := synccore.Parse("c.yaml", []byte(src.String())); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
