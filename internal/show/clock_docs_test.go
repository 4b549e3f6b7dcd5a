package show

import (
	"os"
	"strings"
	"testing"
)

// TestDocumentedClocks finds the output of every clock command of the pages among
// the views of testdata/clock.
func TestDocumentedClocks(t *testing.T) {
	views, err := os.ReadFile("testdata/clock/views")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"../../docs/cli.md", "../../docs/clocks.md"} {
		page, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		examples := strings.Split(string(page), "```\n$ pegasus clock")[1:]
		if len(examples) == 0 {
			t.Errorf("%s has no example", file)
		}
		for _, example := range examples {
			_, example, _ = strings.Cut(example, "\n")
			example, _, _ = strings.Cut(example, "```\n")
			if !strings.Contains(string(views), example) {
				t.Errorf("%s: no view of testdata/clock/views is\n%s", file, example)
			}
		}
	}
}
