package program_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/internal/configfile"
)

// TestGraphs draws the files of configs/programs.
func TestGraphs(t *testing.T) {
	datadriven.RunTest(t, "testdata/graphs", func(t *testing.T, d *datadriven.TestData) string {
		t.Helper()
		var name string
		d.ScanArgs(t, "file", &name)
		src, err := os.ReadFile("../../configs/programs/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		file, err := configfile.ParseProgram(name, src)
		if err != nil {
			t.Fatal(err)
		}
		switch d.Cmd {
		case "text":
			return file.Plan.Text()
		case "dot":
			return file.Plan.Draw().DOT()
		case "mermaid":
			return file.Plan.Draw().Mermaid()
		case "svg":
			return file.Plan.Draw().SVG()
		}
		d.Fatalf(t, "no command %s", d.Cmd)
		return ""
	})
}

// TestDrawing checks drawings of random programs: nothing lies over anything
// else or outside, and from the start every vertex is reached.
func TestDrawing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		compiled := drawPlan(t)
		g := compiled.Draw()
		for i, v := range g.Vertices {
			if v.X-v.W/2 < 0 || v.Y-v.H/2 < 0 || v.X+v.W/2 > g.W || v.Y+v.H/2 > g.H {
				t.Fatalf("vertex %d %+v lies outside of %d x %d\n%s", i, v, g.W, g.H, compiled.Text())
			}
			for j, o := range g.Vertices[:i] {
				if 2*abs(v.X-o.X) < v.W+o.W && 2*abs(v.Y-o.Y) < v.H+o.H {
					t.Fatalf("vertices %d %+v and %d %+v lie over each other\n%s", i, v, j, o, compiled.Text())
				}
			}
		}
		reached := map[int]bool{0: true}
		for range g.Vertices {
			for _, e := range g.Edges {
				if reached[e.From] {
					reached[e.To] = true
				}
				for _, p := range e.Via {
					if p[0] < 0 || p[1] < 0 || p[0] > g.W || p[1] > g.H {
						t.Fatalf("edge %+v leads outside of %d x %d", e, g.W, g.H)
					}
				}
			}
		}
		if len(reached) != len(g.Vertices) {
			t.Fatalf("%d of %d vertices are reached\n%s", len(reached), len(g.Vertices), compiled.Text())
		}
		if lines := strings.Count(compiled.Text(), "\n"); lines < compiled.Constructs() {
			t.Fatalf("%d lines for %d constructs", lines, compiled.Constructs())
		}
	})
}

// rect is a rectangle from left to right and top to bottom.
type rect struct{ left, top, right, bottom int }

func (r rect) meets(o rect) bool {
	return r.left < o.right && o.left < r.right && r.top < o.bottom && o.top < r.bottom
}

var (
	svgLine  = regexp.MustCompile(`<polyline points="([^"]*)"`)
	svgLabel = regexp.MustCompile(`<text x="(-?\d+)" y="(-?\d+)" text-anchor="(start|end)" textLength="(\d+)" [^>]*>([^<]*)<`)
)

// TestLabels checks drawings of random programs: no label lies over an arrow, a vertex or another label, each
// exit of a switch has one, and the text of a switch is inside it.
func TestLabels(t *testing.T) {
	for _, blocks := range []int{10, 100, 1000} {
		checkLabels(t, chain(t, blocks))
	}
	rapid.Check(t, func(t *rapid.T) { checkLabels(t, drawPlan(t)) })
}

func checkLabels(t rapid.TB, compiled *program.Compiled) {
	t.Helper()
	g := compiled.Draw()
	svg := g.SVG()
	fail := func(format string, args ...any) {
		t.Helper()
		t.Fatalf(format+"\n%s\n%s", append(args, compiled.Text(), svg)...)
	}
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil {
			fail("%v", err)
		}
		return n
	}
	var taken []rect
	for _, m := range svgLine.FindAllStringSubmatch(svg, -1) {
		var last, before []int
		for i, point := range strings.Fields(m[1]) {
			x, y, _ := strings.Cut(point, ",")
			at := []int{number(x), number(y)}
			if i > 0 {
				if at[0] != last[0] && at[1] != last[1] {
					fail("the line %s is not at right angles", m[1])
				}
				taken = append(taken, rect{min(at[0], last[0]) - 1, min(at[1], last[1]) - 1, max(at[0], last[0]) + 1, max(at[1], last[1]) + 1})
			}
			last, before = at, last
		}
		if before != nil && before[0] == last[0] && before[1] < last[1] { // The head of an arrow that points down.
			taken = append(taken, rect{last[0] - 5, last[1] - 9, last[0] + 5, last[1]})
		}
	}
	for i := range g.Vertices {
		v := &g.Vertices[i]
		if v.Shape != program.Diamond { // Its corners are empty.
			taken = append(taken, rect{v.X - v.W/2, v.Y - v.H/2, v.X + v.W/2, v.Y + v.H/2})
			continue
		}
		for _, l := range v.Label { // A text that is as high as all lines.
			if 7*len(l)*v.H+15*len(v.Label)*v.W > v.W*v.H {
				fail("the text %q is larger than its diamond of %d x %d", v.Label, v.W, v.H)
			}
		}
	}
	for _, e := range g.Edges {
		if g.Vertices[e.From].Shape == program.Diamond && e.Label == "" {
			fail("an exit of the switch %q has no label", g.Vertices[e.From].Label)
		}
	}
	for _, m := range svgLabel.FindAllStringSubmatch(svg, -1) {
		x, y, width := number(m[1]), number(m[2]), number(m[4])
		if m[3] == "end" {
			x -= width
		}
		box := rect{x, y - 9, x + width, y + 2}
		if box.left < 0 || box.right > g.W || box.bottom > g.H {
			fail("the label %q at %d, %d lies outside", m[5], x, y)
		}
		for _, o := range taken {
			if box.meets(o) {
				fail("the label %q at %d, %d lies over %+v", m[5], x, y, o)
			}
		}
		taken = append(taken, box)
	}
}

func abs(x int) int { return max(x, -x) }

// TestDrawingIsLinear compares the time for ten times the blocks.
func TestDrawingIsLinear(t *testing.T) {
	small, large := chain(t, 100), chain(t, 1000)
	least := func(compiled *program.Compiled) time.Duration {
		best := time.Hour
		for range 20 {
			begin := time.Now()
			_ = compiled.Draw().SVG()
			best = min(best, time.Since(begin))
		}
		return best
	}
	ratio := 0.0
	for range 5 { // Another process may have had the processor.
		if ratio = float64(least(large)) / float64(least(small)); ratio < 30 {
			t.Logf("1,000 blocks take %.1f times as long as 100", ratio)
			return
		}
	}
	t.Errorf("1,000 blocks take %.1f times as long as 100: linear would be 10", ratio)
}
