package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// Redacts reports whether the level has a redacted field, or a predicate whose signal carries a
// redacted value.
func (p *Level) Redacts() bool {
	return p.State.Redacts() || p.Process.Redacts() || p.Memory().Redacts() ||
		slices.ContainsFunc(p.Env.Parent, func(s predicates.ParentSignal) bool { return s.Fields.Redacts() })
}

// Redacted names the redacted fields of the state, of the process (process.x) and of
// the memory (memory.x).
func (p *Level) Redacted() (names []string) {
	for _, of := range []struct {
		prefix string
		fields scgs.Schema
	}{{"", p.State}, {"process.", p.Process}, {"memory.", p.Memory()}} {
		for _, f := range of.fields {
			if f.Redact {
				names = append(names, of.prefix+f.Name)
			}
		}
	}
	return names
}

// ShownData names the data of a signal of a predicate that do not depend on redacted
// fields; known is false if the level has no such signal.
func (p *Level) ShownData(predicate, signal string) (names []string, known bool) {
	for _, r := range p.Rules {
		for i := range r.Signals {
			if r.Name != predicate || r.Signals[i].Name != signal {
				continue
			}
			known = true
			for _, d := range r.Signals[i].Data {
				if !d.Redact {
					names = append(names, d.Name)
				}
			}
		}
	}
	return names, known
}

// Unrecorded is a predicate that cannot be judged without the values of redacted fields.
type Unrecorded struct {
	Predicate string // its name
	Reason    string // why it cannot be judged
}

// Recorded is the level without what a journal does not tell: a predicate that depends on a redacted field is
// unknown, and has no effect. It depends on one if it reads one, reads a variable that such a predicate sets, or
// waits for such a predicate to have fired. A predicate written in Go counts as reading all fields. The level itself
// is returned if there are none. Recorded is the state of the level that has recorded: its redacted values are not
// told, whatever the level says. The error says that the program of the level reads such a predicate: then nothing of
// the program can be told.
func (p *Level) Recorded(recorded scgs.Schema) (*Level, []Unrecorded, error) {
	reasons := p.unrecorded(recorded)
	if len(reasons) == 0 {
		return p, nil, nil
	}
	plan := *p
	plan.Rules = slices.Clone(p.Rules)
	var list []Unrecorded
	for i, r := range p.Rules {
		reason, is := reasons[r.Name]
		if !is {
			continue
		}
		if r.Read {
			return nil, nil, fmt.Errorf("predicate %s, which the program reads, cannot be judged: %s: run the program without redact to replay it", r.Name, reason)
		}
		list = append(list, Unrecorded{r.Name, reason})
		plan.Rules[i] = &Rule{
			Name: r.Name, Key: r.Key, Text: r.Text, priority: r.priority, blind: true,
			Judge: func(monitor.GlobalState) (predicates.Truth, string) { return predicates.Unknown, reason },
		}
	}
	slices.SortFunc(list, func(a, b Unrecorded) int { return strings.Compare(a.Predicate, b.Predicate) })
	return &plan, list, nil
}

// unrecorded gives for each predicate that depends on a redacted field the reason.
func (p *Level) unrecorded(recorded scgs.Schema) map[string]string {
	reasons, variables := map[string]string{}, map[int]string{} // of variables: the predicate that sets it
	for more := true; more; {
		more = false
		for _, r := range p.Rules {
			if reasons[r.Name] != "" {
				continue
			}
			reason := p.lacks(r, recorded, reasons, variables)
			if reason == "" {
				continue
			}
			reasons[r.Name], more = reason, true
			for _, s := range r.Set {
				variables[s.Variable] = r.Name
			}
		}
	}
	return reasons
}

// lacks says what a rule depends on that is not recorded; empty if there is nothing.
func (p *Level) lacks(r *Rule, recorded scgs.Schema, reasons map[string]string, variables map[int]string) string {
	if r.Judge != nil && (p.State.Redacts() || recorded.Redacts() || p.Memory().Redacts() || len(variables) > 0) {
		return "the predicate is a function of the program, which may read redacted fields, whose values are not recorded"
	}
	for _, e := range r.expressions() {
		read := p.Env.Redacts(e.Uses())
		for i, f := range p.State {
			if at := recorded.Index(f.Name); read == "" && at >= 0 && recorded[at].Redact && e.Uses().Fields>>i&1 == 1 {
				read = "." + f.Name
			}
		}
		if read != "" {
			return "the predicate reads the redacted " + read + ", whose values are not recorded"
		}
		for i, name := range variables {
			if e.Uses().Memory>>i&1 == 1 {
				return fmt.Sprintf("the predicate reads memory.%s, set by predicate %s, which depends on redacted fields", p.Variables[i].Field.Name, name)
			}
		}
	}
	for _, a := range r.After {
		if reasons[a.Rule] != "" {
			return fmt.Sprintf("the predicate fires after %s, which depends on redacted fields", a.Rule)
		}
	}
	return ""
}

// expressions are all of a rule.
func (r *Rule) expressions() []*predicates.Expression {
	all := []*predicates.Expression{r.When, r.Until, r.Detector.Local, r.Detector.Least, r.Detector.Until}
	for _, s := range r.Set {
		all = append(all, s.Value)
	}
	for i := range r.Signals {
		all = append(all, r.Signals[i].To)
		for _, d := range r.Signals[i].Data {
			all = append(all, d.Value)
		}
	}
	return slices.DeleteFunc(all, func(e *predicates.Expression) bool { return e == nil })
}
