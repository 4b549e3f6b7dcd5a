package synccore

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/internal/yamlconf"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// Plan is a compiled section: all that a [Core] needs. It does not change and
// may be shared.
type Plan struct {
	Name    string
	Parent  string
	Members Members
	Silence Silence
	State   scgs.Schema
	Process scgs.Schema

	env     *predicates.Env
	prev    bool // some program reads the global state before
	memory  []Variable
	rules   []*rule                   // in order of priority, then name
	summary []told                    // a value for each field of the parent's state
	sends   []predicates.ParentSignal // what the level below can read of our signals
	below   []byte                    // the section of the level below, for our members
	source  *Source
	program *program.Plan // that it runs on its members, nil if there is none
}

// Summary reports whether the level has a summary for its parent.
func (p *Plan) Summary() bool { return len(p.summary) > 0 }

// heartbeat is how often a member that has nothing to say shows that it is there:
// several times before it would count as silent.
func (p *Plan) heartbeat() time.Duration { return min(heartbeat, p.Silence.After/3) }

// Predicates lists the names of the level's predicates.
func (p *Plan) Predicates() []string {
	names := make([]string, len(p.rules))
	for i, r := range p.rules {
		names[i] = r.name
	}
	slices.Sort(names)
	return names
}

// told is what the parent is told of a field: the value of a program, or the
// field's default.
type told struct {
	program  *predicates.Program // nil: the default
	fallback scgs.Value
}

// rule is a compiled predicate.
type rule struct {
	name     string
	text     string // of its section: equal texts are equal rules
	when     *predicates.Program
	hold     time.Duration
	every    bool
	priority int
	set      []assignment
	signals  []outgoing
	read     bool // the program switches on it, or has blocks under it
}

type assignment struct {
	variable int
	value    *predicates.Program
}

type outgoing struct {
	name    string
	kind    control.Kind
	region  string
	to      *predicates.Program
	data    []datum
	expires time.Duration
}

type datum struct {
	name  string
	value *predicates.Program
}

// reporter takes one fault: where in the section, at which byte of the text
// there (-1: the value as a whole), what is wrong and what to do.
type reporter func(at string, offset int, message, hint string)

type compiler struct {
	sec    *Section
	report reporter
	plan   *Plan
}

// compile turns a section into a plan, reporting every fault. The plan of a
// section with faults must not be run.
func compile(sec *Section, report reporter) *Plan {
	s := &sec.Synchronizer
	if s.Silence.After == 0 {
		s.Silence = Silence{After: defaultSilence, Then: Drop}
	}
	c := compiler{sec: sec, report: report, plan: &Plan{
		Name: sec.Name, Parent: s.Parent, Members: s.Members, Silence: s.Silence,
		State: scgs.Schema(s.State), Process: scgs.Schema(s.Process), memory: s.Memory,
	}}
	c.plan.env = &predicates.Env{
		State: c.plan.State, Process: c.plan.Process, Memory: s.Memory.schema(),
		Parent: sec.FromParent, MaxMembers: s.Members.Max, Prev: true,
	}
	if len(s.Process) > 0 && !s.Members.Threads {
		report("process", -1, "only a thread-level synchronizer has a process: its members are the threads of one", "")
	}
	c.predicates()
	c.summary()
	return c.plan
}

func (c *compiler) predicates() {
	for _, e := range c.sec.Synchronizer.Predicates {
		if err := wire.CheckToken("predicate", e.Key); err != nil {
			c.report("predicates."+e.Key, -1, err.Error(), "")
		}
		c.plan.rules = append(c.plan.rules, c.rule(e.Key, &e.Value))
	}
	slices.SortStableFunc(c.plan.rules, func(a, b *rule) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.name, b.name))
	})
}

func (c *compiler) rule(name string, p *Predicate) *rule {
	at := "predicates." + name
	r := &rule{name: name, text: canonical(p), hold: p.For, every: p.Every, priority: p.Priority}
	if p.When != "" {
		r.when = c.program(at+".when", p.When, c.plan.env.Bool)
	}
	switch {
	case p.Modality != "" && p.Modality != "inst":
		c.report(at+".modality", -1, fmt.Sprintf("modality %q is not available: use inst, or leave it out", p.Modality), "")
	case p.For < 0:
		c.report(at+".for", -1, "a hold time cannot be negative", "")
	case p.For > 0 && p.Every:
		c.report(at+".every", -1, "every fires on each global state and has no hold time: leave out every or for", "")
	}
	for _, s := range p.Set {
		c.set(at+".set."+s.Key, s.Key, s.Value, r)
	}
	for i := range p.Signal {
		where := at + ".signal"
		if len(p.Signal) > 1 {
			where = fmt.Sprintf("%s[%d]", where, i)
		}
		c.signal(where, name, &p.Signal[i], r)
	}
	return r
}

func (c *compiler) set(at, name, src string, r *rule) {
	memory := c.plan.env.Memory
	i := memory.Index(name)
	if i < 0 {
		c.report(at, -1, fmt.Sprintf("memory has no variable %q", name), "declare it below memory")
		return
	}
	value := c.program(at, src, func(src string) (*predicates.Program, error) { return c.plan.env.Value(src, memory[i]) })
	r.set = append(r.set, assignment{i, value})
}

func (c *compiler) signal(at, predicate string, s *Signal, r *rule) {
	out := outgoing{name: s.Name, region: s.Region, expires: s.Expires}
	if out.name == "" {
		out.name = predicate
	}
	for what, token := range map[string]string{"name": out.name, "region": s.Region} {
		if err := wire.CheckToken(what, token); err != nil && token != "" {
			c.report(at+"."+what, -1, err.Error(), "")
		}
	}
	var ok bool
	if out.kind, ok = parseKind(s.Kind); !ok && s.Kind != "" {
		c.report(at+".kind", -1, fmt.Sprintf("%q is no kind of signal", s.Kind), "use activate or cancel")
	}
	if s.Expires <= 0 || s.Expires > maxExpiry {
		c.report(at+".expires", -1, fmt.Sprintf("a signal expires after more than 0 and at most %v", maxExpiry), "")
	}
	out.to = c.program(at+".to", s.To, c.plan.env.Members)
	fields := make(scgs.Schema, 0, len(s.Data))
	for _, d := range s.Data {
		where := at + ".data." + d.Key
		value := c.program(where, d.Value, func(src string) (*predicates.Program, error) { return c.plan.env.Value(src, scgs.Field{}) })
		if value == nil {
			continue
		}
		field := value.Result()
		field.Name = d.Key
		fields = append(fields, field)
		out.data = append(out.data, datum{d.Key, value})
	}
	if err := fields.Validate(); err != nil {
		c.report(at+".data", -1, err.Error(), "")
	}
	if len(out.data) > control.MaxData {
		c.report(at+".data", -1, fmt.Sprintf("%d data, at most %d ride with a signal", len(out.data), control.MaxData), "")
	}
	r.signals = append(r.signals, out)
	c.send(at, out.name, fields)
}

// send notes what the level below will see of a signal as from_parent.
func (c *compiler) send(at, name string, fields scgs.Schema) {
	for _, known := range c.plan.sends {
		if known.Name == name {
			if known.Fields.Hash() != fields.Hash() {
				c.report(at, -1, fmt.Sprintf("signal %q is sent elsewhere with other data", name), "give one of them another name")
			}
			return
		}
	}
	c.plan.sends = append(c.plan.sends, predicates.ParentSignal{Name: name, Fields: fields})
}

// summary compiles one expression for each field of the parent's state.
func (c *compiler) summary() {
	summary := c.sec.Synchronizer.Summary
	if c.plan.Parent == "" {
		return
	}
	for _, e := range summary {
		if c.sec.ParentState.Index(e.Key) < 0 {
			c.report("summary."+e.Key, -1, fmt.Sprintf("the state of %q has no field %q", c.plan.Parent, e.Key), "")
		}
	}
	for _, field := range c.sec.ParentState {
		t := told{fallback: field.Default}
		src, ok := summary.Get(field.Name)
		switch {
		case ok && field.Type.IsList():
			c.report("summary."+field.Name, -1, fmt.Sprintf("a summary has single values, and %s is a list", field), "leave it out, and give it a default at the parent")
		case ok:
			t.program = c.program("summary."+field.Name, src, func(src string) (*predicates.Program, error) { return c.plan.env.Value(src, field) })
		case t.fallback.Type() != scgs.Invalid:
		case field.Type.IsList():
			c.report("summary", -1, fmt.Sprintf("the state of %q has a field %s, and no summary can be a list", c.plan.Parent, field), "give it a default there")
		default:
			c.report("summary", -1, fmt.Sprintf("the state of %q has a field %s", c.plan.Parent, field), "give an expression for it")
		}
		c.plan.summary = append(c.plan.summary, t)
	}
}

func (c *compiler) program(at, src string, compile func(string) (*predicates.Program, error)) *predicates.Program {
	program, err := compile(src)
	if err == nil {
		c.plan.prev = c.plan.prev || program.Uses().Prev
		return program
	}
	if e, ok := errors.AsType[*predicates.Error](err); ok {
		c.report(at, yamlconf.Offset(src, e.Line, e.Column), e.Message, e.Hint)
	} else {
		c.report(at, -1, err.Error(), "")
	}
	return nil
}
