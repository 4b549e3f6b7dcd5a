package ruletest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/draw"
)

// picture is the first failure of a run, drawn.
func picture(t *testing.T, src string) string {
	t.Helper()
	f, err := parse(src)
	if err != nil {
		t.Fatal(err)
	}
	failures := f.Tests[0].Run().Failures
	if len(failures) == 0 {
		t.Fatal("the test has passed")
	}
	return failures[0].SVG()
}

// TestPicture draws a failure: states with their changes, a member that has gone, verdicts, a firing, and the times that the
// expectation names.
func TestPicture(t *testing.T) {
	const src = `
config: two.yaml
tests:
  - name: "idle & <alone>"
    initial: phase=search load=0
    members:
      w1: 0s | 1s phase=idle | 4s load=1
      w2: 0s phase=idle | 2s leave
    expect:
      - {predicate: all-idle, fired: [2s, 3s], within: 50ms}
`
	svg := picture(t, src)
	if svg != picture(t, src) {
		t.Error("the same run has another picture")
	}
	for _, want := range []string{
		"FAIL t.yaml:10: idle &amp; &lt;alone&gt;<", "expected a firing from 2s to 2.05s<", "<title>from 0s to 1s w1: phase=search load=0</title>",
		"<title>from 0s to 2s w2: phase=idle load=0</title>", "<title>all-idle fires at 1.0", "from 2s to 2.05s</title>", "from 3s to 3.05s</title>",
		"prefers-color-scheme: dark", ">phase=idle load=0<", `<rect class="false"`, `<rect class="true"`, `<rect class="unknown"`,
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %s in\n%s", want, svg)
		}
	}
	if strings.Contains(svg, "w2: </title>") {
		t.Error("a member that has gone has a state")
	}
}

// TestPictureLabels: no text lies over another one or outside, with 3 to 1,000 members.
func TestPictureLabels(t *testing.T) {
	for _, members := range []int{3, 30, 1000} {
		svg := picture(t, fmt.Sprintf(`
config: two.yaml
tests:
  - name: %s
    initial: phase=search load=0
    members: {a-long-name-of-a-member-that-is-cut-w1..%d: "0s load=0.123456789+1x12 every 17ms | 500ms phase=idle"}
    expect: [{predicate: all-idle, at: 100ms, truth: true}]
`, strings.Repeat("a long name ", 30), members))
		faults, err := draw.Overlaps(svg)
		if err != nil || len(faults) > 0 {
			t.Errorf("%d members: %v, %q", members, err, faults)
		}
		if count := strings.Count(svg, "<text "); count < members+8 {
			t.Errorf("%d members: %d texts", members, count)
		}
	}
}
