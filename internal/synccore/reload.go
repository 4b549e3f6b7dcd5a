package synccore

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// Reload tells that a changed configuration is in force, and what is different.
type Reload struct {
	Config  string // the name of the file
	Changes []string
}

// canonical is a predicate or another part of a section as text: equal texts mean
// the same.
func canonical(p any) string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(fmt.Sprintf("synccore: %T does not encode: %v", p, err))
	}
	return string(text)
}

// Changes lists what is different in another plan of the same synchronizer, a
// short text each, if a running machine can go over to it. The error joins every
// reason why it cannot.
func (p *Plan) Changes(to *Plan) ([]string, error) {
	if err := p.fixed(to); err != nil {
		return nil, err
	}
	var list []string
	note := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if p.Members != to.Members {
		note("members: from %s to %s", p.Members.limits(), to.Members.limits())
	}
	if p.Silence != to.Silence {
		note("silence: from %s to %s", p.Silence, to.Silence)
	}
	list = append(list, compare("memory", p.variables(), to.variables(), func(a, b string) string { return "from " + a + " to " + b })...)
	list = append(list, compare("balance", p.balanceTexts(), to.balanceTexts(), keysChanged)...)
	return append(list, compare("predicate", p.texts(), to.texts(), keysChanged)...), nil
}

// fixed joins what of another plan cannot be followed without a restart.
func (p *Plan) fixed(to *Plan) error {
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
	if p.State.Hash() != to.State.Hash() {
		refuse("the declared state is now %s, and was %s, by which the members report", schemaText(to.State), schemaText(p.State))
	}
	switch {
	case p.program == nil && to.program == nil:
	case p.program == nil:
		refuse("the file has a program now, and none runs")
	case to.program == nil:
		refuse("the file has no program any more, and one runs")
	case !reflect.DeepEqual(p.program.Program(), to.program.Program()) || !slices.Equal(p.program.Predicates(), to.program.Predicates()):
		refuse("the program is another one now, and the one that runs goes on as it began")
	}
	if string(p.below) != string(to.below) {
		refuse("the thread-level section below it, or what that sees of its state and signals, is another one, and the members run the old one")
	}
	return errors.Join(faults...)
}

func schemaText(s scgs.Schema) string {
	fields := make([]string, len(s))
	for i, f := range s {
		fields[i] = f.String()
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

func (m Members) limits() string {
	return fmt.Sprintf("count %d, min %d, max %d", m.Count, m.Min, m.Max)
}

// String gives the policy as lines for people have it.
func (s Silence) String() string { return fmt.Sprintf("%v, %s", s.After, s.Then) }

// variables is the memory as text, by name.
func (p *Plan) variables() map[string]string {
	texts := map[string]string{}
	for _, v := range p.memory {
		text := strings.TrimPrefix(v.Field.String(), v.Field.Name+": ")
		if v.Initial != nil {
			text += " initial " + *v.Initial
		}
		texts[v.Field.Name] = text
	}
	return texts
}

// texts are the predicates as text, by name.
func (p *Plan) texts() map[string]string {
	texts := map[string]string{}
	for _, r := range p.rules {
		texts[r.name] = r.text
	}
	return texts
}

// compare lists what was added, removed and changed, by name.
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
		panic(fmt.Sprintf("synccore: a predicate does not decode: %v", err))
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

// reload goes over to another plan between two steps. What is known of members,
// the epoch, the global state in force and the signals under way stay. A predicate
// whose text is the same stays where it stands; another one starts as at the
// beginning of an epoch, and is judged on the global state in force at once. A
// variable of the same name and type keeps its value. A program goes on; of a
// predicate that begins anew it knows nothing until that is judged.
func (c *Core) reload(plan *Plan, out *Output) {
	changes, err := c.plan.Changes(plan)
	if err != nil {
		out.reject(c.plan.Name, "reload: "+err.Error())
		return
	}
	old := c.plan
	c.plan = plan
	out.Reloads = append(out.Reloads, Reload{plan.source.Name, changes})
	c.listen()
	c.keepMemory(old)
	c.rebuildScope()
	fresh := c.keepRules(old)
	c.keepRuns(old)
	c.execFresh(fresh, out)
	c.keepPlanner()
	if plan.Silence != old.Silence {
		c.hearAgain(plan.heartbeat() != old.heartbeat(), out)
	}
	c.changed = true // There may be enough members by now, or too few.
	lasts := !c.paused && len(c.removing) == 0 && c.enough(len(c.inEpoch))
	if span, ok := c.det.Current(); ok && c.tuple && lasts {
		for _, i := range fresh {
			c.judgeRule(plan.rules[i], &c.states[i], &span, false, out)
		}
		c.remember()
	}
}

func (c *Core) keepMemory(old *Plan) {
	before := c.memory
	c.memory = make([]scgs.Value, len(c.plan.memory))
	for i, v := range c.plan.memory {
		c.memory[i] = v.initial()
		for j, w := range old.memory {
			if v.Field.String() == w.Field.String() {
				c.memory[i] = before[j]
			}
		}
	}
}

// rebuildScope makes a scope of the plan that shows what the old one did.
func (c *Core) rebuildScope() {
	c.scope, c.partial, c.alone = predicates.NewScope(c.plan.env), predicates.NewScope(c.plan.env), predicates.NewScope(c.plan.env)
	for i, v := range c.memory {
		c.setMemory(i, v)
	}
	c.resetScope()
	for _, m := range c.inEpoch {
		if m.state.Seq > 0 { // A state that is over by now is set anew when the next tuple opens.
			c.scope.Set(m.pos, c.rows.get(m.state.Ref))
		}
	}
}

// keepRules carries over where each predicate stands and returns the places of
// those that begin anew.
func (c *Core) keepRules(old *Plan) (fresh []int) {
	before := c.states
	c.states = newStates(len(c.plan.rules))
	c.rearm()
	for i, r := range c.plan.rules {
		j := slices.IndexFunc(old.rules, func(o *rule) bool { return o.name == r.name && o.text == r.text })
		if j < 0 {
			fresh = append(fresh, i)
			delete(c.past, r.name)
			continue
		}
		c.states[i] = before[j]
	}
	maps.DeleteFunc(c.past, func(name string, _ *past) bool { return c.ruleIndex(name) < 0 })
	return fresh
}

// hearAgain lets every member begin anew to be silent. Where they have to show
// themselves at another pace they are called for their hello, whose answer tells
// them.
func (c *Core) hearAgain(pace bool, out *Output) {
	for _, m := range c.sorted {
		if m.gone {
			continue
		}
		m.heard = c.now
		if pace {
			out.welcome(m.name, wire.Welcome{
				Synchronizer: c.plan.Name, Term: c.opt.Term, Epoch: c.epoch, Member: m.name, Incarnation: m.incarnation,
			})
		}
	}
}
