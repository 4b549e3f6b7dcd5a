package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/internal/yamlconf"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// compileLets gives expressions names, each of which the later ones may use.
func (c *compiler) compileLets(at string, list yamlconf.Map[string]) {
	for _, e := range list {
		env, err := c.env.Let(e.Key, e.Value)
		if err != nil {
			where := at + "." + e.Key
			if fault, ok := errors.AsType[*predicates.Error](err); ok && fault.Source == "" {
				c.report(where, -1, fault.Message, fault.Hint)
			} else {
				c.refuseText(where, e.Value, err)
			}
			continue
		}
		c.env = env
	}
}

// listMeanings is what the texts of the rule that was compiled last stand for, where that is
// not in its section: what names stand for and, where the rule has a detector of its own,
// the parameters, of which such a detector sees one value.
func (c *compiler) listMeanings(r *Rule) []string {
	means := slices.Clone(c.means)
	if !r.Detector.Exists() || r.When == nil {
		return means
	}
	for i, p := range c.plan.Env.Params {
		if r.When.Uses().Params>>i&1 == 1 {
			means = append(means, "params."+p.Field.Name+" = "+config.ParamText(p.Value))
		}
	}
	return means
}

// toGroup is the target that is the members of the group that a predicate is judged for.
const toGroup = "group"

// compileBy compiles a predicate for each value of a field. In its texts the members are those
// with that value.
func (c *compiler) compileBy(key string, p *config.Predicate) {
	at := "predicates." + key
	field, ok := strings.CutPrefix(strings.TrimSpace(p.By), ".")
	i := c.plan.State.Index(field)
	switch {
	case !ok || i < 0:
		c.report(at+".by", -1, fmt.Sprintf("%q is no field of the members", p.By), "write .FIELD, with a field of state that is an enum or a bool")
		return
	case c.plan.State[i].Redact:
		c.report(at+".by", -1, fmt.Sprintf("the names of the predicates would show the values of the redacted field %q", field), "group by another field, or leave out redact")
		return
	case p.Each != "":
		c.report(at+".by", -1, "each already judges each member separately: leave out by or each", "")
		return
	}
	values := c.plan.State[i].Words
	if c.plan.State[i].Type == scgs.Bool {
		values = []string{"false", "true"}
	}
	if len(values) == 0 {
		c.report(at+".by", -1, fmt.Sprintf("members are grouped by an enum or a bool, whose values are known beforehand, and this is %s", c.plan.State[i]),
			"declare it as {enum: [a, b]}")
		return
	}
	report, shared, told := c.report, c.env, map[string]bool{}
	c.report = func(at string, offset int, message, hint string) { // A fault in one group is a fault in all.
		if !told[at+message] {
			told[at+message] = true
			report(at, offset, message, hint)
		}
	}
	for _, value := range values {
		c.env, c.group = shared.Group(field, value), value
		name := key + "-" + value
		if err := wire.CheckToken("predicate", name); err != nil {
			c.report(at+".by", -1, fmt.Sprintf("the predicate of each group is named by it, and %q cannot be a name: %v", name, err), "give the word, or the predicate, another name")
			break
		}
		if _, taken := c.sec.Synchronizer.Predicates.Get(name); taken {
			c.report(at+".by", -1, fmt.Sprintf("the predicate of a group is named by it, and there is another predicate %q", name), "give one of them another name")
			break
		}
		r := c.compileRule(key, name, p)
		r.By, r.Of = i+1, scgs.EnumValue(value)
		if c.plan.State[i].Type == scgs.Bool {
			r.Of = scgs.BoolValue(value == "true")
		}
		c.plan.Rules = append(c.plan.Rules, r)
	}
	c.report, c.group = report, ""
}

// compileEach compiles a condition on one member, which is judged for each separately.
func (c *compiler) compileEach(at string, p *config.Predicate, r *Rule) {
	if p.Each != config.EachMember {
		c.report(at+".each", -1, fmt.Sprintf("%q is nothing that a predicate is judged for", p.Each), "write each: members; for groups of members there is by")
		return
	}
	if p.Modality != "" {
		c.report(at+".modality", -1, "each judges a single state, which holds or does not: leave out modality or each", "")
	}
	r.Detector = Detector{Each: true}
	defer func() { c.env = c.env.One() }()
	when, local, err := c.env.Each(p.When)
	if err != nil {
		c.refuseText(at+".when", p.When, err)
		return
	}
	c.accountProgram(at+".when", when)
	r.When, r.Detector.Local = when, local
}

// eachUntil compiles the condition that ends a member's run.
func (c *compiler) eachUntil(at string, p *config.Predicate, r *Rule) {
	if p.For > 0 {
		c.report(at+".until", -1, "with each the condition has to hold for all of the hold time: leave out for or until", "")
	}
	when, local, err := c.env.Each(p.Until)
	if err != nil {
		c.refuseText(at+".until", p.Until, err)
		return
	}
	c.accountProgram(at+".until", when)
	r.Detector.Until = local
}

// maxAfter is the longest time that one predicate waits for another.
const maxAfter = 24 * time.Hour

// compileLimits compiles how often a rule fires, and after what.
func (c *compiler) compileLimits(at string, p *config.Predicate, r *Rule) {
	switch p.Once {
	case "":
	case config.OnceRun, config.OnceEpoch:
		r.Once = p.Once
	case config.OnceMember:
		if r.Once = p.Once; !r.Detector.Each {
			c.report(at+".once", -1, "once for a member needs a predicate that is judged for each member", "write each: members, or once: run or epoch")
		}
	default:
		c.report(at+".once", -1, fmt.Sprintf("%q is no time in which it fires once", p.Once), "use run, epoch or member, or leave it out")
	}
	if p.Once != "" && p.Every {
		c.report(at+".once", -1, "every fires on each global state: leave out every or once", "")
	}
	c.refire(at, p, r)
	for _, e := range p.After {
		where := at + ".after." + e.Key
		switch {
		case e.Value < 0 || e.Value > maxAfter:
			c.report(where, -1, fmt.Sprintf("the time after the other predicate must be from 0s to %v", maxAfter), "")
		case e.Key == strings.TrimPrefix(at, "predicates."):
			c.report(where, -1, "a predicate does not fire after itself", "name another one; cooldown is the least time between two firings of this one")
		}
		r.After = append(r.After, After{Rule: e.Key, Wait: e.Value})
	}
	switch {
	case len(p.After) == 0:
	case p.For > 0:
		c.report(at+".after", -1, "after waits already: leave out for, or give the other predicate the hold time", "")
	case p.Every:
		c.report(at+".after", -1, "every fires on each global state: leave out every or after", "")
	case r.Detector.Exists():
		c.report(at+".after", -1, "a predicate that is judged on its own runs of states does not wait for another one", "leave out after, modality or each; for a count write len(filter(members, CONDITION))")
	}
}

// refire compiles for whom the rule fires in a new epoch.
func (c *compiler) refire(at string, p *config.Predicate, r *Rule) {
	switch p.Refire {
	case "", config.RefireNewcomers:
	case config.RefireEpoch:
		r.Refires = true
	default:
		c.report(at+".refire", -1, fmt.Sprintf("%q says nothing of a new epoch", p.Refire), "use newcomers or epoch, or leave it out")
	}
	switch {
	case p.Refire == "":
	case p.Every:
		c.report(at+".refire", -1, "every fires on each global state: leave out every or refire", "")
	case r.Detector.Each:
		c.report(at+".refire", -1, "each judges each member, for which a new epoch is nothing new: leave out each or refire", "")
	}
}

// findAfters finds the predicates that others wait for.
func (c *compiler) findAfters() {
	at := map[string]*Rule{}
	for _, r := range c.plan.Rules {
		at[r.Name] = r
	}
	for _, r := range c.plan.Rules {
		for i := range r.After {
			a := &r.After[i]
			name := a.Rule
			if at[name] == nil && r.Key != r.Name { // Of a group: the other one of the same group.
				a.Rule += strings.TrimPrefix(r.Name, r.Key)
			}
			if at[a.Rule] == nil {
				where := "predicates." + r.Key + ".after." + name
				c.report(where, -1, fmt.Sprintf("there is no predicate %q", a.Rule), "the others are "+strings.Join(slices.Sorted(maps.Keys(at)), ", "))
			}
		}
	}
	for _, r := range c.plan.Rules {
		if circle := circleOf(r, at, nil); len(circle) > 0 {
			c.report("predicates."+r.Key+".after", -1, "predicates wait for each other: "+strings.Join(circle, " after "), "leave out one of them")
			return
		}
	}
}

// circleOf follows whom a rule waits for; it returns the names if that is a circle.
func circleOf(r *Rule, at map[string]*Rule, way []string) []string {
	if i := slices.Index(way, r.Name); i >= 0 {
		return append(way[i:], r.Name)
	}
	way = append(slices.Clip(way), r.Name)
	for _, a := range r.After {
		if next := at[a.Rule]; next != nil {
			if circle := circleOf(next, at, way); len(circle) > 0 {
				return circle
			}
		}
	}
	return nil
}
