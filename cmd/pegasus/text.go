package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/monitor"
)

// text gives an entry as lines for people.
func text(e entry) string {
	line := phrase(e.event)
	switch e.event.(type) {
	case ready:
		return line
	case watching:
		return printable(line) + "\n"
	}
	if e.from != "" {
		line = e.from + ": " + line
	}
	return e.at.Format("15:04:05.000 ") + printable(line) + "\n"
}

// phrase is the part of a line that the event makes.
func phrase(event any) string {
	if own, ok := event.(fmt.Stringer); ok {
		return own.String()
	}
	l := event.(monitor.Event).Line() //nolint:forcetypeassert // It is nothing else.
	return l.String()
}

func (r refusal) String() string {
	line := phrase(r.Rejection)
	if r.last {
		line += " (further refusals are told with -v)"
	}
	return line
}

func (n notice) String() string { return n.text }

func (s skipped) String() string {
	return count(uint64(s), "line") + " left out: the output is read too slowly"
}

// String tells a newcomer what to do next.
func (r ready) String() string {
	if r.program != "" {
		tenant := ""
		if r.tenant != "default" {
			tenant = " --tenant " + r.tenant
		}
		l := &r.levels[0]
		return fmt.Sprintf("%s\n%s: %s awaits %s of group %s. Nodes join with: pegasus node --nats %s --group %s%s --name n1 --block NAME=COMMAND\n",
			r.url, r.program, l.Name, count(l.Count, "processor"), l.Group, r.url, l.Group, tenant)
	}
	var b strings.Builder
	b.WriteString(r.url + "\n")
	for _, l := range r.levels {
		fmt.Fprintf(&b, "%s awaits %s of group %s; %s\n", l.Name, count(l.Count, "member"), l.Group, count(len(l.Predicates), "predicate"))
	}
	tenant := ""
	if r.tenant != "default" {
		tenant = fmt.Sprintf(", Tenant: %q", r.tenant)
	}
	if r.secured {
		b.WriteString("Members put NAME:PASSWORD@ before the host in the URL.\n")
	}
	if r.http != "" {
		fmt.Fprintf(&b, "Metrics are at %s/metrics, health at %s/readyz.\n", r.http, r.http)
	}
	fmt.Fprintf(&b, "A member joins with agent.Join(ctx, %q, agent.Config{Group: %q, Name: \"w1\"%s}). Ctrl-C ends the run.\n", r.url, r.levels[0].Group, tenant)
	return b.String()
}

// brief gives a duration with three digits or so.
func brief(d time.Duration) string { return monitor.Seconds(d.Seconds()) }

func (s stopped) String() string {
	var fates []string
	for _, f := range control.Fates {
		if n := s.Fates[f]; n > 0 {
			fates = append(fates, fmt.Sprintf("%d %v", n, f))
		}
	}
	line := fmt.Sprintf("stopped after %s and %s", count(s.Frames, "frame"), count(s.Decisions, "decision"))
	if len(fates) > 0 {
		line += "; signals: " + strings.Join(fates, ", ")
	}
	if refused := s.Malformed + s.Rejected; refused > 0 {
		line += fmt.Sprintf("; %d refused", refused)
	}
	if lost := s.Journal.Lost; lost > 0 {
		line += fmt.Sprintf("; the journal lacks %s", count(lost, "input"))
	}
	if s.Dropped > 0 {
		line += fmt.Sprintf("; %d lost because this process was too slow", s.Dropped)
	}
	return line
}

// some lists the first names and counts the others.
func some(names []string) string { return monitor.Some{Count: len(names), Names: names}.String() }

// tabulate aligns rows below each other.
func tabulate(rows [][]string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		_, _ = fmt.Fprintln(w, strings.Join(r, "\t"))
	}
	_ = w.Flush() // A builder takes everything.
	var lines []string
	for line := range strings.Lines(b.String()) {
		lines = append(lines, strings.TrimRight(line, " \n")+"\n")
	}
	return strings.Join(lines, "")
}

// printable replaces what could move the cursor or break the line: some texts
// come from members.
func printable(line string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, line)
}
