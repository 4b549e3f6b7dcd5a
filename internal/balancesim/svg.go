package balancesim

import (
	"encoding/xml"
	"fmt"
	"math"
	"strings"

	"github.com/gopegasus/pegasus/clocksync"
)

const (
	svgWidth, svgLeft, svgTop = 900, 70, 40 // pixels
	svgRow                    = 8
	svgSteps                  = 8 // of the scale of time
)

// SVG draws when each node was busy, one row a node, with the bound and the end.
// It needs Settings.Spans. Equal runs give equal files.
func (res *Result) SVG(names []string) string {
	end := max(res.Time, 1e-9)
	bounded := !math.IsInf(res.Bound, 1)
	if bounded {
		end = max(end, res.Bound)
	}
	x := func(seconds float64) float64 { return svgLeft + seconds/end*svgWidth }
	rows := len(res.busy)
	bottom := svgTop + rows*svgRow
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n", svgLeft+svgWidth+30, bottom+30)
	b.WriteString("<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n")
	fmt.Fprintf(&b, `<text x="%d" y="16">%s: efficiency %.4f, %d migrations, %d tasks moved</text>`+"\n", svgLeft, res.Strategy, res.Efficiency, res.Migrations, res.Units)
	for i, spans := range res.busy {
		y := svgTop + i*svgRow
		if i%max(1, rows/16) == 0 {
			fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end" font-size="8">%s</text>`+"\n", svgLeft-6, y+svgRow-1, escaped(names[i]))
		}
		fmt.Fprintf(&b, `<path fill="#3b6ea5" d="`)
		for _, s := range joined(spans, instant(end/svgWidth/2)) {
			from, to := x(s.from.Sub(0).Seconds()), x(s.to.Sub(0).Seconds())
			fmt.Fprintf(&b, "M%.1f %dH%.1fv%dH%.1fz", from, y+1, to, svgRow-2, from)
		}
		b.WriteString("\"/>\n")
	}
	for i := range svgSteps + 1 {
		at := end * float64(i) / svgSteps
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%.3gs</text>`+"\n", x(at), bottom+18, at)
	}
	mark := func(at float64, name, color string) {
		fmt.Fprintf(&b, `<path stroke="%s" d="M%.1f %dV%d"><title>%s %.4gs</title></path>`+"\n", color, x(at), svgTop-8, bottom+4, name, at)
	}
	if bounded {
		mark(res.Bound, "bound", "#b03030")
	}
	mark(res.Time, "end", "#202020")
	if bounded {
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="end" fill="#b03030">bound</text>`+"\n", x(res.Bound)-3, svgTop-4)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// escaped is a text in XML, without the characters that it cannot have.
func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // A Builder does not fail.
	return b.String()
}

// joined puts spans together that are closer than what can be seen.
func joined(spans []span, gap clocksync.Instant) (list []span) {
	for _, s := range spans {
		if n := len(list); n > 0 && s.from-list[n-1].to < gap {
			list[n-1].to = s.to
			continue
		}
		list = append(list, s)
	}
	return list
}
