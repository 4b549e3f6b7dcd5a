package predicates

import (
	"slices"

	"github.com/expr-lang/expr/ast"

	"github.com/gopegasus/pegasus/scgs"
)

// group is a list of members, or of a value for each member, that is never built: it is a loop
// over all members, with the conditions that admit a member and the value to take of it.
// Whether a member is in can be unknown. A list of a state is a group, too: a loop over its
// elements.
type group struct {
	slot   int                               // the loop of the frame that it runs in
	list   func(*frame) (*scgs.Value, cause) // nil: the loop is over members
	before []func(*frame)                    // variables that it needs
	when   []func(*frame) truth
	elem   value  // the member, or a value computed from it
	steps  int    // cost of elem
	key    string // the identity of the conditions
	number string // the identity of elem; empty: it is the member
	at     int    // place in the text
}

// beginLoop prepares a loop over the group.
func (g *group) beginLoop(fr *frame) {
	for _, prepare := range g.before {
		prepare(fr)
	}
	if g.list != nil {
		l := &fr.lists[g.slot]
		l.list, l.why = g.list(fr)
	}
}

// moveTo moves the loop to element i and says whether the group has it.
func (g *group) moveTo(fr *frame, i int) truth {
	fr.loop[g.slot] = i
	in := g.hasCurrent(fr)
	for _, when := range g.when {
		if in = andTruth(in, when(fr)); in.is == False {
			break
		}
	}
	return in
}

// memberGroup is the group of all members.
func (c *compiler) memberGroup() value {
	c.uses.Members = true
	slot := len(c.loops)
	c.loop = max(c.loop, slot)
	member := func(fr *frame) item { return item{index: fr.loop[slot]} }
	return value{group: &group{slot: slot, elem: value{item: member, own: true}, steps: 1}}
}

// compileGroup compiles the first argument of a function over a group.
func (c *compiler) compileGroup(n *ast.BuiltinNode) (*group, error) {
	if len(n.Arguments) == 0 {
		return nil, c.errorf(n, "write "+n.Name+"(members, ...)", "%s needs a group", n.Name)
	}
	v, err := c.compileNode(n.Arguments[0])
	if err != nil {
		return nil, err
	}
	if length := n.Name == "len" && v.list; len(c.loops) == MaxLoops && !length {
		return nil, c.errorf(n, "compute the inner group once with let, before the loop", "more than %d loops over members stand inside one another", MaxLoops)
	}
	if v.group == nil {
		return nil, c.errorf(n.Arguments[0], "write "+n.Name+"(members, ...)", "%s needs a group, this is %s", n.Name, v.typeName())
	}
	g := *v.group
	g.at = offsetOf(n)
	return &g, nil
}

// compileBody compiles what a function does with each element of a group: the second
// argument, or the element itself if there is none.
func (c *compiler) compileBody(n *ast.BuiltinNode, g *group) (value, int, error) {
	if len(n.Arguments) == 1 {
		return g.elem, g.steps, c.compileInside(g, func() error { return c.chargeSteps(n, g.steps) })
	}
	part := n.Arguments[1]
	if p, ok := part.(*ast.PredicateNode); ok {
		part = p.Node
	}
	var v value
	before := c.cost
	err := c.compileInside(g, func() (err error) {
		v, err = c.compileNode(part)
		return err
	})
	return v, (c.cost - before) / multiplySteps(c.factor, c.greatestSize(g)), err
}

// compileInside runs compile as the body of a loop over the group.
func (c *compiler) compileInside(g *group, compile func() error) error {
	outer := c.factor
	c.factor = multiplySteps(c.factor, c.greatestSize(g))
	c.loops = append(c.loops, loop{g.elem, g.list != nil})
	err := compile()
	c.loops = c.loops[:len(c.loops)-1]
	c.factor = outer
	return err
}

// compileEach compiles a group and a condition on its elements.
func (c *compiler) compileEach(n *ast.BuiltinNode) (*group, func(*frame) truth, error) {
	g, err := c.compileGroup(n)
	if err != nil {
		return nil, nil, err
	}
	v, _, err := c.compileBody(n, g)
	if err != nil {
		return nil, nil, err
	}
	if v.bool == nil {
		return nil, nil, c.errorf(n.Arguments[len(n.Arguments)-1], "write a condition on the member, such as .online", "%s needs a condition, this is %s", n.Name, v.typeName())
	}
	return g, v.bool, nil
}

// compileFilter adds a condition to a group.
func (c *compiler) compileFilter(n *ast.BuiltinNode) (value, error) {
	g, cond, err := c.compileEach(n)
	if err != nil {
		return value{}, err
	}
	g.when = append(slices.Clip(g.when), cond)
	g.key += "|" + g.elementOf(n)
	return value{group: g}, nil
}

// compileMapping changes the value taken of each element.
func (c *compiler) compileMapping(n *ast.BuiltinNode) (value, error) {
	g, err := c.compileGroup(n)
	if err != nil {
		return value{}, err
	}
	v, steps, err := c.compileBody(n, g)
	if err != nil {
		return value{}, err
	}
	if !v.isScalar() {
		return value{}, c.errorf(n.Arguments[1], "map to a field or a value, such as .name", "map needs a value for each element, this is %s", v.typeName())
	}
	g.number = g.elementOf(n)
	g.elem, g.steps = v, steps
	return value{group: g}, nil
}

// compileFind compiles the first member that a condition holds for.
func (c *compiler) compileFind(n *ast.BuiltinNode) (value, error) {
	g, cond, err := c.compileEach(n)
	if err != nil {
		return value{}, err
	}
	if g.elem.item == nil {
		return value{}, c.errorf(n.Arguments[0], "write find(members, ...)", "find needs members, this is a list of values")
	}
	return value{prev: g.elem.prev, item: func(fr *frame) item {
		g.beginLoop(fr)
		for i := range fr.s.members {
			switch t := andTruth(g.moveTo(fr, i), cond(fr)); t.is {
			case True:
				return g.elem.item(fr)
			case Unknown:
				return item{why: t.why}
			case False:
			}
		}
		return item{why: causeAt(noMatch, g.at)}
	}}, nil
}
