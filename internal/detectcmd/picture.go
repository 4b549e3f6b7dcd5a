package detectcmd

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/draw"
	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/internal/tracedetect"
	"github.com/gopegasus/pegasus/internal/tracefile"
	"github.com/gopegasus/pegasus/scgs"
)

// The bounds of a picture. The head of the picture counts the rest.
const (
	mostMembers = 1000
	mostStates  = 100_000
	mostFound   = 1000
	mostLines   = 32  // global states with a line across the lanes
	mostTitle   = 400 // bytes
)

// picture gathers a trace and its global states.
type picture struct {
	names          []string
	lanes          [][]state // by member
	states, others int       // drawn and left out
	found          []foundState
	foundMore      int
	text           *tracedetect.Text
}

// state is a local state.
type state struct {
	seq, incarnation uint64
	start, end       clocksync.Interval // end is the newest evidence while the state is open, or if its end was lost
	open, lost       bool
	text             string
}

// foundState is a global state.
type foundState struct {
	core, envelope clocksync.Interval
	hasCore        bool
	title          string
}

func newPicture(o *tracedetect.Options) *picture {
	p := &picture{lanes: make([][]state, min(len(o.Participants), mostMembers)), text: tracedetect.NewText(o, show.Printable)}
	for _, m := range o.Participants {
		p.names = append(p.names, m.Name)
	}
	return p
}

// note takes a line that counts.
func (p *picture) note(member int, l *tracefile.Line, fields scgs.Schema, row []scgs.Value) {
	if member >= len(p.lanes) {
		if l.Type == tracefile.State {
			p.others++
		}
		return
	}
	lane := &p.lanes[member]
	if n := len(*lane); n > 0 && (*lane)[n-1].open {
		(*lane)[n-1].extend(l)
	}
	if l.Type != tracefile.State {
		return
	}
	if p.states == mostStates {
		p.others++
		return
	}
	p.states++
	s := state{seq: l.Seq, incarnation: l.Incarnation, start: l.Within, end: l.Within, open: true}
	for i, f := range fields {
		if row[i].Type() != scgs.Invalid {
			s.text = strings.TrimSpace(fmt.Sprintf("%s %s=%v", s.text, f.Name, row[i]))
		}
	}
	*lane = append(*lane, s)
}

// extend takes the next line of the member of an open state.
func (s *state) extend(l *tracefile.Line) {
	if next := l.Seq == s.seq+1; l.Incarnation != s.incarnation || l.Seq > s.seq && (!next || l.Type == tracefile.Alive) {
		s.open, s.lost = false, true
		return
	}
	s.end = l.Within
	s.open = l.Type == tracefile.Alive
}

// addFound takes a global state.
func (p *picture) addFound(s *tracedetect.State) {
	if len(p.found) == mostFound {
		p.foundMore++
		return
	}
	lines := strings.Split(strings.TrimSpace(string(p.text.Append(nil, s))), "\n")
	title := "core, envelope, members: " + strings.Join(strings.Fields(lines[len(lines)-1]), " ")
	if len(title) > mostTitle {
		title = title[:mostTitle] + " ..."
	}
	p.found = append(p.found, foundState{s.Core, s.Envelope, s.HasCore, title})
}

// svg draws a lane of the global states and a lane for each member.
func (p *picture) svg(file string) string {
	from, to := clocksync.MaxInstant, clocksync.MinInstant
	add := func(at clocksync.Instant) {
		if at.Finite() {
			from, to = min(from, at), max(to, at)
		}
	}
	for _, lane := range p.lanes {
		for i := range lane {
			for _, in := range []clocksync.Interval{lane[i].start, lane[i].end} {
				add(in.Earliest)
				add(in.Latest)
			}
		}
	}
	if from > to {
		from, to = 0, 1
	}
	d := draw.Picture{
		Head: []string{fmt.Sprintf("%s: %s, %s, %s; 0s is %d ns", file, show.Count(len(p.lanes), "member"), show.Count(p.states, "state"), show.Count(len(p.found), "global state"), from)},
		Legend: []draw.Key{
			{Style: draw.State, Text: "the state certainly held"},
			{Style: draw.Bound, Text: "may have held, by the bounds of the clocks"},
			{Style: draw.Unknown, Text: "not over at the end"},
			{Style: draw.True, Text: "all certainly held together"},
		},
		To: to.Sub(from),
	}
	if members := len(p.names) - len(p.lanes); members+p.others+p.foundMore > 0 {
		d.Head = append(d.Head, fmt.Sprintf("left out: %s, %s, %s", show.Count(members, "member"), show.Count(p.others, "state"), show.Count(p.foundMore, "global state")))
	}
	span := func(at, until clocksync.Instant, style draw.Style, title string, texts ...string) draw.Span {
		at, until = max(at, from), min(until, to)
		return draw.Span{From: at.Sub(from), To: until.Sub(from), Style: style, Title: title, Texts: texts}
	}
	together := draw.Lane{Label: "global states"}
	slices.SortStableFunc(p.found, func(a, b foundState) int { return cmp.Compare(a.envelope.Earliest, b.envelope.Earliest) })
	for i := range p.found {
		f := &p.found[i]
		together.Spans = append(together.Spans, span(f.envelope.Earliest, f.envelope.Latest, draw.Bound, f.title))
		if f.hasCore {
			together.Spans = append(together.Spans, span(f.core.Earliest, f.core.Latest, draw.True, f.title))
		}
		if f.hasCore && len(p.found) <= mostLines {
			d.Bands = append(d.Bands, span(f.core.Earliest, f.core.Earliest, draw.Found, f.title))
		}
	}
	if len(d.Bands) > 0 {
		d.Legend = append(d.Legend, draw.Key{Style: draw.Found, Text: "a global state begins certainly"})
	}
	d.Lanes = append(d.Lanes, together)
	for member, states := range p.lanes {
		lane := draw.Lane{Label: p.names[member]}
		for i := range states {
			s := &states[i]
			number := ":" + strconv.FormatUint(s.seq, 10)
			if s.incarnation > 1 {
				number = "#" + strconv.FormatUint(s.incarnation, 10) + number
			}
			ended, word := s.end.Latest, "ended"
			if s.open || s.lost {
				ended, word = s.end.Earliest, "still held"
			}
			if !ended.Finite() {
				ended = to
			}
			title := fmt.Sprintf("%s%s began %v, %s %v ns: %s", lane.Label, number, s.start, word, s.end, s.text)
			lane.Spans = append(lane.Spans, span(s.start.Earliest, ended, draw.Bound, title))
			if s.start.Latest < s.end.Earliest {
				lane.Spans = append(lane.Spans, span(s.start.Latest, s.end.Earliest, draw.State, title, cmp.Or(s.text, number)))
			}
			if s.open {
				lane.Spans = append(lane.Spans, span(max(s.start.Latest, s.end.Earliest), to, draw.Unknown, title))
			}
		}
		d.Lanes = append(d.Lanes, lane)
	}
	return d.SVG()
}
