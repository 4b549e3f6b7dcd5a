package connect

import (
	"os"
	"strings"
	"testing"
)

// TestPage wants every flag, variable and key in docs/connecting.md.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../docs/connecting.md")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, from := range sources {
		if strings.HasPrefix(from.flag, "--") {
			names = append(names, "`"+from.flag+" ")
		}
		if from.variable != "" {
			names = append(names, "`"+from.variable+"`")
		}
	}
	for key := range contextKeys {
		names = append(names, "`"+key+"`")
	}
	for _, name := range names {
		if !strings.Contains(string(page), name) {
			t.Errorf("docs/connecting.md has no %s`", name)
		}
	}
}
