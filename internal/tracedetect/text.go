package tracedetect

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gopegasus/pegasus/clocksync"
)

// Text writes global states as lines for people.
type Text struct {
	options   *Options
	printable func(string) string
	begun     bool
}

// NewText returns a writer of the states that New finds with the same options.
// printable makes of a text what a terminal may get: names come from the trace.
func NewText(o *Options, printable func(string) string) *Text {
	return &Text{options: o, printable: printable}
}

// Append appends a state as a line, after a header before the first.
func (t *Text) Append(dst []byte, s *State) []byte {
	if !t.begun {
		t.begun = true
		dst = row(dst, "CORE (NS)", "ENVELOPE (NS)", "MEMBERS (+ STILL OPEN)")
	}
	core := "-"
	if s.HasCore {
		core = intervalText(s.Core)
	}
	members := make([]string, len(s.Parts))
	for i := range s.Parts {
		members[i] = t.part(&s.Parts[i])
	}
	line := strings.Join(members, " ")
	if s.Epoch > 0 {
		line = fmt.Sprintf("epoch %d: %s", s.Epoch, line)
	}
	if s.Grows {
		line += " (grows)"
	}
	return row(dst, core, intervalText(s.Envelope), t.printable(line))
}

func row(dst []byte, core, envelope, members string) []byte {
	return fmt.Appendf(dst, "%-24s  %-24s  %s\n", core, envelope, members)
}

// part gives "p1:3" and "p1#2:3-5+": the incarnation above 1, the run, and
// whether it is open.
func (t *Text) part(p *Part) string {
	text := t.options.Participants[p.Member].Name
	if p.Incarnation > 1 {
		text += "#" + strconv.FormatUint(p.Incarnation, 10)
	}
	text += ":" + strconv.FormatUint(p.First, 10)
	switch {
	case p.Open:
		return text + "+"
	case p.Last != p.First:
		return text + "-" + strconv.FormatUint(p.Last, 10)
	}
	return text
}

func intervalText(i clocksync.Interval) string {
	return "[" + i.Earliest.String() + ", " + i.Latest.String() + ")"
}
