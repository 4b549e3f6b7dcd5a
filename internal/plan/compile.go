package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/internal/yamlconf"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// FaultFunc takes one fault: where in the section, at which byte of the text there (-1: the
// value as a whole), the fault and what to do.
type FaultFunc func(at string, offset int, message, hint string)

type compiler struct {
	sec     *config.Section
	report  FaultFunc
	plan    *Level
	balance *config.Balance // the section balance, or balance of the objects of the section work; nil: there is none

	unsure       bool            // the modality of the current predicate is no word of ours
	ending       bool            // the current predicate is the end of a phase
	edge         bool            // the current text is evaluated when a predicate becomes true
	env          *predicates.Env // of the current predicate: with its names
	group        string          // of the current predicate: the value of the field that members are grouped by; empty: they are not
	means        []string        // what the names in its texts stand for, if there are any
	steps, setup int             // of all texts so far
	most         int             // of one text
	where        string
}

// The limits on all texts of a synchronizer together, at the member limit: the steps of a
// global state on which every predicate is evaluated, and of the first global state of an
// epoch, on which each may become true.
const (
	maxSteps = 10 * predicates.MaxSteps
	maxSetup = 10 * predicates.MaxSetup
)

// Compile turns a section into the level that its machine follows, and reports every
// fault. A level of a section with faults must not be run.
func Compile(sec *config.Section, report FaultFunc) *Level {
	s := &sec.Synchronizer
	if s.Silence.After == 0 {
		s.Silence = config.Silence{After: config.DefaultSilence, Then: config.Drop}
	}
	c := compiler{sec: sec, report: report, plan: &Level{
		Name: sec.Name, Parent: s.Parent, Members: s.Members, Silence: s.Silence,
		State: scgs.Schema(s.State), Process: scgs.Schema(s.Process), Variables: s.Memory,
	}}
	c.balance = c.balanceSection()
	c.fillWork()
	c.plan.Env = &predicates.Env{
		State: c.plan.State, Process: c.plan.Process, Memory: config.Variables(c.plan.Variables).Schema(),
		Parent: sec.FromParent, MaxMembers: s.Members.Max, Prev: true, Params: sec.Params, Filled: c.filledNames(),
	}
	c.env = c.plan.Env
	c.compileLets("let", s.Let)
	c.plan.names = c.env
	if len(s.Process) > 0 && !s.Members.Threads {
		report("process", -1, "only a thread-level synchronizer has a process: its members are the threads of a process", "")
	}
	c.predicates()
	c.compileBalance()
	c.checkWork()
	c.summary()
	return c.plan
}

func (c *compiler) predicates() {
	for _, e := range c.sec.Synchronizer.Predicates {
		if err := wire.CheckToken("predicate", e.Key); err != nil {
			c.report("predicates."+e.Key, -1, err.Error(), "")
		}
		shared := c.env
		if e.Value.By != "" {
			c.compileBy(e.Key, &e.Value)
		} else {
			c.plan.Rules = append(c.plan.Rules, c.compileRule(e.Key, e.Key, &e.Value))
		}
		c.env = shared
	}
	if c.sec.Synchronizer.Work != nil {
		c.compileEnd()
	}
	c.plan.orderRules()
	c.findAfters()
}

// orderRules puts the rules in the order in which they are judged and fire.
func (p *Level) orderRules() {
	slices.SortStableFunc(p.Rules, func(a, b *Rule) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.Name, b.Name))
	})
}

// compileRule compiles the predicate of a key of the file. Its name is that key, or of a group of
// members more than that.
func (c *compiler) compileRule(key, name string, p *config.Predicate) *Rule {
	at := "predicates." + key
	r := &Rule{
		Name: name, Key: key, Hold: p.For, Every: p.Every, Cooldown: p.Cooldown, priority: p.Priority,
	}
	c.means = nil
	c.compileLets(at+".let", p.Let)
	c.unsure = false
	if p.Each != "" {
		c.compileEach(at, p, r)
	} else {
		if p.When != "" {
			r.When = c.compileProgram(at+".when", p.When, c.env.Bool)
		}
		c.modality(at, p, r)
	}
	c.firing(at, p, r)
	c.effects(at, key, p, r)
	same := *p
	if r.Detector.AtLeast > 0 && r.Detector.Least == nil {
		same.Modality = "" // A threshold is the same rule, whether its form makes it or it is asked for.
	}
	if !r.Refires {
		same.Refire = "" // The default, written or not.
	}
	same.Means = c.listMeanings(r)
	r.Text = string(Encode(&same))
	return r
}

// modality decides whether the rule has a detector of its own.
func (c *compiler) modality(at string, p *config.Predicate, r *Rule) {
	var modality scgs.Modality
	switch p.Modality {
	case "", "inst":
	case "definitely":
		modality = scgs.Definitely
	case "possibly":
		modality = scgs.Possibly
	case AtLeast:
	default:
		c.unsure = true
		c.report(at+".modality", -1, fmt.Sprintf("%q is no modality", p.Modality), "use inst, definitely, possibly or atleast, or leave it out")
		return
	}
	if r.When == nil {
		return
	}
	local, k, err := r.When.Threshold()
	switch {
	case err == nil:
		if modality == scgs.Possibly {
			c.report(at+".modality", -1, "a threshold counts conditions that certainly held", "write modality: "+AtLeast+"; possibly is for all(members, condition) alone")
		}
		r.Detector = Detector{Local: local, AtLeast: k}
	case p.Modality == AtLeast:
		local, least, when, err := r.When.RosterThreshold()
		r.Detector = Detector{Local: local, AtLeast: 1, Least: least}
		if err != nil {
			c.refuseText(at+".when", p.When, err)
		} else {
			r.When = when
		}
	case modality != scgs.Inst:
		if local, err = r.When.Conjunction(); err != nil {
			c.refuseText(at+".when", p.When, err)
		}
		r.Detector = Detector{Local: local, Modality: modality}
	}
}

// firing compiles when the rule fires, and refuses what contradicts itself.
func (c *compiler) firing(at string, p *config.Predicate, r *Rule) {
	c.compileLimits(at, p, r)
	threshold := r.Detector.AtLeast > 0
	switch {
	case p.For < 0:
		c.report(at+".for", -1, "a hold time cannot be negative", "")
	case p.For > 0 && p.Every:
		c.report(at+".every", -1, "every fires on each global state and has no hold time: leave out every or for", "")
	case p.For > 0 && r.Detector.Modality == scgs.Possibly:
		c.report(at+".for", -1, "a condition that possibly held has no certain hold time", "leave out for, or use definitely")
	}
	switch {
	case p.Every && r.Detector.Each:
		c.report(at+".every", -1, "the predicate is judged for each member, and fires each time that the condition becomes true for a member: leave out every", "")
	case p.Every && threshold:
		c.report(at+".every", -1, "a threshold fires on each new set of members anyway",
			"leave out every; to fire on each global state write len(filter(members, CONDITION)) instead of count")
	case p.Every && r.Detector.Modality != scgs.Inst:
		c.report(at+".every", -1, "every fires on each global state, and under this modality none is judged: leave out every or modality", "")
	}
	if p.Cooldown < 0 {
		c.report(at+".cooldown", -1, "a cooldown cannot be negative", "")
	}
	if p.Until == "" {
		return
	}
	if r.Detector.Each {
		c.eachUntil(at, p, r)
		return
	}
	r.Until = c.compileProgram(at+".until", p.Until, c.env.Bool)
	switch {
	case p.Every:
		c.report(at+".until", -1, "every fires on each global state and waits for nothing: leave out every or until", "")
	case threshold:
		c.report(at+".until", -1, "a threshold fires on each new set of members, whatever was before: leave out until", "cooldown limits how often it fires")
	case strings.TrimSpace(p.Until) == strings.TrimSpace(p.When):
		c.report(at+".until", -1, "until is the same as when: the predicate would fire on each global state on which it holds", "write every: true if that is meant")
	}
}

// effects compiles what follows when the rule fires.
func (c *compiler) effects(at, key string, p *config.Predicate, r *Rule) {
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
		c.signal(where, key, &p.Signal[i], r)
	}
}

func (c *compiler) set(at, name, src string, r *Rule) {
	memory := c.plan.Env.Memory
	i := memory.Index(name)
	if i < 0 {
		c.report(at, -1, fmt.Sprintf("memory has no variable %q", name), "declare it below memory")
		return
	}
	value := c.compileProgram(at, src, func(src string) (*predicates.Expression, error) { return c.env.Value(src, memory[i]) })
	c.receives(at, value, "memory."+name, memory[i])
	r.Set = append(r.Set, assignment{i, value})
}

// receives reports an expression that reads a redacted field and whose value a field
// gets that is not redacted.
func (c *compiler) receives(at string, value *predicates.Expression, name string, f scgs.Field) {
	if value == nil || f.Redact {
		return
	}
	if read := c.plan.Env.Redacts(value.Uses()); read != "" {
		c.report(at, -1, fmt.Sprintf("%s would show a value of the redacted %s", name, read), fmt.Sprintf("declare it redacted, too: %s: {type: %s, redact: true}", f.Name, typeText(f)))
	}
}

// typeText is the type of a field as configuration files write it.
func typeText(f scgs.Field) string { return strings.TrimPrefix(f.String(), f.Name+": ") }

func (c *compiler) signal(at, predicate string, s *config.Signal, r *Rule) {
	out := Send{Name: s.Name, Region: s.Region, Expires: s.Expires}
	if out.Name == "" {
		out.Name = predicate
	}
	for _, t := range []struct{ what, token string }{{"name", out.Name}, {"region", s.Region}} {
		if err := wire.CheckToken(t.what, t.token); err != nil && t.token != "" {
			c.report(at+"."+t.what, -1, err.Error(), "")
		}
	}
	var ok bool
	if out.Kind, ok = config.ParseKind(s.Kind); !ok && s.Kind != "" {
		c.report(at+".kind", -1, fmt.Sprintf("%q is no kind of signal", s.Kind), "use activate or cancel")
	}
	if s.Region == config.WorkName && c.sec.Synchronizer.Work != nil && !c.ending {
		c.report(at+".region", -1, "the region "+s.Region+" belongs to the section work, in which members wait for the end of a phase", "give the region another name, or write the condition as end: under work")
	}
	if s.Expires <= 0 || s.Expires > config.MaxExpiry {
		c.report(at+".expires", -1, fmt.Sprintf("a signal expires after more than 0 and at most %v", config.MaxExpiry), "")
	}
	c.target(at+".to", s, r, &out)
	fields := make(scgs.Schema, 0, len(s.Data))
	for _, d := range s.Data {
		where := at + ".data." + d.Key
		value := c.compileProgram(where, d.Value, func(src string) (*predicates.Expression, error) { return c.env.Value(src, scgs.Field{}) })
		if value == nil {
			continue
		}
		field := value.Result()
		field.Name, field.Redact = d.Key, c.plan.Env.Redacts(value.Uses()) != ""
		fields = append(fields, field)
		out.Data = append(out.Data, datum{d.Key, value, field.Redact})
	}
	if err := fields.Validate(); err != nil {
		c.report(at+".data", -1, err.Error(), "")
	}
	if len(out.Data) > control.MaxData {
		c.report(at+".data", -1, fmt.Sprintf("%d data, at most %d go with a signal", len(out.Data), control.MaxData), "")
	}
	r.Signals = append(r.Signals, out)
	if out.Group == "" { // else it is not to the members of the level below
		c.send(at, out.Name, fields)
	}
}

// target compiles who gets a signal.
func (c *compiler) target(at string, s *config.Signal, r *Rule, out *Send) {
	t := &s.To
	switch {
	case t.Group != "":
		c.otherGroup(at, t, out)
	case len(t.Names) > 0:
		for i, name := range t.Names {
			err := wire.CheckToken("member", name)
			if err == nil && slices.Contains(t.Names[:i], name) {
				err = fmt.Errorf("member %q is given twice", name)
			}
			if err != nil {
				c.report(fmt.Sprintf("%s[%d]", at, i), -1, err.Error(), "")
			}
		}
		out.Names = t.Names
	case s.ToDefault && r.Detector.Each:
		out.Holders = true
	case s.ToDefault && c.group != "", strings.TrimSpace(t.Expr) == toGroup && c.group != "":
		out.To = c.compileProgram(at, "members", c.env.Members)
	case strings.TrimSpace(t.Expr) == toGroup:
		c.report(at, -1, "the group has the members with the same value of a field, and this predicate has no by", "write all, or a group such as filter(members, .load > 2)")
	case strings.TrimSpace(t.Expr) == config.Everybody.Expr && c.group != "":
		out.To, out.ToAll = c.compileProgram(at, t.Expr, c.plan.Env.Members), true
	case strings.TrimSpace(t.Expr) == config.Holders && !r.Detector.Exists() && !c.unsure:
		c.report(at, -1, "the holders are the members that a threshold, or a modality, has found to satisfy its condition, and this predicate has neither",
			"write all, or a group such as filter(members, .load > 2)")
	case strings.TrimSpace(t.Expr) == config.Holders:
		out.Holders = true
	default:
		out.To, out.ToAll = c.compileProgram(at, t.Expr, c.env.Members), strings.TrimSpace(t.Expr) == config.Everybody.Expr
	}
}

// maxGroups is how many other groups a synchronizer may send to: it hears all that
// their members say.
const maxGroups = 16

// otherGroup compiles the target that is another group.
func (c *compiler) otherGroup(at string, t *config.Target, out *Send) {
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
	out.Group = t.Group
	limit := t.Max
	if limit == 0 {
		limit = config.DefaultMaxMembers
	}
	i := slices.IndexFunc(c.plan.OtherGroups, func(g targetGroup) bool { return g.Name == t.Group })
	switch {
	case i >= 0:
		c.plan.OtherGroups[i].Max = max(c.plan.OtherGroups[i].Max, limit)
	case len(c.plan.OtherGroups) == maxGroups:
		c.report(at+".group", -1, fmt.Sprintf("signals go to more than %d other groups", maxGroups), "run another synchronizer for some of them")
	default:
		c.plan.OtherGroups = append(c.plan.OtherGroups, targetGroup{t.Group, limit})
	}
}

// send notes what the level below will see of a signal as from_parent.
func (c *compiler) send(at, name string, fields scgs.Schema) {
	for i, known := range c.plan.SignalsBelow {
		if known.Name == name {
			known.Fields = redactedIn(known.Fields, fields)
			c.plan.SignalsBelow[i] = known
			if known.Fields.Hash() != redactedIn(fields, known.Fields).Hash() {
				c.report(at, -1, fmt.Sprintf("signal %q is sent elsewhere with other data", name), "give one of them another name")
			}
			return
		}
	}
	c.plan.SignalsBelow = append(c.plan.SignalsBelow, predicates.ParentSignal{Name: name, Fields: fields})
}

// redactedIn is a schema with Redact for the fields that another one of the same form
// has it for.
func redactedIn(fields, other scgs.Schema) scgs.Schema {
	if !other.Redacts() {
		return fields
	}
	fields = slices.Clone(fields)
	for i := range fields {
		if at := other.Index(fields[i].Name); at >= 0 && other[at].Redact {
			fields[i].Redact = true
		}
	}
	return fields
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
	c.plan.AboveState = c.sec.ParentState
	for _, e := range summary {
		switch {
		case c.sec.ParentState.Index(e.Key) < 0:
			c.report("summary."+e.Key, -1, fmt.Sprintf("the state of %q has no field %q", c.plan.Parent, e.Key), "")
		case blocks.Index(e.Key) < 0:
			c.report("summary."+e.Key, -1, fmt.Sprintf("the field %q is the processor's own", e.Key), "leave it out")
		}
	}
	for _, field := range c.sec.ParentState {
		t := SummaryField{Default: field.Default}
		src, ok := summary.Get(field.Name)
		switch {
		case !ok && processors: // It stays as it is.
		case !ok && strings.HasPrefix(field.Name, config.WorkPrefix): // The process tells it.
			t.Expr = c.compileProgram("summary", "process."+field.Name, func(src string) (*predicates.Expression, error) { return c.plan.Env.Value(src, field) })
		case ok && field.Type.IsList():
			c.report("summary."+field.Name, -1, fmt.Sprintf("a summary has single values, and %s is a list", field), "leave it out, and give it a default at the parent")
		case ok:
			t.Expr = c.compileProgram("summary."+field.Name, src, func(src string) (*predicates.Expression, error) { return c.plan.Env.Value(src, field) })
			c.receives("summary."+field.Name, t.Expr, "the state of "+c.plan.Parent, field)
		case t.Default.Type() != scgs.Invalid:
		case field.Type.IsList():
			c.report("summary", -1, fmt.Sprintf("the state of %q has a field %s, and no summary can be a list", c.plan.Parent, field), "give it a default there")
		default:
			c.report("summary", -1, fmt.Sprintf("the state of %q has a field %s", c.plan.Parent, field), "give an expression for it")
		}
		c.plan.Summaries = append(c.plan.Summaries, t)
	}
}

func (c *compiler) compileProgram(at, src string, compile func(string) (*predicates.Expression, error)) *predicates.Expression {
	program, err := compile(src)
	if err == nil {
		c.accountProgram(at, program)
		return program
	}
	c.refuseText(at, src, err)
	return nil
}

// accountProgram notes what a program costs and uses.
func (c *compiler) accountProgram(at string, p *predicates.Expression) {
	c.plan.Prev = c.plan.Prev || p.Uses().Prev
	c.charge(at, p)
	c.plan.Uses = append(c.plan.Uses, Use{at, p.Source(), p.Uses()})
	if text, more := p.Expanded(); more {
		c.means = append(c.means, text)
	}
}

// refuseText reports a fault in a text.
func (c *compiler) refuseText(at, src string, err error) {
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
			fmt.Sprintf("%s takes most of them, %d; functions over members that read nothing but the member are incremental and cost few steps: "+
				"write max(map(members, .x)) > memory.limit in place of any(members, .x > memory.limit), or lower the member limit", c.where, c.most))
	case begun <= maxSetup && c.setup > maxSetup:
		c.report(at, 0, fmt.Sprintf("with this text the predicates take more than %d steps with %d members when an epoch begins", maxSetup, members),
			"use fewer or simpler functions over members, or lower the member limit")
	}
}
