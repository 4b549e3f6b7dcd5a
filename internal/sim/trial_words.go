package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// rowText is a state with its fields, as a configuration writes their values.
func rowText(fields scgs.Schema, row []scgs.Value) string {
	parts := make([]string, len(row))
	for i, v := range row {
		parts[i] = fields[i].Name + "=" + v.String()
	}
	return strings.Join(parts, " ")
}

// witnessText is the state of each member of a witness.
func witnessText(v *monitor.Verdict) string {
	parts := make([]string, len(v.Witness))
	for i := range v.Witness {
		p := &v.Witness[i]
		if parts[i] = p.Name + ": " + rowText(p.Fields, p.Row); p.State.Unknown {
			parts[i] = p.Name + ": unknown"
		}
	}
	return strings.Join(parts, "; ")
}

// spanText is a time between two instants since the trial began.
func spanText(from, to clocksync.Instant) string {
	text := "from the start"
	if from > clocksync.MinInstant {
		text = "from " + time.Duration(from).String()
	}
	if to == clocksync.MaxInstant {
		return text + " to the end"
	}
	return text + " to " + time.Duration(to).String()
}

// togetherText is when the states of a witness held together, if they did.
func togetherText(from, to clocksync.Instant) string {
	if from >= to {
		return fmt.Sprintf("one ended at %v, and another began at %v", time.Duration(to), time.Duration(from))
	}
	return "all held " + spanText(from, to)
}

// conditionText is a condition of a level as its file has it, with the values of its names and parameters. For a single member it
// is the condition on that member.
func conditionText(level *plan.Level, e *predicates.Expression, each bool) string {
	one := func(text string) string {
		if inner, ok := strings.CutPrefix(text, "any(members, "); ok && each {
			return strings.TrimSpace(strings.TrimSuffix(inner, ")"))
		}
		return text
	}
	parts := []string{one(e.Source())}
	if long, named := e.Expanded(); named && one(long) != parts[0] {
		parts = append(parts, "which is "+one(long))
	}
	for i := range level.Params {
		if p := &level.Params[i]; e.Uses().Params&(1<<i) != 0 {
			parts = append(parts, fmt.Sprintf("params.%s = %s", p.Field.Name, p.Value))
		}
	}
	return strings.Join(parts, ", ")
}

// conditionOf is the condition of a predicate, as the judge knows it.
func (l *leader) conditionOf(name string) string {
	if x := l.texts[name]; x != nil {
		return conditionText(l.level, x.When, x.Detector.Each)
	}
	for _, r := range l.level.Rules {
		if r.Name == name && r.When != nil {
			return conditionText(l.level, r.When, r.Detector.Each)
		}
	}
	return name
}
