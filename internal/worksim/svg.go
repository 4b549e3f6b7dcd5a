package worksim

import (
	"fmt"
	"strconv"

	"github.com/gopegasus/pegasus/balance/local"
	"github.com/gopegasus/pegasus/internal/draw"
)

// SVG draws what each node did, one lane a node, with the bound and the end. Equal runs give equal files.
func (r *Result) SVG(strategy local.Config) string {
	p := draw.Picture{
		Head: []string{
			StrategyText(strategy),
			fmt.Sprintf("efficiency %.4f, %d tasks and %d objects moved", r.Efficiency, r.Moved, r.Objects),
		},
		Legend: []draw.Key{{Style: draw.Busy, Text: "busy"}, {Style: draw.Waits, Text: "waits for data"}},
		To:     max(r.Time, r.Bound, 1),
		Thin:   len(r.Lanes) >= draw.ThinLanes,
	}
	p.AddLine(r.Bound, draw.Found, fmt.Sprintf("bound %.4gs", r.Bound.Seconds()))
	p.AddLine(r.Time, draw.Line, fmt.Sprintf("end %.4gs", r.Time.Seconds()))
	for i, lane := range r.Lanes {
		l := draw.Lane{Label: strconv.Itoa(i + 1)}
		for k, s := range lane {
			if style := map[State]draw.Style{Busy: draw.Busy, Moving: draw.Waits}[s.State]; style != "" && k+1 < len(lane) {
				l.Spans = append(l.Spans, draw.Span{From: s.At, To: lane[k+1].At, Style: style})
			}
		}
		p.Lanes = append(p.Lanes, l)
	}
	return p.SVG()
}
