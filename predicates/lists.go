package predicates

import (
	"github.com/expr-lang/expr/ast"

	"github.com/gopegasus/pegasus/scgs"
)

// A list of a state is a group of its elements. An unknown list is a group of as many elements
// as a list may have, and for each it is unknown whether it exists: so counts have their
// bounds, and all else is unknown.

// listed is the list that a loop runs over; why is set if it is unknown.
type listed struct {
	list *scgs.Value
	why  cause
}

// scanSteps is the cost of looking through a list without evaluating anything.
const scanSteps = scgs.MaxElements / 4

// list is the group of the elements of a field.
func (c *compiler) list(f scgs.Field, get func(*frame) (*scgs.Value, cause)) value {
	slot := len(c.loops)
	elem := load(f.Element(), func(fr *frame) (*scgs.Value, cause) {
		l := &fr.lists[slot]
		if l.why.set() {
			return nil, l.why
		}
		fr.elements[slot] = l.list.At(fr.loop[slot])
		return &fr.elements[slot], cause{}
	})
	return value{list: true, group: &group{slot: slot, list: get, elem: elem, steps: 1}}
}

// size is how often a loop over the group runs, once it has begun.
func (g *group) size(fr *frame) int {
	switch {
	case g.list == nil:
		return len(fr.s.members)
	case fr.lists[g.slot].why.set():
		return scgs.MaxElements
	}
	return fr.lists[g.slot].list.Len()
}

// there is whether the group has the element that its loop is at, apart from its
// conditions.
func (g *group) there(fr *frame) truth {
	if g.list != nil && fr.lists[g.slot].why.set() {
		return unknown(fr.lists[g.slot].why)
	}
	return truth{is: True}
}

// empty says that the group has nothing that a result could be of.
func (g *group) empty() cause {
	if g.list != nil {
		return at(emptyList, g.at)
	}
	return at(emptyGroup, g.at)
}

// bound is the greatest size of the group.
func (c *compiler) bound(g *group) int {
	if g.list != nil {
		return scgs.MaxElements
	}
	return c.env.maxMembers()
}

// length is the number of elements of a list.
func (g *group) length() value {
	return intValue(func(fr *frame) span[int64] {
		g.begin(fr)
		n := int64(g.size(fr))
		if why := fr.lists[g.slot].why; why.set() {
			return between(0, n, why)
		}
		return point(n)
	})
}

// index compiles `.xs[i]`: the element at a place, counted from 0.
func (c *compiler) index(n *ast.MemberNode) (value, error) {
	v, err := c.compile(n.Node)
	if err != nil {
		return value{}, err
	}
	if !v.list {
		return value{}, c.errorf(n, "members have no fixed places: use find(members, .name == ...)", "an index is for a list of a state, as in .xs[0], not for %s", v.what())
	}
	place, err := c.compile(n.Property)
	if err != nil {
		return value{}, err
	}
	if place.typ != scgs.Int {
		return value{}, c.errorf(n.Property, "elements count from 0, as in .xs[0]", "an index is an int, this is %s", place.what())
	}
	if i, ok := constantInt(n.Property); ok && (i < 0 || i >= scgs.MaxElements) {
		return value{}, c.errorf(n.Property, "elements count from 0", "the index %d is outside of every list: one has at most %d elements", i, scgs.MaxElements)
	}
	g, i := v.group, place.int
	outside := at(noElement, offset(n))
	return v.group.elem.after(func(fr *frame) {
		x := i(fr) // may use the same slot
		g.begin(fr)
		l := &fr.lists[g.slot]
		switch {
		case l.why.set():
		case x.why.set():
			l.why = x.why
		case x.lo < 0 || x.lo >= int64(l.list.Len()):
			l.why = outside
		}
		fr.loop[g.slot] = int(x.lo)
	}), nil
}

// constantInt is the value of a number that is written out.
func constantInt(n node) (int, bool) {
	switch n := n.(type) {
	case *ast.IntegerNode:
		return n.Value, true
	case *ast.UnaryNode:
		i, ok := constantInt(n.Node)
		if n.Operator == "-" {
			i = -i
		}
		return i, ok
	}
	return 0, false
}

// inList compiles `x in .xs`. Nothing is in an empty list, not even an unknown x.
func (c *compiler) inList(n *ast.BinaryNode) (value, error) {
	right, err := c.compile(n.Right)
	if err != nil {
		return value{}, err
	}
	if !right.list {
		return value{}, c.errorf(n, "for a group write any(members, .x == ...)", "the right side of in is a list in brackets, or one of a state")
	}
	left, err := c.single(n.Left)
	if err != nil {
		return value{}, c.misplaced(n, err)
	}
	eq := &ast.BinaryNode{Operator: "==", Left: n.Left, Right: n.Right}
	eq.SetLocation(n.Location())
	if _, err := c.equality(eq, left, right.group.elem); err != nil {
		return value{}, err
	}
	if err := c.charge(n, scanSteps); err != nil {
		return value{}, err
	}
	g := right.group
	return boolValue(func(fr *frame) truth {
		x, why := left.eval(fr)
		g.begin(fr)
		switch l := fr.lists[g.slot]; {
		case l.why.set():
			return unknown(l.why)
		case why.set() && l.list.Len() > 0:
			return unknown(why)
		default:
			return truthOf(contains(l.list, x))
		}
	}), nil
}

// contains is whether an element equals x, which is of a type that can.
func contains(list *scgs.Value, x scgs.Value) bool {
	for i := range list.Len() {
		if sameValue(list.At(i), x) {
			return true
		}
	}
	return false
}

func sameValue(a, b scgs.Value) bool {
	switch {
	case a.Type() == scgs.Float && b.Type() == scgs.Int:
		a, b = b, a
		fallthrough
	case a.Type() == scgs.Int && b.Type() == scgs.Float:
		return !smaller(a.Int(), b.Float()) && !smaller(b.Float(), a.Int())
	case a.Type() == scgs.Float:
		return a.Float() == b.Float() // 0 == -0
	case a.Type() == b.Type():
		return a == b
	}
	return a.Text() == b.Text() // an enum and a string
}
