package ruletest

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gopegasus/pegasus/predicates"
)

// The measures of a picture, in pixels.
const (
	letterWidth  = 7 // of the letters of 12 pixels: textLength sets it, whatever the font
	plotWidth    = 840
	laneHeight   = 20
	lineHeight   = 16
	pictureEdge  = 12
	longestLabel = 28 // letters
	axisSteps    = 5
)

// pictureStyle has the colours, light and dark. Verdicts differ by their border, too.
const pictureStyle = `<style>
:root { --back: #fff; --text: #222; --line: #ccc; --state: #d7e3f1; --true: #bfe3c6; --false: #f4f4f4; --unknown: #fff; --band: #c0392b; }
@media (prefers-color-scheme: dark) {
:root { --back: #16191d; --text: #e6e6e6; --line: #444; --state: #24415f; --true: #1f5130; --false: #26292e; --unknown: #16191d; --band: #ff8a7a; }
}
text { font: 12px monospace; fill: var(--text); }
.back { fill: var(--back); } .state { fill: var(--state); stroke: var(--line); }
.true { fill: var(--true); stroke: var(--text); } .false { fill: var(--false); stroke: var(--line); } .unknown { fill: var(--unknown); stroke: var(--text); stroke-dasharray: 3 3; }
.line { stroke: var(--line); } .mark { fill: var(--text); } .band { fill: var(--band); fill-opacity: 0.15; stroke: var(--band); }
</style>
`

// pictureLane is a row of a picture.
type pictureLane struct {
	label string
	spans []pictureSpan
	marks []time.Duration // firings
}

// pictureSpan is a part of a lane. The first of its texts that fits stands in it.
type pictureSpan struct {
	from, to time.Duration
	class    string
	texts    []string
}

// SVG draws the failure: a lane for each participant and each predicate, the times that the expectation names, and
// the expectation. Equal runs give equal pictures.
func (f *Failure) SVG() string {
	lanes := f.run.lanes(f.test, f.subject)
	left := 0
	for _, l := range lanes {
		left = max(left, min(longestLabel, utf8.RuneCountInString(l.label)))
	}
	left = pictureEdge + left*letterWidth + pictureEdge
	width := left + plotWidth + pictureEdge
	heads := wrapText(fmt.Sprintf("FAIL %s:%d: %s", f.File, f.Line, f.test.Name), width)
	for _, w := range f.Want {
		heads = append(heads, wrapText("expected "+w, width)...)
	}
	for _, g := range f.Got {
		heads = append(heads, wrapText("got      "+g, width)...)
	}
	top := pictureEdge + len(heads)*lineHeight + pictureEdge
	bottom := top + len(lanes)*laneHeight
	lasts := max(f.test.lasts, 1)
	x := func(at time.Duration) int {
		return left + int(min(max(at, 0), lasts).Seconds()/lasts.Seconds()*plotWidth)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d">`+"\n"+pictureStyle+`<rect class="back" width="100%%" height="100%%"/>`+"\n", width, bottom+2*lineHeight)
	for i, line := range heads {
		writeText(&b, pictureEdge, pictureEdge+(i+1)*lineHeight-4, line)
	}
	for i, l := range lanes {
		y := top + i*laneHeight
		writeText(&b, pictureEdge, y+14, cutText(l.label, longestLabel))
		for _, s := range l.spans {
			from, to := x(s.from), max(x(s.to), x(s.from)+1)
			fmt.Fprintf(&b, `<rect class="%s" x="%d" y="%d" width="%d" height="%d"><title>%s %s: %s</title></rect>`+"\n",
				s.class, from, y+2, to-from, laneHeight-4, span{max(s.from, 0), s.to}, escapeText(l.label), escapeText(s.texts[0]))
			for _, text := range s.texts {
				if utf8.RuneCountInString(text)*letterWidth+8 <= to-from {
					writeText(&b, from+4, y+14, text)
					break
				}
			}
		}
		for _, at := range l.marks {
			fmt.Fprintf(&b, `<path class="mark" d="M%d %dl-4 -5h8z"><title>%s fires at %s</title></path>`+"\n", x(at), y+5, escapeText(l.label), clock(at))
		}
	}
	for _, s := range f.when {
		fmt.Fprintf(&b, `<rect class="band" x="%d" y="%d" width="%d" height="%d"><title>the expectation names this time: %s</title></rect>`+"\n", x(s.from), top, max(x(s.to)-x(s.from), 1), bottom-top, s)
	}
	for i := range axisSteps {
		at := lasts * time.Duration(i) / (axisSteps - 1)
		text := at.Round(max(lasts/1000, time.Microsecond)).String()
		fmt.Fprintf(&b, `<path class="line" d="M%d %dV%d"/>`+"\n", x(at), bottom, bottom+4)
		writeText(&b, x(at)-i*letterWidth*len(text)/(axisSteps-1), bottom+lineHeight, text)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// lanes are those of the participants, and of the predicates: the one that the failure is about first.
func (l *log) lanes(t *Test, subject string) (lanes []pictureLane) {
	for _, p := range t.members {
		lane := pictureLane{label: p.name}
		before := ""
		for _, h := range l.states[p.name] {
			text := ""
			if h.what != nil {
				text = rowText(t.plan.State, h.what)
			}
			lane.add(h.at, text, "state")
			if text != before { // Short: only the fields that are different.
				known, last := strings.Fields(before), &lane.spans[len(lane.spans)-1]
				last.texts = append(last.texts, strings.Join(slices.DeleteFunc(strings.Fields(text), func(w string) bool { return slices.Contains(known, w) }), " "))
			}
			before = text
		}
		lanes = append(lanes, lane)
	}
	names := t.plan.Predicates()
	if i := slices.Index(names, subject); i >= 0 {
		names = slices.Concat([]string{subject}, names[:i], names[i+1:])
	}
	for _, name := range names {
		lane := pictureLane{label: name}
		for _, h := range l.verdicts[name] {
			lane.add(h.at, h.what.truth.String(), truthClass(h.what.truth))
			if h.what.fired {
				lane.marks = append(lane.marks, h.at)
			}
		}
		lanes = append(lanes, lane)
	}
	for i := range lanes {
		if n := len(lanes[i].spans); n > 0 && lanes[i].spans[n-1].to < 0 {
			lanes[i].spans[n-1].to = t.lasts
		}
		lanes[i].spans = slices.DeleteFunc(lanes[i].spans, func(s pictureSpan) bool { return s.texts[0] == "" || s.to <= 0 })
	}
	return lanes
}

func truthClass(t predicates.Truth) string {
	switch t {
	case predicates.True:
		return "true"
	case predicates.False:
		return "false"
	default:
		return "unknown"
	}
}

// add begins a span, which ends the one before. Its end is below 0 until it is known.
func (l *pictureLane) add(at time.Duration, text, class string) {
	at = max(at, 0)
	if n := len(l.spans); n > 0 {
		if l.spans[n-1].texts[0] == text {
			return
		}
		l.spans[n-1].to = at
	}
	l.spans = append(l.spans, pictureSpan{at, -1, class, []string{text}})
}

// wrapText cuts a text into lines of a width in pixels.
func wrapText(text string, width int) (lines []string) {
	most := (width - 2*pictureEdge) / letterWidth
	for letters := []rune(text); len(letters) > 0; {
		n := min(most, len(letters))
		lines = append(lines, string(letters[:n]))
		letters = letters[n:]
	}
	return lines
}

func cutText(text string, most int) string {
	if letters := []rune(text); len(letters) > most {
		return string(letters[:most-1]) + "…"
	}
	return text
}

// writeText writes a line of text, with the width that its letters are reckoned with.
func writeText(b *strings.Builder, x, y int, text string) {
	fmt.Fprintf(b, `<text x="%d" y="%d" textLength="%d" lengthAdjust="spacingAndGlyphs" xml:space="preserve">%s</text>`+"\n", x, y, letterWidth*utf8.RuneCountInString(text), escapeText(text))
}

func escapeText(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // A Builder does not fail.
	return b.String()
}
