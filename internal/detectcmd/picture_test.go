package detectcmd

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/draw"
)

// drawTrace returns the picture of a trace.
func drawTrace(t *testing.T, trace string, flags ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "x.svg")
	var stdout, stderr bytes.Buffer
	cmd := New(func(err error) error { return err })
	cmd.SetArgs(append(flags, "--svg", file))
	cmd.SetIn(strings.NewReader(trace))
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	if err := cmd.Execute(); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	svg, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if faults, err := draw.Overlaps(string(svg)); err != nil || len(faults) > 0 {
		t.Errorf("%v %q", err, faults)
	}
	return string(svg)
}

// TestPictureOfLosses: a state ends with the next one or a leave. It is not drawn after its newest evidence if the next reports
// are lost or another incarnation follows, and is dashed after its newest evidence at the end.
func TestPictureOfLosses(t *testing.T) {
	var trace strings.Builder
	mono := 0
	for _, l := range []string{
		`"earliest":0,"latest":10,"type":"state","seq":1`, `"earliest":40,"latest":50,"type":"alive","seq":1`, // 2 is lost
		`"earliest":100,"latest":110,"type":"state","seq":3`, `"earliest":200,"latest":210,"type":"state","seq":4`,
		`"earliest":300,"latest":310,"type":"alive","seq":5`, // 5 is lost, and so is its begin
		`"earliest":400,"latest":410,"type":"state","seq":6`, `"earliest":500,"latest":510,"type":"state","seq":1,"incarnation":2`,
		`"earliest":600,"latest":610,"type":"leave","seq":2,"incarnation":2`, `"earliest":null,"latest":null,"type":"state","seq":1,"incarnation":3`, `"earliest":700,"latest":710,"type":"alive","seq":1,"incarnation":3`,
		`"earliest":800,"latest":810,"type":"state","seq":1,"incarnation":4`, `"earliest":900,"latest":910,"type":"alive","seq":1,"incarnation":4`,
	} {
		mono += 100
		state := ""
		if strings.Contains(l, `"state"`) {
			state = `,"state":{"n":1}`
		}
		fmt.Fprintf(&trace, `{"participant":"p","domain":"h","mono":%d,%s%s}`+"\n", mono, l, state)
	}
	svg := drawTrace(t, trace.String(), "--schema", "n:int")
	for _, want := range []string{
		"p:1 began [0,10], still held [40,50] ns: n=1", "p:3 began [100,110], ended [200,210] ns: n=1", "p:4 began [200,210], still held [200,210] ns: n=1",
		"p:6 began [400,410], still held [400,410] ns: n=1", "p#2:1 began [500,510], ended [600,610] ns: n=1", "p#3:1 began [-inf,+inf], still held [700,710] ns: n=1", "p#4:1 began [800,810], still held [900,910] ns: n=1",
		"1 member, 7 states,",
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %s in\n%s", want, svg)
		}
	}
	if n := strings.Count(svg, `<rect class="unknown"`); n != 2 { // The last state, and the legend.
		t.Errorf("%d dashed bars in\n%s", n, svg)
	}
}

// TestPictureWithoutStates: a trace without bounds, and an empty one, can be drawn. Members beyond the limit are counted.
func TestPictureWithoutStates(t *testing.T) {
	if svg := drawTrace(t, ""); !strings.Contains(svg, "stdin: 0 members, 0 states, 0 global states") {
		t.Error(svg)
	}
	if svg := drawTrace(t, `{"participant":"p","domain":"h","mono":1,"earliest":null,"latest":null,"type":"state","seq":1,"state":{}}`); !strings.Contains(svg, "<title>p:1 began ") {
		t.Error(svg)
	}
	var trace strings.Builder
	for i := range mostMembers + 2 {
		fmt.Fprintf(&trace, `{"participant":"p%d","domain":"h","mono":1,"earliest":1,"latest":2,"type":"state","seq":1,"state":{}}`+"\n", i)
	}
	if svg := drawTrace(t, trace.String()); !strings.Contains(svg, "left out: 2 members, 2 states, 0 global states") {
		t.Errorf("%.5000s", svg)
	}
}
