package ruletest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/internal/draw"
	"github.com/gopegasus/pegasus/predicates"
)

// SVG draws the failure: a lane for each participant and each predicate, the times that the expectation names, and
// the expected and the actual result. Equal runs give equal pictures.
func (f *Failure) SVG() string {
	p := draw.Picture{
		Head:  []string{fmt.Sprintf("FAIL %s:%d: %s", f.File, f.Line, f.test.Name)},
		Lanes: f.run.lanes(f.test, f.subject),
		To:    max(f.test.lasts, 1),
	}
	for _, w := range f.Want {
		p.Head = append(p.Head, "expected "+w)
	}
	for _, g := range f.Got {
		p.Head = append(p.Head, "got      "+g)
	}
	for _, s := range f.when {
		p.Bands = append(p.Bands, draw.Span{From: s.from, To: s.to, Style: draw.Found, Title: "the expectation names this time: " + s.String()})
	}
	return p.SVG()
}

// lanes are those of the participants, and of the predicates: the one that the failure is about first.
func (l *log) lanes(t *Test, subject string) (lanes []draw.Lane) {
	for _, p := range t.members {
		lane := draw.Lane{Label: p.name}
		before := ""
		for _, h := range l.states[p.name] {
			text := ""
			if h.what != nil {
				text = rowText(t.plan.State, h.what)
			}
			addSpan(&lane, h.at, text, draw.State)
			if text != before { // Short: only the fields that are different.
				known, last := strings.Fields(before), &lane.Spans[len(lane.Spans)-1]
				last.Texts = append(last.Texts, strings.Join(slices.DeleteFunc(strings.Fields(text), func(w string) bool { return slices.Contains(known, w) }), " "))
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
		lane := draw.Lane{Label: name}
		for _, h := range l.verdicts[name] {
			addSpan(&lane, h.at, h.what.truth.String(), truthStyle(h.what.truth))
			if h.what.fired {
				lane.Marks = append(lane.Marks, draw.Mark{At: h.at, Title: fmt.Sprintf("%s fires at %s", name, clock(h.at))})
			}
		}
		lanes = append(lanes, lane)
	}
	for i := range lanes {
		l := &lanes[i]
		if n := len(l.Spans); n > 0 && l.Spans[n-1].To < 0 {
			l.Spans[n-1].To = t.lasts
		}
		l.Spans = slices.DeleteFunc(l.Spans, func(s draw.Span) bool { return s.Texts[0] == "" || s.To <= 0 })
		for k := range l.Spans {
			s := &l.Spans[k]
			s.Title = fmt.Sprintf("%s %s: %s", span{s.From, s.To}, l.Label, s.Texts[0])
		}
	}
	return lanes
}

func truthStyle(t predicates.Truth) draw.Style {
	switch t {
	case predicates.True:
		return draw.True
	case predicates.False:
		return draw.False
	default:
		return draw.Unknown
	}
}

// addSpan begins a span of a lane and ends the span before. Its end is below 0 until it is known.
func addSpan(l *draw.Lane, at time.Duration, text string, style draw.Style) {
	at = max(at, 0)
	if n := len(l.Spans); n > 0 {
		if l.Spans[n-1].Texts[0] == text {
			return
		}
		l.Spans[n-1].To = at
	}
	l.Spans = append(l.Spans, draw.Span{From: at, To: -1, Style: style, Texts: []string{text}})
}
