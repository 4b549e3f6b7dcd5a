package plan

import (
	"cmp"
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

// fillWork adds the fields of the section work to the state, and its variable to the memory. Below a
// level with the section it adds the fields to the state of the process, whose summary passes them up.
func (c *compiler) fillWork() {
	s := &c.sec.Synchronizer
	c.workNames(s)
	if s.Work == nil {
		for _, f := range c.sec.ParentState {
			if strings.HasPrefix(f.Name, config.WorkPrefix) && s.Members.Threads && f.Type.IsList() {
				c.report("parent", -1, "the parent plans the moves of objects: its members have no threads", "use another strategy in its section work, or leave out this level")
				return
			}
			if strings.HasPrefix(f.Name, config.WorkPrefix) && s.Members.Threads {
				c.plan.Process = c.addField("process", c.plan.Process, f)
			}
		}
		return
	}
	names, reads := slices.Clone(config.WorkFields), c.readsFilled()
	if s.Work.Strategy.Central() {
		names = append(names, config.WorkLoads...)
	}
	if s.Work.Record {
		for _, name := range config.WorkRecorded {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	for _, name := range config.WorkEstimates {
		if slices.Contains(names, name) {
			continue
		}
		if slices.Contains(reads, name) || c.plan.State.Index(config.WorkPrefix+name) >= 0 {
			names = append(names, name)
		}
	}
	for _, name := range names {
		c.plan.State = c.addField("state", c.plan.State, config.WorkField(name))
	}
	zero := "0"
	c.plan.Ended = len(c.plan.Variables)
	c.plan.Variables = append(slices.Clip(c.plan.Variables), config.Variable{Field: scgs.Field{Name: config.EndedName, Type: scgs.Int}, Initial: &zero})
	if err := config.Variables(c.plan.Variables).Schema().Validate(); err != nil && s.Memory.Schema().Index(config.EndedName) < 0 {
		c.report("memory", -1, fmt.Sprintf("with the variable %s of the section work: %v", config.EndedName, err), "")
	}
}

// addField adds a field that the section fills to a declared state, before what a processor tells.
func (c *compiler) addField(at string, to scgs.Schema, f scgs.Field) scgs.Schema {
	if i := to.Index(f.Name); i >= 0 {
		if to[i].String() != f.String() || to[i].Default != f.Default {
			c.report(at+"."+f.Name, -1, fmt.Sprintf("the section work fills the field %v", f), "leave it out")
		}
		return to
	}
	place := len(to)
	if wire.IsProcessor(to) {
		place -= wire.ProcessorFields
	}
	to = slices.Insert(slices.Clone(to), place, f)
	if err := to.Validate(); err != nil && to[:len(to)-1].Validate() == nil {
		c.report(at, -1, fmt.Sprintf("with the fields of the section work: %v", err), "declare fewer")
	}
	return to
}

// workNames refuses names that are the section's beside it, and fields of it without it.
func (c *compiler) workNames(s *config.Synchronizer) {
	section := s.Work != nil
	for _, f := range s.State {
		short, filled := strings.CutPrefix(f.Name, config.WorkPrefix)
		switch {
		case section && f.Name == config.WorkName:
			c.report("state."+f.Name, -1, "the field "+f.Name+" is reserved: the section work fills the fields work.NAME", "give the field another name")
		case section && filled && !slices.Contains(c.filledNames(), short):
			c.report("state."+f.Name, -1, fmt.Sprintf("the section work has no field %s", f.Name), "the fields are work."+strings.Join(c.filledNames(), ", work."))
		case !section && filled:
			c.report("state", -1, fmt.Sprintf("the field %s is filled by the section work, and there is none", f.Name), "add work: {}, or give the field another name")
		}
	}
	for _, v := range s.Memory {
		switch name := v.Field.Name; {
		case strings.HasPrefix(name, config.WorkPrefix):
			c.report("memory", -1, fmt.Sprintf("a variable of the memory cannot be named %s", name), "give it a name without a dot")
		case section && name == config.EndedName:
			c.report("memory."+name, -1, "the section work has a variable of that name, the number of the last phase that is over: memory."+name, "leave it out, or give yours another name")
		}
	}
	if !section {
		return
	}
	for _, e := range s.Predicates {
		if e.Key == config.EndName {
			c.report("predicates."+e.Key, -1, "the section work has a predicate of that name, which ends a phase", "give yours another name, or write its condition as end: under work")
		}
	}
}

// filledNames are the names that may follow .work. in expressions.
func (c *compiler) filledNames() []string {
	if c.sec.Synchronizer.Work == nil && !slices.ContainsFunc(c.plan.Process, func(f scgs.Field) bool { return strings.HasPrefix(f.Name, config.WorkPrefix) }) {
		return nil
	}
	list := config.WorkFilled()
	if s := c.sec.Synchronizer.Work; s != nil && s.Strategy.Central() {
		list = append(list, config.WorkLoads...)
	}
	for _, name := range config.WorkRecorded {
		if s := c.sec.Synchronizer.Work; !slices.Contains(list, name) && (s != nil && s.Record || s == nil && c.plan.Process.Index(config.WorkPrefix+name) >= 0) {
			list = append(list, name)
		}
	}
	return list
}

// readsFilled lists the names that follow .work. in the texts of the section.
func (c *compiler) readsFilled() (names []string) {
	s := &c.sec.Synchronizer
	texts := []string{s.Work.End, s.Work.Withdraw.When, s.Work.Withdraw.Back}
	for _, e := range s.Let {
		texts = append(texts, e.Value)
	}
	for i := range s.Predicates {
		p := &s.Predicates[i].Value
		texts = append(texts, p.When, p.Until)
		for _, e := range slices.Concat(p.Let, p.Set) {
			texts = append(texts, e.Value)
		}
		for k := range p.Signal {
			texts = append(texts, p.Signal[k].To.Expr)
			for _, e := range p.Signal[k].Data {
				texts = append(texts, e.Value)
			}
		}
	}
	if b := s.Balance; b != nil {
		texts = append(texts, b.Loads, b.Weights, b.Rest, b.Power, b.Share, b.When)
	}
	for _, text := range texts {
		names = predicates.ReadsFilled(names, text)
	}
	return names
}

// The part of the condition of an end that the key end does not replace: all members are in one phase,
// which is not over. The phase of a member that has not opened the space is 0.
const (
	phase     = "max(map(members, .work.phase))"
	samePhase = "min(map(members, .work.phase)) == " + phase + " and " + phase + " > memory." + config.EndedName
)

// compileEnd compiles the predicate that ends a phase. It is judged on every global state: a phase that is
// shorter than the bound of the clocks leaves no state between two ends on which it is certainly false.
// It holds on one global state of a phase only, as it sets memory.ended.
func (c *compiler) compileEnd() {
	s := c.sec.Synchronizer.Work
	report := c.report
	defer func() { c.report, c.ending = report, false }()
	text := cmp.Or(s.End, config.DefaultEnd)
	if text != config.DefaultEnd {
		if _, err := c.env.Bool(text); err != nil {
			c.refuseText(config.WorkName+".end", text, err)
			return
		}
		text = "(" + text + "\n)" // It may end in a comment.
	}
	c.report, c.ending = c.reportEnd(report), true
	c.plan.Newest = c.compileProgram(config.WorkName, phase, func(src string) (*predicates.Expression, error) {
		return c.plan.Env.Value(src, scgs.Field{Type: scgs.Int})
	})
	c.plan.Rules = append(c.plan.Rules, c.compileRule(config.EndName, config.EndName, &config.Predicate{
		When: text + " and " + samePhase, Every: true,
		Set: yamlconf.Map[string]{{Key: config.EndedName, Value: phase}},
		Signal: config.Signals{{
			Kind: control.Cancel.String(), Region: config.WorkName, To: config.Everybody, ToDefault: true, Expires: config.DefaultExpiry,
		}},
	}))
}

// reportEnd reports faults of the predicate end, which is not in the file, where the section is.
func (c *compiler) reportEnd(report FaultFunc) FaultFunc {
	at := config.WorkName
	if end := c.sec.Synchronizer.Work.End; end != "" && end != config.DefaultEnd {
		at += ".end"
	}
	return func(where string, offset int, message, hint string) {
		if where != at {
			where, offset = at, -1
		}
		report(where, offset, message, hint)
	}
}
