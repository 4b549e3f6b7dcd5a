package synccore

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	// Warnings are what is likely a mistake, though it can be run.
	Warnings []yamlconf.Fault

	env     *predicates.Env
	prev    bool // some program reads the global state before
	memory  []Variable
	rules   []*rule                   // in order of priority, then name
	summary []told                    // a value for each field of the parent's state
	sends   []predicates.ParentSignal // what the level below can read of our signals
	above   scgs.Schema               // what the summary makes up
	uses    []use                     // of every program
	below   []byte                    // the section of the level below, for our members
	groups  []targetGroup             // other groups that signals go to
	source  *Source
	program *program.Compiled // that it runs on its members, nil if there is none
	balance *Balancing        // that moves loads between them, nil if there is none
}

// Summary reports whether the level has a summary for its parent.
func (p *Plan) Summary() bool { return len(p.summary) > 0 }

// Summarizes reports whether the summary has an expression for the i-th field of
// the parent's state.
func (p *Plan) Summarizes(i int) bool { return p.summary[i].program != nil }

// Groups names the other groups that signals of the plan go to. Whoever hosts the
// machine lets it hear their members.
func (p *Plan) Groups() []string {
	names := make([]string, len(p.groups))
	for i, g := range p.groups {
		names[i] = g.name
	}
	return names
}

// targetGroup is another group that signals go to, and how many of its members are
// listened to.
type targetGroup struct {
	name string
	max  int
}

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
	program  *predicates.Expression // nil: the default
	fallback scgs.Value
}

// rule is a compiled predicate.
type rule struct {
	name     string
	text     string // of its section: equal texts are equal rules
	when     *predicates.Expression
	judge    Judge // in place of when
	own      own
	hold     time.Duration
	every    bool
	until    *predicates.Expression // nil: it may fire again once it is false
	cooldown time.Duration
	priority int
	set      []assignment
	signals  []outgoing
	read     bool // the program switches on it, or has blocks under it
	attached bool // the program has blocks under it, and it acts on those alone
}

// own is what a rule's own detector looks for; a rule without one is judged on
// global states.
type own struct {
	local    *predicates.Expression // nil: there is none
	modality scgs.Modality          // of all members
	atLeast  int                    // of so many members, if it is not 0
}

// exists reports whether the rule has a detector of its own.
func (o own) exists() bool { return o.atLeast > 0 || o.modality != scgs.Inst }

// what is the modality by its word.
func (o own) what() string {
	if o.atLeast > 0 {
		return "atleast"
	}
	return o.modality.String()
}

type assignment struct {
	variable int
	value    *predicates.Expression
}

type outgoing struct {
	name    string
	kind    control.Kind
	region  string
	to      *predicates.Expression // nil: names, holders or another group
	names   []string
	holders bool
	all     bool   // to is all
	group   string // another one; empty: the synchronizer's own
	data    []datum
	expires time.Duration
}

type datum struct {
	name  string
	value *predicates.Expression
}

// reporter takes one fault: where in the section, at which byte of the text
// there (-1: the value as a whole), what is wrong and what to do.
type reporter func(at string, offset int, message, hint string)

type compiler struct {
	sec    *Section
	report reporter
	plan   *Plan

	edge         bool // the text at hand is evaluated when a predicate becomes true
	steps, setup int  // of all texts so far
	most         int  // of one text
	where        string
}

// The limits on all texts of a synchronizer together, at the member limit: the
// steps of a global state on which every predicate is evaluated, and those of the
// first one of an epoch, on which each may become true.
const (
	maxSteps = 10 * predicates.MaxSteps
	maxSetup = 10 * predicates.MaxSetup
)

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
	c.balance()
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
	c.plan.order()
}

// order puts the rules in the order in which they are judged and fire.
func (p *Plan) order() {
	slices.SortStableFunc(p.rules, func(a, b *rule) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.name, b.name))
	})
}

func (c *compiler) rule(name string, p *Predicate) *rule {
	at := "predicates." + name
	r := &rule{
		name: name, text: canonical(p), hold: p.For, every: p.Every, cooldown: p.Cooldown, priority: p.Priority,
	}
	if p.When != "" {
		r.when = c.program(at+".when", p.When, c.plan.env.Bool)
	}
	c.modality(at, p, r)
	c.firing(at, p, r)
	c.effects(at, p, r)
	return r
}

// modality decides whether the rule has a detector of its own.
func (c *compiler) modality(at string, p *Predicate, r *rule) {
	var modality scgs.Modality
	switch p.Modality {
	case "", "inst":
	case "definitely":
		modality = scgs.Definitely
	case "possibly":
		modality = scgs.Possibly
	default:
		c.report(at+".modality", -1, fmt.Sprintf("%q is no modality", p.Modality), "use inst, definitely or possibly, or leave it out")
		return
	}
	if r.when == nil {
		return
	}
	if local, k, ok := r.when.Threshold(); ok {
		if modality == scgs.Possibly {
			c.report(at+".modality", -1, "a threshold is of what certainly held", "leave the modality out: possibly is for all(members, condition) alone")
		}
		r.own = own{local: local, atLeast: k}
		return
	}
	if modality == scgs.Inst {
		return
	}
	local, err := r.when.Conjunction()
	if err != nil {
		c.refuse(at+".when", p.When, err)
	}
	r.own = own{local: local, modality: modality}
}

// firing compiles when the rule fires, and refuses what contradicts itself.
func (c *compiler) firing(at string, p *Predicate, r *rule) {
	threshold := r.own.atLeast > 0
	switch {
	case p.For < 0:
		c.report(at+".for", -1, "a hold time cannot be negative", "")
	case p.For > 0 && p.Every:
		c.report(at+".every", -1, "every fires on each global state and has no hold time: leave out every or for", "")
	case p.For > 0 && r.own.modality == scgs.Possibly:
		c.report(at+".for", -1, "what possibly held has no certain hold time", "leave out for, or use definitely")
	}
	switch {
	case p.Every && threshold:
		c.report(at+".every", -1, "a threshold fires on each new set of members by itself",
			"leave out every; to fire on each global state write len(filter(members, CONDITION)) instead of count")
	case p.Every && r.own.modality != scgs.Inst:
		c.report(at+".every", -1, "every fires on each global state, and under this modality none is judged: leave out every or modality", "")
	}
	if p.Cooldown < 0 {
		c.report(at+".cooldown", -1, "a cooldown cannot be negative", "")
	}
	if p.Until == "" {
		return
	}
	r.until = c.program(at+".until", p.Until, c.plan.env.Bool)
	switch {
	case p.Every:
		c.report(at+".until", -1, "every fires on each global state and waits for nothing: leave out every or until", "")
	case threshold:
		c.report(at+".until", -1, "a threshold fires on each new set of members, whatever was before: leave out until", "cooldown limits how often it fires")
	case strings.TrimSpace(p.Until) == strings.TrimSpace(p.When):
		c.report(at+".until", -1, "it is the same as when: the predicate would fire on each global state on which it holds", "write every: true if that is meant")
	}
}

// effects compiles what follows when the rule fires.
func (c *compiler) effects(at string, p *Predicate, r *rule) {
	c.edge = !p.Every
	defer func() { c.edge = false }()
	for _, s := range p.Set {
		c.set(at+".set."+s.Key, s.Key, s.Value, r)
	}
	for i := range p.Signal {
		where := at + ".signal"
		if len(p.Signal) > 1 {
			where = fmt.Sprintf("%s[%d]", where, i)
		}
		c.signal(where, r.name, &p.Signal[i], r)
	}
}

func (c *compiler) set(at, name, src string, r *rule) {
	memory := c.plan.env.Memory
	i := memory.Index(name)
	if i < 0 {
		c.report(at, -1, fmt.Sprintf("memory has no variable %q", name), "declare it below memory")
		return
	}
	value := c.program(at, src, func(src string) (*predicates.Expression, error) { return c.plan.env.Value(src, memory[i]) })
	r.set = append(r.set, assignment{i, value})
}

func (c *compiler) signal(at, predicate string, s *Signal, r *rule) {
	out := outgoing{name: s.Name, region: s.Region, expires: s.Expires}
	if out.name == "" {
		out.name = predicate
	}
	for _, t := range []struct{ what, token string }{{"name", out.name}, {"region", s.Region}} {
		if err := wire.CheckToken(t.what, t.token); err != nil && t.token != "" {
			c.report(at+"."+t.what, -1, err.Error(), "")
		}
	}
	var ok bool
	if out.kind, ok = parseKind(s.Kind); !ok && s.Kind != "" {
		c.report(at+".kind", -1, fmt.Sprintf("%q is no kind of signal", s.Kind), "use activate or cancel")
	}
	if s.Expires <= 0 || s.Expires > maxExpiry {
		c.report(at+".expires", -1, fmt.Sprintf("a signal expires after more than 0 and at most %v", maxExpiry), "")
	}
	c.target(at+".to", &s.To, r, &out)
	fields := make(scgs.Schema, 0, len(s.Data))
	for _, d := range s.Data {
		where := at + ".data." + d.Key
		value := c.program(where, d.Value, func(src string) (*predicates.Expression, error) { return c.plan.env.Value(src, scgs.Field{}) })
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
	if out.group == "" { // else it is not to the members of the level below
		c.send(at, out.name, fields)
	}
}

// target compiles who gets a signal.
func (c *compiler) target(at string, t *Target, r *rule, out *outgoing) {
	switch {
	case t.Group != "":
		c.group(at, t, out)
	case len(t.Names) > 0:
		for i, name := range t.Names {
			err := wire.CheckToken("member", name)
			if err == nil && slices.Contains(t.Names[:i], name) {
				err = fmt.Errorf("member %q stands twice", name)
			}
			if err != nil {
				c.report(fmt.Sprintf("%s[%d]", at, i), -1, err.Error(), "")
			}
		}
		out.names = t.Names
	case strings.TrimSpace(t.Expr) == holders && !r.own.exists():
		c.report(at, -1, "the holders are the members that a threshold, or a modality, has found to satisfy its condition, and this predicate has neither",
			"write all, or a group such as filter(members, .load > 2)")
	case strings.TrimSpace(t.Expr) == holders:
		out.holders = true
	default:
		out.to, out.all = c.program(at, t.Expr, c.plan.env.Members), strings.TrimSpace(t.Expr) == everybody.Expr
	}
}

// maxGroups is how many other groups a synchronizer may send to: it hears all that
// their members say.
const maxGroups = 16

// group compiles the target that is another group.
func (c *compiler) group(at string, t *Target, out *outgoing) {
	own := c.plan.Members
	switch err := wire.CheckToken("group", t.Group); {
	case err != nil:
		c.report(at+".group", -1, err.Error(), "")
		return
	case own.Threads:
		c.report(at, -1, "a thread-level synchronizer reaches the threads of its process alone",
			"tell the parent by a field of the summary, and let a predicate of the parent send the signal")
		return
	case t.Group == own.Group:
		c.report(at+".group", -1, fmt.Sprintf("%q is the synchronizer's own group", t.Group), "write to: all")
		return
	}
	out.group = t.Group
	limit := t.Max
	if limit == 0 {
		limit = defaultMaxMembers
	}
	i := slices.IndexFunc(c.plan.groups, func(g targetGroup) bool { return g.name == t.Group })
	switch {
	case i >= 0:
		c.plan.groups[i].max = max(c.plan.groups[i].max, limit)
	case len(c.plan.groups) == maxGroups:
		c.report(at+".group", -1, fmt.Sprintf("signals go to more than %d other groups", maxGroups), "run another synchronizer for some of them")
	default:
		c.plan.groups = append(c.plan.groups, targetGroup{t.Group, limit})
	}
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
	blocks := c.sec.ParentState // what a processor has not set itself
	processors := wire.IsProcessor(blocks)
	if processors {
		blocks = blocks[:len(blocks)-wire.ProcessorFields]
		if len(summary) == 0 {
			return // Then the blocks tell it.
		}
	}
	c.plan.above = c.sec.ParentState
	for _, e := range summary {
		switch {
		case c.sec.ParentState.Index(e.Key) < 0:
			c.report("summary."+e.Key, -1, fmt.Sprintf("the state of %q has no field %q", c.plan.Parent, e.Key), "")
		case blocks.Index(e.Key) < 0:
			c.report("summary."+e.Key, -1, fmt.Sprintf("the field %q is the processor's own", e.Key), "leave it out")
		}
	}
	for _, field := range c.sec.ParentState {
		t := told{fallback: field.Default}
		src, ok := summary.Get(field.Name)
		switch {
		case !ok && processors: // It stays as it is.
		case ok && field.Type.IsList():
			c.report("summary."+field.Name, -1, fmt.Sprintf("a summary has single values, and %s is a list", field), "leave it out, and give it a default at the parent")
		case ok:
			t.program = c.program("summary."+field.Name, src, func(src string) (*predicates.Expression, error) { return c.plan.env.Value(src, field) })
		case t.fallback.Type() != scgs.Invalid:
		case field.Type.IsList():
			c.report("summary", -1, fmt.Sprintf("the state of %q has a field %s, and no summary can be a list", c.plan.Parent, field), "give it a default there")
		default:
			c.report("summary", -1, fmt.Sprintf("the state of %q has a field %s", c.plan.Parent, field), "give an expression for it")
		}
		c.plan.summary = append(c.plan.summary, t)
	}
}

func (c *compiler) program(at, src string, compile func(string) (*predicates.Expression, error)) *predicates.Expression {
	program, err := compile(src)
	if err == nil {
		c.account(at, program)
		return program
	}
	c.refuse(at, src, err)
	return nil
}

// account notes what a program costs and uses.
func (c *compiler) account(at string, p *predicates.Expression) {
	c.plan.prev = c.plan.prev || p.Uses().Prev
	c.charge(at, p)
	c.plan.uses = append(c.plan.uses, use{at, p.Uses()})
}

// refuse reports a fault in a text.
func (c *compiler) refuse(at, src string, err error) {
	if e, ok := errors.AsType[*predicates.Error](err); ok {
		c.report(at, yamlconf.Offset(src, e.Line, e.Column), e.Message, e.Hint)
	} else {
		c.report(at, -1, err.Error(), "")
	}
}

// charge counts the steps of a text, and reports the first that is too much.
func (c *compiler) charge(at string, p *predicates.Expression) {
	before, begun := c.steps, c.setup
	c.setup += p.Setup()
	if c.edge {
		c.setup += p.Cost()
	} else if c.steps += p.Cost(); p.Cost() > c.most {
		c.most, c.where = p.Cost(), at
	}
	switch members := c.plan.Members.Max; {
	case before <= maxSteps && c.steps > maxSteps:
		c.report(at, 0, fmt.Sprintf("with this text the predicates take more than %d steps a global state with %d members", maxSteps, members),
			fmt.Sprintf("%s takes most of them, %d; functions over members that read nothing but the member are kept from change to change and cost few steps: "+
				"write max(map(members, .x)) > memory.limit in place of any(members, .x > memory.limit), or lower the member limit", c.where, c.most))
	case begun <= maxSetup && c.setup > maxSetup:
		c.report(at, 0, fmt.Sprintf("with this text the predicates take more than %d steps with %d members when an epoch begins", maxSetup, members),
			"use fewer or simpler functions over members, or lower the member limit")
	}
}
