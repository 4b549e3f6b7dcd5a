package show

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/draw"
)

// TestWhySVG: the picture of a decision has the numbers of its text, for each kind of witness, and no label overlaps.
func TestWhySVG(t *testing.T) {
	for name, wants := range map[string][]string{
		"waits":     {"predicate calm of gsync has not fired: there is no decision to draw yet"},
		"inherited": {"predicate calm of gsync fired last under the process that led before: its witness is not known here"},
		"same-clock": {
			"gsync: calm is true for 1m1s; fired 7 times, last 1m1s ago<", ">when all(members, .idle)<", ">and 3 members more, which are not drawn<",
			`<rect class="true"`, "<title>all certainly held together: +0s to +200ms</title>", "<title>0s: from here on all certainly held together</title>",
			"<title>w1, report 5: began -30ms, held until +250ms or longer: idle=true n=1</title>", ">idle=true n=1<", "decision gsync/1/7",
		},
		"bounds": {
			"<title>w1, report 5: began -12ms to +0s, held until +43ms to +55ms: idle=true n=1</title>", "<title>w3: nothing is known of its state</title>", ">unknown<",
			`<rect class="bound"`, "<title>all may have held together: -10ms to +55ms</title>", `<rect class="bound" x="251.2" y="146" width="361.9" height="16"><title>w2, report 5: began -16ms to -4ms, held until +40ms or longer: `,
		},
		"set":     {"on set 12 (atleast) of epoch 1"},
		"no-core": {"<title>0s: from here on all may have held together</title>"},
	} {
		svg, err := WhySVG(explanations()[name])
		if err != nil {
			svg = err.Error()
		} else if faults, err := draw.Overlaps(svg); err != nil || len(faults) > 0 {
			t.Errorf("%s: %v %q", name, err, faults)
		}
		for _, want := range wants {
			if !strings.Contains(svg, want) {
				t.Errorf("%s: no %s in\n%s", name, want, svg)
			}
		}
	}
	e := explanations()["bounds"]
	for i := range 1000 {
		w := e.Last.Witness[i%2]
		w.Member = fmt.Sprintf("<member>\x1b\u202e %d", i)
		e.Last.Witness = append(e.Last.Witness, w)
	}
	svg, err := WhySVG(e)
	if err != nil {
		t.Fatal(err)
	}
	if faults, err := draw.Overlaps(svg); err != nil || len(faults) > 0 || strings.Contains(svg, "<member>") {
		t.Errorf("%v %q", err, faults)
	}
}
