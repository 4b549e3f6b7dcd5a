package ruletest_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// drawn is a rectangle of a picture.
type drawn struct{ left, top, right, bottom int }

var (
	pictureText = regexp.MustCompile(`<text x="(-?\d+)" y="(\d+)" textLength="(\d+)"[^>]*>([^<]*)<`)
	pictureSize = regexp.MustCompile(`<svg [^>]*width="(\d+)" height="(\d+)"`)
)

func numbers(t *testing.T, texts []string) []int {
	t.Helper()
	list := make([]int, len(texts))
	for i, text := range texts {
		var err error
		if list[i], err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

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
	for in := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := in.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
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
		size := numbers(t, pictureSize.FindStringSubmatch(svg)[1:])
		byLine := map[int][]drawn{}
		count := 0
		for _, m := range pictureText.FindAllStringSubmatch(svg, -1) {
			n := numbers(t, m[1:4])
			box := drawn{n[0], n[1] - 10, n[0] + n[2], n[1] + 3} // Ascent and descent of letters of 12 pixels.
			if box.left < 0 || box.top < 0 || box.right > size[0] || box.bottom > size[1] {
				t.Errorf("%d members: %q at %+v lies outside of %v", members, m[4], box, size)
			}
			for y := n[1] - 20; y <= n[1]+20; y++ {
				for _, o := range byLine[y] {
					if box.left < o.right && o.left < box.right && box.top < o.bottom && o.top < box.bottom {
						t.Fatalf("%d members: %q at %+v lies over %+v", members, m[4], box, o)
					}
				}
			}
			byLine[n[1]] = append(byLine[n[1]], box)
			count++
		}
		if count < members+8 {
			t.Errorf("%d members: %d texts", members, count)
		}
	}
}
