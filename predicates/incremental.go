package predicates

import (
	"fmt"
	"math"
	"math/bits"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// A fold over the members is incremental if its conditions and its number depend only on the
// one member they look at: then a change of a member changes one part of it. The compiler
// decides that afterwards, from the names that the fold has read.

// footprint is what a part of the text reads and costs.
type footprint struct {
	uses    Uses
	binding int // the first let value read, by its place in names
	loop    int // the innermost loop that begins with members, -1: none
	cost    int
	fault   error // the first charge over the limit
}

// enterFold begins a fold and returns the names read before; finish ends it.
func (c *compiler) enterFold() footprint {
	outer := c.footprint
	c.footprint = footprint{binding: math.MaxInt, loop: -1, cost: outer.cost}
	c.folding++
	return outer
}

// leaveFold ends what enter began, and returns the names read since.
func (c *compiler) leaveFold(outer footprint) footprint {
	inner := c.footprint
	c.folding--
	c.uses = outer.uses.joinUses(inner.uses)
	c.binding = min(outer.binding, inner.binding)
	c.loop = max(outer.loop, inner.loop)
	return inner
}

// Steps beside the steps of the expressions: to read an aggregate, and to change it.
const (
	readSteps   = 4
	changeSteps = 8
)

// finishFold makes a fold part of the expression, and decides whether it is incremental. Then
// it costs what a change of one member does, not the loop over all of them.
func finishFold[T int64 | float64](c *compiler, f *fold[T], n *ast.BuiltinNode, outer footprint, kind string) error {
	inner, g := c.leaveFold(outer), f.group
	f.state = len(c.folds)
	c.folds = append(c.folds, f)
	if g.list != nil || !inner.uses.membersOnly() || inner.binding < len(c.names) || inner.loop != len(c.loops) || len(g.before) > 0 {
		return inner.fault
	}
	limit := c.env.maxMembers()
	once := (inner.cost - outer.cost) / multiplySteps(c.factor, limit) // steps for one member
	c.cost, c.fault = outer.cost+once+changeSteps+bits.Len(uint(limit)), outer.fault
	if err := c.chargeSteps(n, readSteps); err != nil {
		return err
	}
	if c.setup = min(c.setup+multiplySteps(once, limit), manySteps); c.setup > MaxSetup {
		return c.errorf(n, "use fewer or simpler functions over members, or lower the member limit",
			"the expression takes more than %d steps with %d members when an epoch begins", MaxSetup, limit)
	}
	f.key, f.fields = kind+g.key+g.elementOf(n), inner.uses.Fields
	return nil
}

// elementOf is the identity of the value that a function takes of each element of a group.
func (g *group) elementOf(n *ast.BuiltinNode) string {
	if len(n.Arguments) == 1 {
		return g.number
	}
	return g.number + identity(n.Arguments[1])
}

// identity is a text that is equal for equal trees, and for no others: the nodes with the
// operands first, each with its other parts.
func identity(n node) string {
	var w treeWriter
	ast.Walk(&n, &w)
	return w.String()
}

type treeWriter struct{ strings.Builder }

// Visit implements ast.Visitor.
func (w *treeWriter) Visit(n *ast.Node) {
	var has any
	switch n := (*n).(type) {
	case *ast.BoolNode:
		has = n.Value
	case *ast.IntegerNode:
		has = n.Value
	case *ast.FloatNode:
		has = n.Value
	case *ast.StringNode:
		has = n.Value
	case *ast.IdentifierNode:
		has = n.Value
	case *ast.UnaryNode:
		has = n.Operator
	case *ast.BinaryNode:
		has = n.Operator
	case *ast.VariableDeclaratorNode:
		has = n.Name
	case *ast.BuiltinNode:
		has = fmt.Sprint(len(n.Arguments), n.Name)
	case *ast.ArrayNode:
		has = len(n.Nodes)
	}
	fmt.Fprintf(&w.Builder, "%T:%#v;", *n, has)
}

// manySteps is where counts of steps stop: far above every limit, and far enough
// below the greatest int.
const manySteps = 1 << 40

// multiplySteps multiplies counts of steps.
func multiplySteps(a, b int) int {
	if b > manySteps/max(a, 1) {
		return manySteps
	}
	return a * b
}
