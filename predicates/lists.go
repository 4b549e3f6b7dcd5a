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

// listGroup is the group of the elements of a field.
func (c *compiler) listGroup(f scgs.Field, get func(*frame) (*scgs.Value, cause)) value {
	slot := len(c.loops)
	elem := loadField(f.Element(), func(fr *frame) (*scgs.Value, cause) {
		l := &fr.lists[slot]
		if l.why.isSet() {
			return nil, l.why
		}
		fr.elements[slot] = l.list.At(fr.loop[slot])
		return &fr.elements[slot], cause{}
	})
	return value{list: true, group: &group{slot: slot, list: get, elem: elem, steps: 1}}
}

// loopSize is how often a loop over the group runs, once it has begun.
func (g *group) loopSize(fr *frame) int {
	switch {
	case g.list == nil:
		return len(fr.s.members)
	case fr.lists[g.slot].why.isSet():
		return scgs.MaxElements
	}
	return fr.lists[g.slot].list.Len()
}

// hasCurrent is whether the group has the element that its loop is at, apart from its
// conditions.
func (g *group) hasCurrent(fr *frame) truth {
	if g.list != nil && fr.lists[g.slot].why.isSet() {
		return unknownTruth(fr.lists[g.slot].why)
	}
	return truth{is: True}
}

// isEmptyCause says that the group has nothing that a result could be of.
func (g *group) isEmptyCause() cause {
	if g.list != nil {
		return causeAt(emptyList, g.at)
	}
	return causeAt(emptyGroup, g.at)
}

// greatestSize is the greatest size of the group.
func (c *compiler) greatestSize(g *group) int {
	if g.list != nil {
		return scgs.MaxElements
	}
	return c.env.maxMembers()
}

// listLength is the number of elements of a list.
func (g *group) listLength() value {
	return intValue(func(fr *frame) span[int64] {
		g.beginLoop(fr)
		n := int64(g.loopSize(fr))
		if why := fr.lists[g.slot].why; why.isSet() {
			return spanBetween(0, n, why)
		}
		return pointSpan(n)
	})
}

// compileIndex compiles `.xs[i]`: the element at a place, counted from 0.
func (c *compiler) compileIndex(n *ast.MemberNode) (value, error) {
	v, err := c.compileNode(n.Node)
	if err != nil {
		return value{}, err
	}
	if !v.list {
		return value{}, c.errorf(n, "members have no fixed places: use find(members, .name == ...)", "an index is for a list of a state, as in .xs[0], not for %s", v.typeName())
	}
	place, err := c.compileNode(n.Property)
	if err != nil {
		return value{}, err
	}
	if place.typ != scgs.Int {
		return value{}, c.errorf(n.Property, "elements count from 0, as in .xs[0]", "an index is an int, this is %s", place.typeName())
	}
	if i, ok := constantInt(n.Property); ok && (i < 0 || i >= scgs.MaxElements) {
		return value{}, c.errorf(n.Property, "elements count from 0", "the index %d is outside of every list: one has at most %d elements", i, scgs.MaxElements)
	}
	g, i := v.group, place.int
	outside := causeAt(noElement, offsetOf(n))
	return v.group.elem.prepareAfter(func(fr *frame) {
		x := i(fr) // may use the same slot
		g.beginLoop(fr)
		l := &fr.lists[g.slot]
		switch {
		case l.why.isSet():
		case x.why.isSet():
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
	right, err := c.compileNode(n.Right)
	if err != nil {
		return value{}, err
	}
	if !right.list {
		return value{}, c.errorf(n, "for a group write any(members, .x == ...)", "the right side of in is a list in brackets, or one of a state")
	}
	left, err := c.compileSingle(n.Left)
	if err != nil {
		return value{}, c.hintMisplacedNot(n, err)
	}
	eq := &ast.BinaryNode{Operator: "==", Left: n.Left, Right: n.Right}
	eq.SetLocation(n.Location())
	if _, err := c.compileEquality(eq, left, right.group.elem); err != nil {
		return value{}, err
	}
	if err := c.chargeSteps(n, scanSteps); err != nil {
		return value{}, err
	}
	g := right.group
	return boolValue(func(fr *frame) truth {
		x, why := left.evalValue(fr)
		g.beginLoop(fr)
		switch l := fr.lists[g.slot]; {
		case l.why.isSet():
			return unknownTruth(l.why)
		case why.isSet() && l.list.Len() > 0:
			return unknownTruth(why)
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
		return !isSmaller(a.Int(), b.Float()) && !isSmaller(b.Float(), a.Int())
	case a.Type() == scgs.Float:
		return a.Float() == b.Float() // 0 == -0
	case a.Type() == b.Type():
		return a == b
	}
	return a.Text() == b.Text() // an enum and a string
}
