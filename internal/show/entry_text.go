package show

import (
	"fmt"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/monitor"
)

// Text is the entry as lines for people.
func (e Entry) Text() string {
	line := phrase(e.Event)
	switch e.Event.(type) {
	case Ready:
		return line
	case Watching:
		return Printable(line) + "\n"
	}
	if e.From != "" {
		line = e.From + ": " + line
	}
	return e.At.Format("15:04:05.000 ") + Printable(line) + "\n"
}

// phrase is the part of a line that the event makes.
func phrase(event any) string {
	if own, ok := event.(fmt.Stringer); ok {
		return own.String()
	}
	l := event.(monitor.Event).Line() //nolint:forcetypeassert // It is nothing else.
	return l.String()
}

// String is what was refused, and why.
func (r Refusal) String() string {
	line := phrase(r.Rejection)
	if r.Last {
		line += " (-v shows further refusals)"
	}
	return line
}

// String is the notice.
func (n Notice) String() string { return string(n) }

// String is how many lines were left out.
func (s Skipped) String() string {
	return Count(uint64(s), "line") + " left out: the output is read too slowly"
}

// String tells a newcomer what to do next.
func (r Ready) String() string {
	if r.Standby {
		var b strings.Builder
		b.WriteString(r.URL + "\n")
		for _, l := range r.Levels {
			fmt.Fprintf(&b, "%s: standing by: another process leads group %s\n", l.Name, l.Group)
		}
		return b.String()
	}
	if r.Program != "" {
		tenant := ""
		if r.Tenant != "default" {
			tenant = " --tenant " + r.Tenant
		}
		l := &r.Levels[0]
		return fmt.Sprintf("%s\n%s: %s awaits %s of group %s. Nodes join with: pegasus node --nats %s --group %s%s --name n1 --block NAME=COMMAND\n",
			r.URL, r.Program, l.Name, Count(l.Count, "processor"), l.Group, r.URL, l.Group, tenant)
	}
	var b strings.Builder
	b.WriteString(r.URL + "\n")
	for _, l := range r.Levels {
		fmt.Fprintf(&b, "%s awaits %s of group %s; %s\n", l.Name, Count(l.Count, "member"), l.Group, Count(len(l.Predicates), "predicate"))
	}
	tenant := ""
	if r.Tenant != "default" {
		tenant = fmt.Sprintf(", Tenant: %q", r.Tenant)
	}
	if r.Secured {
		b.WriteString("Members put NAME:PASSWORD@ before the host in the URL.\n")
	}
	if r.Keys {
		b.WriteString("Members need the credentials of their user: NATS_CREDS=NAME.creds, and with TLS NATS_CA=ca.pem.\n")
	}
	if r.HTTP != "" {
		fmt.Fprintf(&b, "Metrics are at %s/metrics, health at %s/readyz.\n", r.HTTP, r.HTTP)
	}
	fmt.Fprintf(&b, "A member joins with agent.Join(ctx, %q, agent.Config{Group: %q, Name: \"w1\"%s}). Ctrl-C ends the run.\n", r.URL, r.Levels[0].Group, tenant)
	return b.String()
}

// String is what the synchronizer has counted.
func (s Stopped) String() string {
	var fates []string
	for _, f := range control.Fates {
		if n := s.Fates[f]; n > 0 {
			fates = append(fates, fmt.Sprintf("%d %v", n, f))
		}
	}
	line := fmt.Sprintf("stopped after %s and %s", Count(s.Frames, "frame"), Count(s.Decisions, "decision"))
	if len(fates) > 0 {
		line += "; signals: " + strings.Join(fates, ", ")
	}
	if refused := s.Malformed + s.Rejected; refused > 0 {
		line += fmt.Sprintf("; %d refused", refused)
	}
	if lost := s.Journal.Lost; lost > 0 {
		line += fmt.Sprintf("; the journal lacks %s", Count(lost, "input"))
	}
	if s.Dropped > 0 {
		line += fmt.Sprintf("; %d lost because this process was too slow", s.Dropped)
	}
	return line
}

// String says what is watched.
func (w Watching) String() string {
	return fmt.Sprintf("watching %s at %s, tenant %s; Ctrl-C ends it", strings.Join(w.Names, ", "), w.URL, w.Tenant)
}

// String is a status as one line: its global state.
func (s Standing) String() string {
	if s.State == nil {
		ready := 0
		for _, m := range s.Members {
			if m.Standing == monitor.Ready || m.Standing == monitor.InEpoch {
				ready++
			}
		}
		return fmt.Sprintf("no global state yet: %d of %s have a state", ready, Count(s.Awaited, "awaited member"))
	}
	var parts []string
	for _, m := range s.Members {
		if m.Standing == monitor.InEpoch {
			one := monitor.WitnessLine{Member: m.Name, State: m.State, Unknown: m.Unknown}
			parts = append(parts, one.String())
		}
	}
	return fmt.Sprintf("global state %d of epoch %d (%s): %s", s.State.Index, s.State.Epoch, heldText(s.State), Some(parts))
}

// clockTime is the time of day that lines begin with.
func clockTime(t time.Time) string { return t.Format("15:04:05") }

// String is what a journal has come to.
func (r Replayed) String() string {
	line := fmt.Sprintf("%s: %s and %s, ", r.File, Count(r.Inputs, "input"), Count(r.Decisions, "decision"))
	switch {
	case len(r.NotJudged) > 0:
		parts := make([]string, len(r.NotJudged))
		for i, n := range r.NotJudged {
			parts[i] = n.Predicate + " is not judged: " + n.Reason
		}
		line += "not compared: " + strings.Join(parts, "; ")
	case r.FirstDifference > 0:
		line += fmt.Sprintf("other than recorded from line %d on", r.FirstDifference)
	default:
		line += "all as recorded"
	}
	if r.Compared {
		line += fmt.Sprintf("; the other configuration comes to %s", Count(r.Differences, "other verdict"))
	}
	if !r.Complete {
		line += "; " + r.Why
	}
	return line
}

// String is both verdicts.
func (d Difference) String() string {
	place := fmt.Sprintf("%s in epoch %d: ", d.Predicate, d.Epoch)
	if d.Recorded == d.Changed {
		return place + "both are " + d.Recorded.String()
	}
	return fmt.Sprintf("%srecorded %v -> %v", place, d.Recorded, d.Changed)
}
