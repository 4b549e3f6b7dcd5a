package synccore

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// Judge is a predicate written in Go: it says whether a global state satisfies it
// and, if that is unknown, why. It must be a function of the global state alone.
type Judge func(GlobalState) (truth predicates.Truth, reason string)

// GlobalState is what a [Judge] is shown: states of all members that certainly
// held at the same time. It may be read until the Judge returns.
type GlobalState struct {
	// Epoch and Index name the global state.
	Epoch, Index uint64
	// Partial is set if the state of some member is unknown; then this is no
	// strongly consistent global state, but what is known in it held together.
	Partial bool
	// Span is when it held.
	Span scgs.Span

	plan  *Plan
	scope *predicates.Scope
}

func (c *Core) globalState(span scgs.Span) GlobalState {
	return GlobalState{
		Epoch: c.ev.Epoch, Index: c.ev.Index, Partial: c.ev.Partial, Span: span, plan: c.plan, scope: c.scope,
	}
}

// Len is the number of members.
func (g GlobalState) Len() int { return g.scope.Len() }

// Member tells who member i is, in the order of names from 0, and whether its
// state is known.
func (g GlobalState) Member(i int) (name, host string, online bool) {
	m, online := g.scope.Member(i)
	return m.Name, m.Host, online
}

// Value is a field of member i's state. It is Invalid if the state is unknown or
// has no value for the field. A field that is not declared is a mistake of the
// program, and a panic.
func (g GlobalState) Value(i int, field string) scgs.Value {
	f := g.plan.State.Index(field)
	if f < 0 {
		panic(fmt.Sprintf("the state has no field %q: declared are %s", field, fieldNames(g.plan.State)))
	}
	return g.scope.Value(i, f)
}

// Memory is a variable of the synchronizer, Invalid if it has no value yet. A
// variable that is not declared is a mistake of the program, and a panic.
func (g GlobalState) Memory(name string) scgs.Value {
	i := g.plan.env.Memory.Index(name)
	if i < 0 {
		panic(fmt.Sprintf("memory has no variable %q: declared are %s", name, fieldNames(g.plan.env.Memory)))
	}
	return g.scope.Memory(i)
}

// GoPredicate is a predicate that is judged by the program. What follows from it
// is written as in a configuration; When and Modality stay empty.
type GoPredicate struct {
	Name  string
	Judge Judge
	Predicate
}

// With is the plan with more predicates. The error lists every fault in them.
func (p *Plan) With(more []GoPredicate) (*Plan, error) {
	if len(more) == 0 {
		return p, nil
	}
	var faults []error
	plan := *p
	plan.rules, plan.sends, plan.groups = slices.Clone(p.rules), slices.Clone(p.sends), slices.Clone(p.groups)
	c := compiler{sec: &Section{Name: p.Name}, plan: &plan, report: func(at string, _ int, message, hint string) {
		if hint != "" {
			message += ": " + hint
		}
		faults = append(faults, fmt.Errorf("%s: %s", at, message))
	}}
	for i := range more {
		c.goPredicate(&more[i])
	}
	plan.order()
	return &plan, errors.Join(faults...)
}

func (c *compiler) goPredicate(g *GoPredicate) {
	at := "predicates." + g.Name
	if err := wire.CheckToken("predicate", g.Name); err != nil {
		c.report(at, -1, err.Error(), "")
	}
	if g.Name == BalanceName && c.plan.balance != nil {
		c.report(at, -1, "the section balance has that name", "give the predicate another one")
	}
	if slices.ContainsFunc(c.plan.rules, func(r *rule) bool { return r.name == g.Name }) {
		c.report(at, -1, "there is a predicate of that name already", "give it another name")
	}
	if g.Judge == nil {
		c.report(at, -1, "it has no Judge", "give a function, or write the predicate in the configuration")
	}
	p := g.Predicate
	p.Signal = slices.Clone(p.Signal)
	for i := range p.Signal {
		s := &p.Signal[i]
		if s.Region == "" {
			c.report(at+".signal", -1, "a signal needs the region that it goes to", "")
		}
		if s.To.Expr == "" && len(s.To.Names) == 0 && s.To.Group == "" {
			s.To = everybody
		}
		if s.Expires == 0 {
			s.Expires = defaultExpiry
		}
	}
	r := c.rule(g.Name, &p)
	r.judge = g.Judge
	c.plan.rules = append(c.plan.rules, r)
}
