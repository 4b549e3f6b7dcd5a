package configfile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/configfile"
)

// BenchmarkParse is what `check` of a file costs.
func BenchmarkParse(b *testing.B) {
	for _, n := range []int{1, 200} {
		b.Run(fmt.Sprintf("predicates=%d", n), func(b *testing.B) {
			var text strings.Builder
			text.WriteString("synchronizers:\n  gsync:\n    members: {group: workers, count: 3}\n" +
				"    state: {phase: {enum: [idle, search]}, load: float}\n    predicates:\n")
			for i := range n {
				fmt.Fprintf(&text, "      busy-%d:\n        when: count(members, .phase == \"idle\" and .load < %d) > 2\n"+
					"        signal: {kind: cancel, region: search, to: \"filter(members, .load > 2)\"}\n", i, i)
			}
			config := []byte(text.String())
			b.ReportAllocs()
			for b.Loop() {
				if _, err := configfile.Parse("bench.yaml", config); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
