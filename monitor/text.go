package monitor

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

func (e *Epoch) text(string) string {
	if e.Epoch == 0 {
		return strings.TrimSuffix("too few members, nothing is decided: "+some(e.Members, 0), ": ")
	}
	line := fmt.Sprintf("epoch %d with %s: %s", e.Epoch, count(len(e.Members), "member"), some(e.Members, 0))
	if len(e.Joined) > 0 && len(e.Joined) < len(e.Members) {
		line += "; new: " + some(e.Joined, 0)
	}
	return line
}

func (d *Dropped) text(string) string { return "lost member " + d.Name + ": " + d.Reason }

func (r *Rejection) text(string) string { return "refused " + r.From + ": " + r.Detail }

func (s *Skipped) text(string) string { return count(s.Lines, "event") + " left out: too many at once" }

func (v *VerdictLine) text(string) string {
	if v.Firing == nil {
		line := v.Predicate + " is " + v.Truth
		if v.Reason != "" && v.Truth == predicates.Unknown.String() {
			line += ": " + v.Reason
		}
		if v.Suppressed > 0 {
			line += "; its cooldown keeps it from firing"
		}
		return line
	}
	parts := make([]string, len(v.Witness))
	for i := range v.Witness {
		parts[i] = v.Witness[i].String()
	}
	line := fmt.Sprintf("%s fired (decision %s) on %s; %s", v.Predicate, v.Decision, some(parts, v.WitnessLeftOut), v.Certainty())
	if v.EndedAgo > 0 {
		line += "; it had ended " + Seconds(v.EndedAgo) + " before"
	}
	if v.Suppressed > 0 {
		line += "; its cooldown had kept back " + count(v.Suppressed, "firing")
	}
	return line
}

// String is such as "w1 (phase=idle load=0.5)".
func (w *WitnessLine) String() string {
	switch {
	case w.text != "":
		return w.text
	case w.Unknown:
		return w.Member + " (unknown)"
	case len(w.State) == 0:
		return w.Member
	}
	return w.Member + " (" + w.State.String() + ")"
}

// Certainty says how long the witness certainly held together, and by which bound that
// is known.
func (f *Firing) Certainty() string {
	held, bound := Seconds(f.Held), Seconds(f.Bound)
	if f.Sources != "" {
		bound += " (" + f.Sources + ")"
	}
	switch {
	case f.SameClock:
		return "held " + held + " by the same clock"
	case f.Modality == scgs.Possibly.String():
		return "may have held, by clocks within " + bound
	case f.Held > 0:
		return "held " + held + " by clocks within " + bound
	}
	return "held, for less than the clocks' bound of " + bound
}

func (s *SignalLine) text(string) string {
	target := s.Target
	if s.Group != "" {
		target = s.Group + "/" + target
	}
	decision := "decision " + s.Decision
	switch {
	case s.Decision == control.NoControl:
		decision = s.Decision
	case s.Term > 0:
		decision = fmt.Sprintf("%s of term %d", decision, s.Term)
	}
	line := fmt.Sprintf("signal %s (%s region %s, %s) to %s: %s", s.Signal, s.Kind, s.Region, decision, target, s.Fate)
	if s.Detail != "" {
		line += " (" + s.Detail + ")"
	}
	return line
}

func (c *ClockLine) text(string) string {
	line := "clock of " + c.Member + " is " + c.Status
	if c.Source != "" {
		line += " by " + c.Source
	}
	if c.Status == clocksync.Unknown.String() || c.Status == clocksync.Untrusted.String() {
		line += "; nothing is certain between it and other hosts"
	}
	return line
}

func (r *Reload) text(string) string {
	switch {
	case r.Reason != "":
		return "reload refused, the old configuration is kept: " + r.Reason
	case len(r.Changes) == 0:
		return "reloaded " + r.Config + ": nothing is different"
	}
	return "reloaded " + r.Config + ": " + strings.Join(r.Changes, "; ")
}

func (p *PlanLine) text(string) string {
	left := 0
	if p.PlanCut != nil {
		left = p.MovesLeftOut
	}
	line := "no load moves (" + p.Strategy + "): " + p.Verdict
	if moves := len(p.Moves) + left; moves > 0 {
		parts := make([]string, len(p.Moves))
		for i, m := range p.Moves {
			parts[i] = fmt.Sprintf("%s from %s to %s", m.Load, m.From, m.To)
		}
		line = fmt.Sprintf("%s (%s, decision %s): %s; longest queue %s, then %s: %s", count(moves, "move"), p.Strategy, p.Decision, p.Verdict,
			queue(p.Before), queue(p.After), some(parts, left))
	}
	if refused := len(p.Refused) + p.LeftOut; refused > 0 {
		line += fmt.Sprintf("; %d refused", refused)
	}
	return line
}

// queue is one in seconds, nil without end.
func queue(seconds *float64) string {
	if seconds == nil {
		return "without end"
	}
	return Seconds(*seconds)
}

// subject names a construct: what it is, its name, and which replica.
func (p *ProgramLine) subject() string {
	var text strings.Builder
	text.WriteString(p.Construct)
	if p.Name != "" {
		text.WriteString(" " + p.Name)
	}
	for _, i := range p.Replicas {
		fmt.Fprintf(&text, "[%d]", i)
	}
	return text.String()
}

func (p *ProgramLine) text(event string) string {
	because := ""
	if p.Reason != "" {
		because = ": " + p.Reason
	}
	run := fmt.Sprintf("%s (%s) on %s", p.subject(), p.Block, p.Processor)
	switch event {
	case "start":
		return "start " + run
	case "cancel":
		return "cancel " + run + because
	case "pass":
		text := "passed " + p.subject()
		if p.Iteration > 0 {
			text = fmt.Sprintf("%s: iteration %d begins", p.subject(), p.Iteration)
			if p.Predicate != "" {
				text += ", " + p.Predicate + " is " + strconv.FormatBool(p.Branch != nil && *p.Branch != control.Otherwise)
			}
			if p.Decision != "" {
				text += " (decision " + p.Decision + ")"
			}
			return text
		}
		if p.Predicate != "" {
			text += " by " + p.Predicate
		}
		if p.Branch != nil && *p.Branch != control.Otherwise && p.Construct != "par" {
			text += fmt.Sprintf(", branch %d", *p.Branch)
		}
		if p.Decision != "" {
			text += " (decision " + p.Decision + ")"
		}
		return text
	case "signalled":
		return p.Predicate + " has signalled to " + run + " (decision " + p.Decision + ")"
	case "end":
		return p.subject() + " is " + p.Outcome + because
	case "fail":
		return "failed " + run + because
	case "lost-block":
		return "lost " + run + because
	case "perhaps-twice":
		return fmt.Sprintf("%s, run %d on %s, may have run twice%s", p.subject(), p.Run, p.Processor, because)
	case "finish":
		switch text := "the program is " + p.Outcome; {
		case p.Result != "":
			return text + ": " + p.Result
		case p.ResultBytes > 0:
			return fmt.Sprintf("%s: its result has %d bytes", text, p.ResultBytes)
		default:
			return text + because
		}
	default: // program-refused
		return "the program's interpreter refuses " + p.Reason
	}
}

// Seconds is a duration in seconds as a text with three digits or so, such as "1.23ms".
func Seconds(s float64) string {
	d := time.Duration(math.Round(s * float64(time.Second)))
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if d >= unit {
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}

// namesShown is how many names a text has of a list.
const namesShown = 8

// String lists the first names and counts the others.
func (s Some) String() string {
	shown := min(len(s.Names), namesShown)
	text := strings.Join(s.Names[:shown], ", ")
	if s.Count > shown {
		text += fmt.Sprintf(" and %d more", s.Count-shown)
	}
	return text
}

// some lists names, of which others are left out already.
func some(names []string, left int) string { return Some{len(names) + left, names}.String() }

func count[N int | uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
