package worksim

import (
	"encoding/xml"
	"fmt"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/balance/local"
)

const (
	svgWidth, svgLeft, svgTop = 900, 70, 40 // pixels
	svgRow                    = 8
	svgSteps                  = 8 // of the scale of time
)

// colors are those of the states; idle is the background.
var colors = map[State]string{Busy: "#3b6ea5", Moving: "#d98e2b"}

// SVG draws what each node did, one lane a node, with the bound and the end. Equal runs give equal files.
func (r *Result) SVG(strategy local.Config) string {
	end := max(r.Time, r.Bound, 1)
	x := func(at time.Duration) float64 { return svgLeft + at.Seconds()/end.Seconds()*svgWidth }
	bottom := svgTop + len(r.Lanes)*svgRow
	var b, name strings.Builder
	_ = xml.EscapeText(&name, []byte(StrategyText(strategy))) // A Builder does not fail.
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n", svgLeft+svgWidth+30, bottom+30)
	b.WriteString("<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n")
	fmt.Fprintf(&b, `<text x="%d" y="12">%s</text>`+"\n", svgLeft, &name)
	fmt.Fprintf(&b, `<text x="%d" y="26">efficiency %.4f, %d tasks and %d objects moved; <tspan fill="%s">busy</tspan>, <tspan fill="%s">waits for data</tspan>, idle</text>`+"\n",
		svgLeft, r.Efficiency, r.Moved, r.Objects, colors[Busy], colors[Moving])
	for i, lane := range r.Lanes {
		y := svgTop + i*svgRow
		if i%max(1, len(r.Lanes)/16) == 0 {
			fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end" font-size="8">%d</text>`+"\n", svgLeft-6, y+svgRow-1, i+1)
		}
		for _, state := range []State{Busy, Moving} {
			if path := lane.path(state, x, y); path != "" {
				fmt.Fprintf(&b, `<path fill="%s" d="%s"/>`+"\n", colors[state], path)
			}
		}
	}
	for i := range svgSteps + 1 {
		at := end * time.Duration(i) / svgSteps
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%.3gs</text>`+"\n", x(at), bottom+18, at.Seconds())
	}
	for _, mark := range []struct {
		at          time.Duration
		name, color string
	}{{r.Bound, "bound", "#b03030"}, {r.Time, "end", "#202020"}} {
		fmt.Fprintf(&b, `<path stroke="%s" d="M%.1f %dV%d"><title>%s %.4gs</title></path>`+"\n", mark.color, x(mark.at), svgTop-8, bottom+4, mark.name, mark.at.Seconds())
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// path draws the spans of one state. Those that are closer than what can be seen are one.
func (l Lane) path(state State, x func(time.Duration) float64, y int) string {
	var b strings.Builder
	from, to := 0.0, -1.0
	flush := func() {
		if to >= 0 {
			fmt.Fprintf(&b, "M%.1f %dH%.1fv%dH%.1fz", from, y+1, to, svgRow-2, from)
		}
	}
	for i, s := range l {
		if s.State != state || i+1 == len(l) {
			continue
		}
		begin, end := x(s.At), x(l[i+1].At)
		if to >= 0 && begin-to < 0.5 {
			to = end
			continue
		}
		flush()
		from, to = begin, end
	}
	flush()
	return b.String()
}
