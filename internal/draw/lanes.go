// Package draw draws lanes over time as an SVG picture, in a light and a dark form.
//
// Equal values give equal pictures. Any text is safe in a picture: U+FFFD replaces characters that SVG cannot hold or that
// reorder a line. No label lies over another label, a mark or a line, or outside of the picture: textLength fixes the
// width of a label for any font.
package draw

import (
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The measures of a picture, in pixels.
const (
	letter    = 7 // width of a letter
	ascent    = 10
	descent   = 3
	line      = 16
	plot      = 840 // width of the time axis
	lane      = 20
	thinLane  = 8
	edge      = 12
	mark      = 4  // height of a mark, and half of its width
	labelMost = 28 // letters of a label
	axisSteps = 5
)

// Style is the look of a bar or a band. Styles differ by their fills or borders too, and not by their colours alone.
type Style string

// The styles.
const (
	State   Style = "state"   // a local state
	True    Style = "true"    // a verdict
	False   Style = "false"   // a verdict
	Unknown Style = "unknown" // a verdict
	Busy    Style = "busy"    // work
	Waits   Style = "waits"   // work that waits
	Bound   Style = "bound"   // hatched: within the bounds of clocks
	Found   Style = "band"    // translucent: a time across the lanes
	Line    Style = "line"    // a bound across the lanes
)

const styles = `<style>
:root { --back: #fff; --text: #222; --line: #ccc; --state: #d7e3f1; --true: #bfe3c6; --false: #f4f4f4; --unknown: #fff; --busy: #3b6ea5; --waits: #d98e2b; --band: #c0392b; }
@media (prefers-color-scheme: dark) {
:root { --back: #16191d; --text: #e6e6e6; --line: #444; --state: #24415f; --true: #1f5130; --false: #26292e; --unknown: #16191d; --busy: #5b9bd5; --waits: #e0a050; --band: #ff8a7a; }
}
text { font: 12px monospace; fill: var(--text); }
.back { fill: var(--back); } .state { fill: var(--state); stroke: var(--line); } .busy { fill: var(--busy); } .waits { fill: var(--waits); }
.true { fill: var(--true); stroke: var(--text); } .false { fill: var(--false); stroke: var(--line); } .unknown { fill: var(--unknown); stroke: var(--text); stroke-dasharray: 3 3; }
.bound { fill: url(#hatch); stroke: var(--line); } .hatch { stroke: var(--text); stroke-opacity: 0.5; }
.axis { stroke: var(--line); } .mark { fill: var(--text); } .line { fill: var(--text); } .band { fill: var(--band); fill-opacity: 0.15; stroke: var(--band); }
</style>
<defs><pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path class="hatch" d="M0 0V5"/></pattern></defs>
`

// ThinLanes is the number of lanes from which on a picture of many bars is easier to read with Thin.
const ThinLanes = 33

// Picture is a picture of lanes.
type Picture struct {
	Head     []string      // texts above the lanes; long ones are wrapped
	Legend   []Key         // below the head
	Lanes    []Lane        // from top to bottom
	Bands    []Span        // across all lanes
	From, To time.Duration // the part of time that is shown
	Thin     bool          // low lanes without texts in them, of which every second has its label
}

// Key explains a style.
type Key struct {
	Style Style  // what it explains
	Text  string // its meaning
}

// Lane is a row of a picture.
type Lane struct {
	Label string // cut if it is long
	Spans []Span // in the order of their beginnings
	Marks []Mark // triangles
}

// Span is a bar of a lane, or a band across the lanes. It is at least one pixel wide.
type Span struct {
	From, To time.Duration // outside of the picture: cut off
	Style    Style         // its look
	Title    string        // shown under the pointer; touching bars of a style without a title become a single bar
	Texts    []string      // the first that fits stands in the bar
}

// Mark is a point in time of a lane.
type Mark struct {
	At    time.Duration // outside of the picture: at its edge
	Title string        // shown under the pointer
}

// AddLine adds a line across all lanes, and its text to the legend.
func (p *Picture) AddLine(at time.Duration, style Style, text string) {
	p.Bands = append(p.Bands, Span{From: at, To: at, Style: style, Title: text})
	p.Legend = append(p.Legend, Key{style, text})
}

// drawing is a picture while it is drawn.
type drawing struct {
	*Picture

	out              strings.Builder
	left, width, row int
	cuts             []float64 // where bands begin and end
}

// bar is a span in pixels.
type bar struct {
	*Span
	from, to float64
	narrow   bool // one pixel wide
	folded   int  // how many more have the same place
}

// SVG draws it.
func (p *Picture) SVG() string {
	if p.To-p.From < axisSteps-1 { // Each step of the axis needs its own instant.
		wider := *p
		wider.To = p.From + axisSteps - 1
		p = &wider
	}
	d := drawing{Picture: p, row: lane}
	if p.Thin {
		d.row = thinLane
	}
	for i := range p.Lanes {
		d.left = max(d.left, min(labelMost, utf8.RuneCountInString(p.Lanes[i].Label)))
	}
	d.left = edge + d.left*letter + edge
	d.width = d.left + plot + edge
	var heads []string
	for _, h := range p.Head {
		heads = append(heads, wrap(h, (d.width-2*edge)/letter)...)
	}
	legend, legendLines := d.placeLegend()
	top := edge + (len(heads)+legendLines)*line + edge
	bottom := top + len(p.Lanes)*d.row
	fmt.Fprintf(&d.out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d">`+"\n"+styles+`<rect class="back" width="100%%" height="100%%"/>`+"\n", d.width, bottom+2*line)
	for i, h := range heads {
		d.writeText(edge, float64(edge+(i+1)*line-4), h, "")
	}
	for i, at := range legend {
		y := edge + (len(heads)+at[1])*line
		fmt.Fprintf(&d.out, `<rect class="%s" x="%d" y="%d" width="%d" height="%d"/>`+"\n", p.Legend[i].Style, at[0], y+3, line, line-6)
		d.writeText(float64(at[0]+line+letter), float64(y+line-4), p.Legend[i].Text, "")
	}
	for i := range p.Bands {
		b := d.place(&p.Bands[i])
		d.cuts = append(d.cuts, b.from, b.to)
	}
	slices.Sort(d.cuts)
	var texts []func()
	for i := range p.Lanes {
		texts = append(texts, d.drawLane(i, top+i*d.row)...)
	}
	for i := range p.Bands {
		b := d.place(&p.Bands[i])
		d.drawRect(&b, top, bottom-top)
	}
	for _, write := range texts {
		write()
	}
	digit := time.Duration(1) // the smallest decimal digit of the axis
	for digit <= (p.To-p.From)/10_000 {
		digit *= 10
	}
	for i := range axisSteps {
		at := p.From + time.Duration(float64(p.To-p.From)*float64(i)/(axisSteps-1))
		text := at.Round(digit).String()
		fmt.Fprintf(&d.out, `<path class="axis" d="M%v %dV%d"/>`+"\n", d.x(at), bottom, bottom+4)
		d.writeText(d.x(at)-float64(i*letter*utf8.RuneCountInString(text)/(axisSteps-1)), float64(bottom+line), text, "")
	}
	d.out.WriteString("</svg>\n")
	return d.out.String()
}

// placeLegend returns the x and the line of each key, and the number of lines.
func (d *drawing) placeLegend() (at [][2]int, lines int) {
	x := edge
	for i, k := range d.Legend {
		needs := line + letter*(utf8.RuneCountInString(k.Text)+3)
		if i == 0 || x+needs > d.width-edge {
			x = edge
			lines++
		}
		at = append(at, [2]int{x, lines - 1})
		x += needs
	}
	return at, lines
}

// x is where an instant lies, to a tenth of a pixel.
func (d *drawing) x(at time.Duration) float64 {
	at = min(max(at, d.From), d.To)
	return math.Round(10*(float64(d.left)+plot*float64(at-d.From)/float64(d.To-d.From))) / 10
}

// drawLane draws a lane at y, and returns functions that write the texts of its bars after the bands.
func (d *drawing) drawLane(i, y int) (texts []func()) {
	l := &d.Lanes[i]
	base := float64(y + d.row/2 + 4)
	if !d.Thin || i%2 == 0 {
		full := ""
		if utf8.RuneCountInString(l.Label) > labelMost {
			full = l.Label
		}
		d.writeText(edge, base, cut(l.Label), full)
	}
	var order []Style
	plain := map[Style]*strings.Builder{}
	bars := d.bars(l)
	cuts := slices.Clone(d.cuts)
	for i := range bars {
		cuts = append(cuts, bars[i].from, bars[i].to)
	}
	slices.Sort(cuts)
	written, gap := 0.0, max(1, d.row/10)
	for i := range bars {
		b := &bars[i]
		if b.Title != "" {
			d.drawRect(b, y+gap, d.row-2*gap)
		} else {
			if plain[b.Style] == nil {
				plain[b.Style] = &strings.Builder{}
				order = append(order, b.Style)
			}
			fmt.Fprintf(plain[b.Style], "M%v %dH%vv%dH%vz", b.from, y+gap, b.to, d.row-2*gap, b.from)
		}
		if at, text := placeText(b, cuts, written); text != "" && !d.Thin {
			written = at + float64(letter*utf8.RuneCountInString(text))
			texts = append(texts, func() { d.writeText(at, base, text, "") })
		}
	}
	for _, s := range order {
		fmt.Fprintf(&d.out, `<path class="%s" d="%s"><title>%s</title></path>`+"\n", s, plain[s], escape(l.Label))
	}
	for _, m := range l.Marks {
		fmt.Fprintf(&d.out, `<path class="mark" d="M%v %dl-%d -%dh%dz"><title>%s</title></path>`+"\n", d.x(m.At), y+mark, mark, mark, 2*mark, escape(m.Title))
	}
	return texts
}

// bars places the spans of a lane. A bar without a pixel of its own is folded into the bar before with the same style. So a
// lane has at most plot bars of a style.
func (d *drawing) bars(l *Lane) (list []bar) {
	last := map[Style]int{}
	for i := range l.Spans {
		s := &l.Spans[i]
		if s.To < d.From || s.From > d.To {
			continue
		}
		b := d.place(s)
		if k, ok := last[s.Style]; ok {
			before := &list[k]
			if s.Title == "" && before.Title == "" && b.from-before.to < 0.5 {
				before.to = max(before.to, d.x(s.To))
				continue
			}
			if b.narrow && before.narrow && b.from < before.to {
				before.folded++
				continue
			}
		}
		last[s.Style] = len(list)
		list = append(list, b)
	}
	return list
}

func (d *drawing) place(s *Span) bar {
	from, to := d.x(s.From), d.x(s.To)
	return bar{s, from, max(to, from+1), to <= from+1, 0}
}

// placeText returns the first text of a bar that fits between two cuts, and its place. Cuts are ascending.
func placeText(b *bar, cuts []float64, from float64) (at float64, text string) {
	if b.folded > 0 || len(b.Texts) == 0 {
		return 0, ""
	}
	first, _ := slices.BinarySearch(cuts, b.from)
	for _, text := range b.Texts {
		at := max(b.from, from)
		for _, end := range cuts[first:] {
			if end > b.to {
				break
			}
			if at+float64(utf8.RuneCountInString(text)*letter+8) <= end {
				return at + 4, text
			}
			at = max(at, end)
		}
	}
	return 0, ""
}

func (d *drawing) drawRect(b *bar, y, height int) {
	title := b.Title
	if b.folded > 0 {
		title += fmt.Sprintf(", and %d more here", b.folded)
	}
	fmt.Fprintf(&d.out, `<rect class="%s" x="%v" y="%d" width="%v" height="%d"><title>%s</title></rect>`+"\n", b.Style, b.from, y, math.Round(10*(b.to-b.from))/10, height, escape(title))
}

// writeText writes a line of text, with its width in the layout. A title may be empty.
func (d *drawing) writeText(x, y float64, text, title string) {
	if title != "" {
		title = "<title>" + escape(title) + "</title>"
	}
	fmt.Fprintf(&d.out, `<text x="%v" y="%v" textLength="%d" lengthAdjust="spacingAndGlyphs" xml:space="preserve">%s%s</text>`+"\n", x, y, letter*utf8.RuneCountInString(text), escape(text), title)
}

// wrap cuts a text into lines.
func wrap(text string, letters int) (lines []string) {
	for part := range slices.Chunk([]rune(text), letters) {
		lines = append(lines, string(part))
	}
	return lines
}

func cut(text string) string {
	if letters := []rune(text); len(letters) > labelMost {
		return string(letters[:labelMost-1]) + "…"
	}
	return text
}

// escape makes a text of a picture.
func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(strings.Map(func(r rune) rune { // A Builder does not fail.
		if !unicode.IsGraphic(r) {
			return utf8.RuneError
		}
		return r
	}, text)))
	return b.String()
}
