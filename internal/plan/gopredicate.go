package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
)

// GoPredicate is a predicate that is judged by the program. What follows from it
// is written as in a configuration; When and Modality stay empty.
type GoPredicate struct {
	Name  string        // a token that no predicate of the configuration has
	Judge monitor.Judge // called by the machine, on each global state; not nil
	config.Predicate
}

// With returns the level with more predicates; p stays as it is. The error lists every fault in them.
func (p *Level) With(more []GoPredicate) (*Level, error) {
	if len(more) == 0 {
		return p, nil
	}
	var faults []error
	plan := *p
	plan.Rules, plan.SignalsBelow, plan.OtherGroups = slices.Clone(p.Rules), slices.Clone(p.SignalsBelow), slices.Clone(p.OtherGroups)
	c := compiler{sec: &config.Section{Name: p.Name}, plan: &plan, env: plan.names, report: func(at string, _ int, message, hint string) {
		if hint != "" {
			message += ": " + hint
		}
		faults = append(faults, fmt.Errorf("%s: %s", at, message))
	}}
	for i := range more {
		c.goPredicate(&more[i])
	}
	plan.orderRules()
	return &plan, errors.Join(faults...)
}

func (c *compiler) goPredicate(g *GoPredicate) {
	at := "predicates." + g.Name
	if err := wire.CheckToken("predicate", g.Name); err != nil {
		c.report(at, -1, err.Error(), "")
	}
	if g.Name == config.BalanceName && c.plan.Balance != nil {
		c.report(at, -1, "the section balance has that name", "give the predicate another one")
	}
	if slices.ContainsFunc(c.plan.Rules, func(r *Rule) bool { return r.Name == g.Name }) {
		c.report(at, -1, "there is a predicate of that name already", "give it another name")
	}
	if g.Judge == nil {
		c.report(at, -1, "the predicate has no Judge", "give a function, or write the predicate in the configuration")
	}
	p := g.Predicate
	p.Signal = slices.Clone(p.Signal)
	for i := range p.Signal {
		s := &p.Signal[i]
		if s.Region == "" {
			c.report(at+".signal", -1, "a signal needs the region that it goes to", "")
		}
		if s.To.Expr == "" && len(s.To.Names) == 0 && s.To.Group == "" {
			s.To = config.Everybody
		}
		if s.Expires == 0 {
			s.Expires = config.DefaultExpiry
		}
	}
	if p.By != "" || p.Each != "" {
		c.report(at, -1, "a function judges the global state as a whole: by and each are for conditions that are written", "leave them out")
		return
	}
	r := c.compileRule(g.Name, g.Name, &p)
	r.Judge = g.Judge
	c.plan.Rules = append(c.plan.Rules, r)
}
