package balancesim

import (
	"fmt"
	"math"

	"github.com/gopegasus/pegasus/internal/draw"
)

// SVG draws when each node was busy, one lane a node, with the bound and the end.
// It needs Settings.Spans. Equal runs give equal files.
func (res *Result) SVG(names []string) string {
	end, bound := instant(res.Time).Sub(0), instant(res.Bound).Sub(0)
	p := draw.Picture{
		Head:   []string{fmt.Sprintf("%s: efficiency %.4f, %d migrations, %d tasks moved", res.Strategy, res.Efficiency, res.Migrations, res.Units)},
		Legend: []draw.Key{{Style: draw.Busy, Text: "busy"}},
		To:     max(end, 1),
		Thin:   len(names) >= draw.ThinLanes,
	}
	if !math.IsInf(res.Bound, 1) {
		p.To = max(p.To, bound)
		p.AddLine(bound, draw.Found, fmt.Sprintf("bound %.4gs", res.Bound))
	}
	p.AddLine(end, draw.Line, fmt.Sprintf("end %.4gs", res.Time))
	for i, spans := range res.busy {
		lane := draw.Lane{Label: names[i]}
		for _, s := range spans {
			lane.Spans = append(lane.Spans, draw.Span{From: s.from.Sub(0), To: s.to.Sub(0), Style: draw.Busy})
		}
		p.Lanes = append(p.Lanes, lane)
	}
	return p.SVG()
}
