package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/internal/tracedetect"
)

// table writes global states as lines for people.
type table struct {
	options *tracedetect.Options
	begun   bool
}

// append appends a state as a line, after a header before the first.
func (t *table) append(dst []byte, s *tracedetect.State) []byte {
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
	return row(dst, core, intervalText(s.Envelope), show.Printable(line))
}

func row(dst []byte, core, envelope, members string) []byte {
	return fmt.Appendf(dst, "%-24s  %-24s  %s\n", core, envelope, members)
}

// part gives "p1:3" and "p1#2:3-5+": the incarnation above 1, the run, and
// whether it is open.
func (t *table) part(p *tracedetect.Part) string {
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

// summary is what --stats tells.
func summary(w io.Writer, s tracedetect.Stats, skipped uint64) {
	line := func(name, format string, args ...any) {
		_, _ = fmt.Fprintf(w, "%-14s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("reports", "%d: %d states, %d alive, %d leaves; %d restarts", s.States+s.Alive+s.Leaves, s.States, s.Alive, s.Leaves, s.Restarts)
	line("losses", "%d reports missing in %d gaps", s.Lost, s.Gaps)
	line("duplicates", "%d; %d late alive, %d of old incarnations", s.Duplicates, s.OldAlive, s.OldIncarnations)
	line("ignored", "%d of no member, %d of members that had left, %d faulty", s.NotMembers, s.Gone, skipped)
	line("global states", "%d printed, %d not kept by --when; %d more with an unknown member", s.Emitted, s.Filtered, s.Partial)
	bounds := "none"
	if s.Bounded > 0 {
		bounds = fmt.Sprintf("%v to %v from earliest to latest", s.Narrowest, s.Widest)
	}
	line("bounds", "%s; %d stamps unbounded", bounds, s.Unbounded)
}
