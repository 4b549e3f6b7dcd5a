package predicates

import (
	"slices"

	"github.com/expr-lang/expr/ast"

	"github.com/gopegasus/pegasus/scgs"
)

// group is a list of members, or of one value a member, that is never built: it
// is a loop over all members, the conditions that let one in, and what is taken
// of it. Whether a member is in can be unknown. A list of a state is a group, too:
// a loop over its elements.
type group struct {
	slot   int                               // the loop of the frame that it runs in
	list   func(*frame) (*scgs.Value, cause) // nil: the loop is over members
	before []func(*frame)                    // variables that it needs
	when   []func(*frame) truth
	elem   value // the member, or a value computed from it
	steps  int   // cost of elem
	at     int   // place in the text
}

// begin prepares a loop over the group.
func (g *group) begin(fr *frame) {
	for _, prepare := range g.before {
		prepare(fr)
	}
	if g.list != nil {
		l := &fr.lists[g.slot]
		l.list, l.why = g.list(fr)
	}
}

// has moves the loop to element i and says whether the group has it.
func (g *group) has(fr *frame, i int) truth {
	fr.loop[g.slot] = i
	in := g.there(fr)
	for _, when := range g.when {
		if in = and(in, when(fr)); in.is == False {
			break
		}
	}
	return in
}

// members is the group of all members.
func (c *compiler) members() value {
	c.uses.Members = true
	slot := len(c.loops)
	member := func(fr *frame) item { return item{index: fr.loop[slot]} }
	return value{group: &group{slot: slot, elem: value{item: member}, steps: 1}}
}

// group compiles the first argument of a function over a group.
func (c *compiler) group(n *ast.BuiltinNode) (*group, error) {
	if len(n.Arguments) == 0 {
		return nil, c.errorf(n, "write "+n.Name+"(members, ...)", "%s needs a group", n.Name)
	}
	v, err := c.compile(n.Arguments[0])
	if err != nil {
		return nil, err
	}
	if length := n.Name == "len" && v.list; len(c.loops) == MaxLoops && !length {
		return nil, c.errorf(n, "compute the inner group once with let, before the loop", "more than %d loops over members stand inside one another", MaxLoops)
	}
	if v.group == nil {
		return nil, c.errorf(n.Arguments[0], "write "+n.Name+"(members, ...)", "%s needs a group, this is %s", n.Name, v.what())
	}
	g := *v.group
	g.at = offset(n)
	return &g, nil
}

// body compiles what a function does with each element of a group: the second
// argument, or the element itself if there is none.
func (c *compiler) body(n *ast.BuiltinNode, g *group) (value, int, error) {
	if len(n.Arguments) == 1 {
		return g.elem, g.steps, c.inside(g, func() error { return c.charge(n, g.steps) })
	}
	part := n.Arguments[1]
	if p, ok := part.(*ast.PredicateNode); ok {
		part = p.Node
	}
	var v value
	before := c.cost
	err := c.inside(g, func() (err error) {
		v, err = c.compile(part)
		return err
	})
	return v, (c.cost - before) / max(1, c.factor*c.bound(g)), err
}

// inside runs compile as the body of a loop over the group.
func (c *compiler) inside(g *group, compile func() error) error {
	outer := c.factor
	c.factor *= c.bound(g)
	c.loops = append(c.loops, loop{g.elem, g.list != nil})
	err := compile()
	c.loops = c.loops[:len(c.loops)-1]
	c.factor = outer
	return err
}

// each compiles a group and a condition on its elements.
func (c *compiler) each(n *ast.BuiltinNode) (*group, func(*frame) truth, error) {
	g, err := c.group(n)
	if err != nil {
		return nil, nil, err
	}
	v, _, err := c.body(n, g)
	if err != nil {
		return nil, nil, err
	}
	if v.bool == nil {
		return nil, nil, c.errorf(n.Arguments[len(n.Arguments)-1], "write a condition on the member, such as .online", "%s needs a condition, this is %s", n.Name, v.what())
	}
	return g, v.bool, nil
}

// quantifier compiles all, any, none and one.
func (c *compiler) quantifier(n *ast.BuiltinNode) (value, error) {
	g, cond, err := c.each(n)
	if err != nil {
		return value{}, err
	}
	switch n.Name {
	case "all":
		fails := func(fr *frame) truth { return not(cond(fr)) }
		return boolValue(func(fr *frame) truth { return not(g.any(fr, fails)) }), nil
	case "none":
		return boolValue(func(fr *frame) truth { return not(g.any(fr, cond)) }), nil
	case "one":
		return boolValue(func(fr *frame) truth { return g.one(fr, cond) }), nil
	}
	return boolValue(func(fr *frame) truth { return g.any(fr, cond) }), nil
}

// any is whether the condition holds for an element; it is unknown over an
// empty group, and so are all and none, which are its negations.
func (g *group) any(fr *frame, cond func(*frame) truth) truth {
	g.begin(fr)
	t := tally{empty: true}
	for i := range g.size(fr) {
		if in := g.has(fr, i); in.is != False && t.add(in, cond(fr)) {
			return truth{is: True}
		}
	}
	return g.decided(t, false)
}

// one is whether the condition holds for exactly one element.
func (g *group) one(fr *frame, cond func(*frame) truth) truth {
	t := g.count(fr, cond)
	if t.yes > 1 {
		return truth{is: False}
	}
	return g.decided(t, t.yes == 1)
}

// count tallies a condition over the group.
func (g *group) count(fr *frame, cond func(*frame) truth) tally {
	g.begin(fr)
	t := tally{empty: true}
	for i := range g.size(fr) {
		if in := g.has(fr, i); in.is != False {
			t.add(in, cond(fr))
		}
	}
	return t
}

// tally counts the elements of a group that a condition holds for.
type tally struct {
	yes   int64 // holds for certain
	open  int64 // may hold, or the element may not be there
	empty bool  // no element is there for certain
	why   cause // of the first open one
	maybe cause // of the first element that may not be there
}

// add counts an element that is in, or may be, and whether it is a yes.
func (t *tally) add(in, holds truth) bool {
	if in.is == True {
		t.empty = false
	}
	t.maybe = either(t.maybe, in.why)
	both := and(holds, in)
	switch both.is {
	case True:
		t.yes++
	case Unknown:
		t.open++
		t.why = either(t.why, both.why)
	case False:
	}
	return both.is == True
}

// decided is the answer, unless an open element could change it or the group
// is or may be empty.
func (g *group) decided(t tally, answer bool) truth {
	switch {
	case t.open > 0:
		return unknown(t.why)
	case t.empty:
		return unknown(either(t.maybe, g.empty()))
	}
	return truthOf(answer)
}

// counter compiles count and len.
func (c *compiler) counter(n *ast.BuiltinNode) (value, error) {
	var g *group
	var err error
	cond := constant(truth{is: True})
	if n.Name == "count" {
		g, cond, err = c.each(n)
	} else if g, err = c.group(n); err == nil {
		if g.list != nil && len(g.when) == 0 {
			return c.length(g), nil
		}
		err = c.inside(g, func() error { return c.charge(n, 1) })
	}
	if err != nil {
		return value{}, err
	}
	return intValue(func(fr *frame) span[int64] {
		t := g.count(fr, cond)
		return between(t.yes, t.yes+t.open, t.why)
	}), nil
}

// filter adds a condition to a group.
func (c *compiler) filter(n *ast.BuiltinNode) (value, error) {
	g, cond, err := c.each(n)
	if err != nil {
		return value{}, err
	}
	g.when = append(slices.Clip(g.when), cond)
	return value{group: g}, nil
}

// mapping changes what is taken of each element.
func (c *compiler) mapping(n *ast.BuiltinNode) (value, error) {
	g, err := c.group(n)
	if err != nil {
		return value{}, err
	}
	v, steps, err := c.body(n, g)
	if err != nil {
		return value{}, err
	}
	if !v.scalar() {
		return value{}, c.errorf(n.Arguments[1], "map to a field or a value, such as .name", "map needs a value for each element, this is %s", v.what())
	}
	g.elem, g.steps = v, steps
	return value{group: g}, nil
}

// find compiles the first member that a condition holds for.
func (c *compiler) find(n *ast.BuiltinNode) (value, error) {
	g, cond, err := c.each(n)
	if err != nil {
		return value{}, err
	}
	if g.elem.item == nil {
		return value{}, c.errorf(n.Arguments[0], "write find(members, ...)", "find needs members, this is a list of values")
	}
	return value{prev: g.elem.prev, item: func(fr *frame) item {
		g.begin(fr)
		for i := range fr.s.members {
			switch t := and(g.has(fr, i), cond(fr)); t.is {
			case True:
				return g.elem.item(fr)
			case Unknown:
				return item{why: t.why}
			case False:
			}
		}
		return item{why: at(noMatch, g.at)}
	}}, nil
}
