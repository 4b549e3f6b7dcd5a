package plan

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/scgs"
)

// Encode is a predicate, another part of a section, or sections for the members below,
// as JSON: equal texts mean the same.
func Encode(part any) []byte {
	text, err := json.Marshal(part)
	if err != nil {
		panic(fmt.Sprintf("plan: %T does not encode: %v", part, err))
	}
	return text
}

// Changes lists the differences of another level of the same synchronizer, a short text each,
// if a running machine can change to it. The error joins every reason why it cannot.
func (p *Level) Changes(to *Level) ([]string, error) {
	if err := p.fixed(to); err != nil {
		return nil, err
	}
	var list []string
	note := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if p.Members != to.Members {
		note("members: from %s to %s", p.Members.Limits(), to.Members.Limits())
	}
	if p.Silence != to.Silence {
		note("silence: from %s to %s", p.Silence, to.Silence)
	}
	list = append(list, compare("params", p.parameters(), to.parameters(), fromTo)...)
	list = append(list, compare("memory", p.variables(), to.variables(), variableChanged)...)
	list = append(list, compare("balance", p.balanceTexts(), to.balanceTexts(), keysChanged)...)
	list = append(list, compare(config.WorkName, p.workTexts(), to.workTexts(), keysChanged)...)
	return append(list, compare("predicate", p.texts(), to.texts(), keysChanged)...), nil
}

// fixed joins what of another plan cannot be followed without a restart.
func (p *Level) fixed(to *Level) error {
	var faults []error
	refuse := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("%s: %s: restart to change that", p.Name, fmt.Sprintf(format, args...)))
	}
	switch {
	case p.Members.Threads || to.Members.Threads:
		refuse("a thread-level synchronizer takes its configuration from its parent when it starts")
	case p.Name != to.Name:
		refuse("the synchronizer of the plan is %q", to.Name)
	case p.Members.Group != to.Members.Group:
		refuse("its group is now %q, and was %q", to.Members.Group, p.Members.Group)
	}
	switch {
	case p.Work == nil && to.Work != nil:
		refuse("there is a section work now, whose fields the members do not report yet")
	case p.Work != nil && to.Work == nil:
		refuse("there is no section work any more, whose fields the members report")
	case p.Work != nil && (p.Work.Store != to.Work.Store || p.Work.Log != to.Work.Log):
		refuse("the section work names another store or log now, and members keep the store they have opened")
	case p.State.Hash() != to.State.Hash():
		refuse("the declared state is now %s, and was %s, by which the members report", schemaText(to.State), schemaText(p.State))
	}
	switch {
	case p.Program == nil && to.Program == nil:
	case p.Program == nil:
		refuse("the file has a program now, and none runs")
	case to.Program == nil:
		refuse("the file has no program any more, and one runs")
	case !p.Program.Same(to.Program):
		refuse("the file has another program now, and the running program continues unchanged")
	}
	if string(p.Below) != string(to.Below) {
		refuse("the thread-level section below it, or what that sees of its state and signals, is another one, and the members run the old one")
	}
	return errors.Join(faults...)
}

func schemaText(s scgs.Schema) string {
	fields := make([]string, len(s))
	for i, f := range s {
		fields[i] = f.String()
		if f.Redact {
			fields[i] += " (redacted)"
		}
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

// parameters are the current values as text, by name.
func (p *Level) parameters() map[string]string {
	texts := map[string]string{}
	for i := range p.Params {
		texts[p.Params[i].Field.Name] = config.ParamText(p.Params[i].Value)
	}
	return texts
}

func fromTo(a, b string) string { return "from " + a + " to " + b }

// variables is the memory as text, by name.
func (p *Level) variables() map[string]string {
	texts := map[string]string{}
	for _, v := range p.Variables {
		text := strings.TrimPrefix(v.Field.String(), v.Field.Name+": ")
		if v.Initial != nil {
			text += initially + *v.Initial
		}
		if v.Field.Redact {
			text += ", redacted"
		}
		texts[v.Field.Name] = text
	}
	return texts
}

// variableChanged tells how a variable differs. A variable that keeps its type keeps its value:
// an initial value is for the start, and for a variable that is new.
func variableChanged(a, b string) string {
	from, first, _ := strings.Cut(a, initially)
	to, now, _ := strings.Cut(b, initially)
	if from != to {
		return "from " + a + " to " + b + "; it begins again"
	}
	return fmt.Sprintf("it keeps its value; initial, from %s to %s, counts at the next start", cmp.Or(first, "none"), cmp.Or(now, "none"))
}

// initially stands between the type and the initial value.
const initially = " initial "

// texts are the predicates as text, by name.
func (p *Level) texts() map[string]string {
	texts := map[string]string{}
	for _, r := range p.Rules {
		texts[r.Name] = r.Text
	}
	return texts
}

// compare lists the names added, removed and changed.
func compare(what string, from, to map[string]string, change func(a, b string) string) []string {
	var list []string
	names := slices.Concat(slices.Collect(maps.Keys(from)), slices.Collect(maps.Keys(to)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		a, before := from[name]
		b, after := to[name]
		titled := strings.TrimSpace(what + " " + name)
		switch {
		case !before:
			list = append(list, titled+" is new")
		case !after:
			list = append(list, titled+" is gone")
		case a != b:
			list = append(list, titled+": "+change(a, b))
		}
	}
	return list
}

// keysChanged names the keys by which two predicates differ.
func keysChanged(a, b string) string {
	var from, to map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal([]byte(a), &from), json.Unmarshal([]byte(b), &to)); err != nil {
		panic(fmt.Sprintf("plan: a predicate does not decode: %v", err))
	}
	var keys []string
	for key := range from {
		if string(from[key]) != string(to[key]) {
			keys = append(keys, strings.ToLower(key))
		}
	}
	slices.Sort(keys)
	return "another " + strings.Join(keys, ", ")
}
