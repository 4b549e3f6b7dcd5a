package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
)

// namesShown is how many members a line names.
const namesShown = 8

// text gives an entry as lines for people.
func text(e entry) string {
	switch first := e.event.(type) {
	case ready:
		return first.String()
	case programReady:
		return first.String()
	case watching:
		return printable(first.String()) + "\n"
	}
	line := phrase(e.event)
	if e.from != "" {
		line = e.from + ": " + line
	}
	return e.at.Format("15:04:05.000 ") + printable(line) + "\n"
}

// phrase is the part of a line that the event makes.
func phrase(event any) string {
	switch e := event.(type) {
	case monitor.Epoch:
		return epochText(&e)
	case lost:
		return "lost member " + e.member + ": " + e.reason
	case monitor.Verdict:
		return verdictText(&e)
	case monitor.Fate:
		return fateText(&e)
	case monitor.Clock:
		return clockText(&e)
	case refusal:
		if e.last {
			return fmt.Sprintf("refused %s: %s (further refusals are told with -v)", e.From, e.Reason)
		}
		return fmt.Sprintf("refused %s: %s", e.From, e.Reason)
	case *liveEvent:
		return e.text()
	case standing:
		return standingText(e.Status)
	case notice:
		return e.text
	case monitor.ProgramEvent:
		return programText(&e)
	case monitor.Plan:
		p := e.Status()
		return planText(&p, len(p.Moves), len(p.Refused)+p.LeftOut)
	case monitor.Reload:
		return reloadedText(e.Config, e.Changes)
	case kept:
		return "reload refused, the old configuration stays in force: " + oneLine(e.reason)
	case difference:
		return differenceText(&e)
	case replayed:
		return e.String()
	case stopped:
		return stoppedText(&e)
	case skipped:
		return fmt.Sprintf("%s left out: the output is read too slowly", count(uint64(e), "line"))
	}
	panic(fmt.Sprintf("pegasus: no text for %T", event))
}

// String tells a newcomer what to do next.
func (r ready) String() string {
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

func epochText(e *monitor.Epoch) string {
	if e.Epoch == 0 {
		return strings.TrimSuffix("too few members, nothing is decided: "+some(e.Members), ": ")
	}
	line := fmt.Sprintf("epoch %d with %s: %s", e.Epoch, count(len(e.Members), "member"), some(e.Members))
	if len(e.Joined) > 0 && len(e.Joined) < len(e.Members) {
		line += "; new: " + some(e.Joined)
	}
	return line
}

func verdictText(v *monitor.Verdict) string {
	if !v.Fired {
		line := fmt.Sprintf("%s is %v", v.Predicate, v.Truth)
		if v.Truth == predicates.Unknown {
			line += ": " + v.Reason
		}
		return line + keptBack(v.Suppressed, false)
	}
	parts := make([]string, len(v.Witness))
	for i := range v.Witness {
		parts[i] = v.Witness[i].String()
	}
	return fmt.Sprintf("%s fired (decision %v) on %s; %s", v.Predicate, v.Decision, some(parts), spanText(v)) + keptBack(v.Suppressed, true)
}

// keptBack tells what a cooldown does to a predicate, or did before it fired.
func keptBack(firings uint64, fired bool) string {
	switch {
	case firings == 0:
		return ""
	case fired:
		return fmt.Sprintf("; its cooldown had kept back %s", count(firings, "firing"))
	}
	return "; its cooldown keeps it from firing"
}

// spanText says how long the global state certainly held so far, and by which
// bound that is known.
func spanText(v *monitor.Verdict) string {
	return heldBy(v.Modality, v.Span.SameClock, v.Span.HasCore, v.Span.Certain().Seconds(), v.Bound.Seconds(), v.Sources)
}

// clockText says what the status of a member's clock means for verdicts.
func clockText(c *monitor.Clock) string {
	line := fmt.Sprintf("clock of %s is %v", c.Name, c.Quality.Status)
	if c.Quality.Source != "" {
		line += " by " + c.Quality.Source
	}
	switch c.Quality.Status {
	case clocksync.Unknown, clocksync.Untrusted:
		line += "; nothing is certain between it and other hosts"
	case clocksync.Synchronized, clocksync.Degraded:
	}
	return line
}

// brief gives a duration with three digits or so.
func brief(d time.Duration) string {
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if d >= unit {
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}

// targetText names a member, with its group if that is another one.
func targetText(group, member string) string {
	if group == "" {
		return member
	}
	return group + "/" + member
}

func fateText(f *monitor.Fate) string {
	s := f.Signal
	line := fmt.Sprintf("signal %s (%v region %s, decision %v) to %s: %v", s.Name, s.Kind, s.Region, s.Decision, targetText(f.Group, s.Target), f.Fate)
	if f.Detail != "" {
		line += " (" + f.Detail + ")"
	}
	return line
}

func stoppedText(s *stopped) string {
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

func reloadedText(config string, changes []string) string {
	if len(changes) == 0 {
		return "reloaded " + config + ": nothing is different"
	}
	return "reloaded " + config + ": " + strings.Join(changes, "; ")
}

// planText is one line of a plan, of which not all moves and refusals are known.
func planText(p *monitor.PlanStatus, moves, refused int) string {
	line := "no load moves (" + p.Strategy + "): " + p.Verdict
	if moves > 0 {
		parts := make([]string, len(p.Moves))
		for i, m := range p.Moves {
			parts[i] = fmt.Sprintf("%s from %s to %s", m.Load, m.From, m.To)
		}
		line = fmt.Sprintf("%s (%s, decision %s): %s; longest queue %s, then %s: %s", count(moves, "move"), p.Strategy, p.Decision, p.Verdict,
			queueText(p.Before), queueText(p.After), someOf(parts, moves))
	}
	if refused > 0 {
		line += fmt.Sprintf("; %d refused", refused)
	}
	return line
}

// queueText is a queue in seconds, nil without end.
func queueText(seconds *float64) string {
	if seconds == nil {
		return "without end"
	}
	return secondsText(*seconds)
}

// some lists the first names and counts the others.
func some(names []string) string { return someOf(names, len(names)) }

// someOf does so where not all are in the list.
func someOf(names []string, total int) string {
	shown := min(len(names), namesShown)
	text := strings.Join(names[:shown], ", ")
	if total > shown {
		text += fmt.Sprintf(" and %d more", total-shown)
	}
	return text
}

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
