package show

import (
	"fmt"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/draw"
	"github.com/gopegasus/pegasus/monitor"
)

// WhySVG draws the witness of the last decision, with the numbers of [Why]. The error says why there is no witness.
func WhySVG(e *monitor.Explanation) (string, error) {
	d := e.Last
	switch {
	case d == nil:
		return "", fmt.Errorf("predicate %s of %s has not fired: there is no decision to draw yet", e.Name, e.Synchronizer)
	case d.Inherited:
		return "", fmt.Errorf("predicate %s of %s fired last under the process that led before: its witness is not known here", e.Name, e.Synchronizer)
	}
	s := witnessScale(d)
	text, _, _ := strings.Cut(Why(e), "\n") // The verdict.
	decision, _, _ := strings.Cut(decisionText(d), "\n")
	p := draw.Picture{
		Head: []string{text, "when " + strings.Join(strings.Fields(e.When), " "), decision},
		Legend: []draw.Key{
			{Style: draw.True, Text: "all certainly held together"},
			{Style: draw.State, Text: "the state certainly held"},
			{Style: draw.Bound, Text: "may have held, by the bounds of the clocks"},
			{Style: draw.Unknown, Text: "not over at the decision, or unknown"},
		},
		From: time.Duration(s.from), To: time.Duration(s.to),
	}
	if d.LeftOut > 0 {
		p.Head = append(p.Head, fmt.Sprintf("and %s more, which are not drawn", Count(d.LeftOut, "member")))
	}
	together := draw.Lane{Label: "together", Spans: []draw.Span{newSpan(d.Envelope.From, d.Envelope.To, draw.Bound, "all may have held together: "+momentText(d.Envelope))}}
	zero := "0s: from here on all may have held together"
	if d.Core != nil {
		zero = "0s: from here on all certainly held together"
		together.Spans = append(together.Spans, newSpan(d.Core.From, d.Core.To, draw.True, "all certainly held together: "+momentText(*d.Core)))
	}
	p.AddLine(0, draw.Found, zero)
	p.Lanes = append(p.Lanes, together)
	for i := range d.Witness {
		p.Lanes = append(p.Lanes, witnessLane(&d.Witness[i]))
	}
	return p.SVG(), nil
}

func newSpan(from, to clocksync.Instant, style draw.Style, title string, texts ...string) draw.Span {
	return draw.Span{From: time.Duration(from), To: time.Duration(to), Style: style, Title: title, Texts: texts}
}

// witnessLane draws the state of a member: hatched from its earliest beginning to its latest end, and what is certain in it.
func witnessLane(w *monitor.WitnessState) draw.Lane {
	l := draw.Lane{Label: w.Member}
	if w.Unknown {
		l.Spans = []draw.Span{newSpan(clocksync.MinInstant, clocksync.MaxInstant, draw.Unknown, w.Member+": nothing is known of its state", "unknown")}
		return l
	}
	until := "held until " + momentText(w.End)
	if w.Open {
		until = "held until " + signedInstant(w.End.From) + " or longer"
	}
	title := fmt.Sprintf("%s, report %d: began %s, %s: %s", w.Member, w.Seq, momentText(w.Start), until, w.State)
	mayEnd := w.End.To
	if w.Open {
		mayEnd = w.End.From
	}
	if w.Start.From < w.Start.To || w.End.From < mayEnd {
		l.Spans = append(l.Spans, newSpan(w.Start.From, mayEnd, draw.Bound, title))
	}
	if w.Start.To <= w.End.From {
		l.Spans = append(l.Spans, newSpan(w.Start.To, w.End.From, draw.State, title, w.State.String()))
	}
	if w.Open {
		l.Spans = append(l.Spans, newSpan(w.End.From, clocksync.MaxInstant, draw.Unknown, title, "not over"))
	}
	return l
}
