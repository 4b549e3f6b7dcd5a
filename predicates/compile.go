package predicates

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"

	"github.com/gopegasus/pegasus/scgs"
)

func makeDuration(ns int64) time.Duration { return time.Duration(ns) }

// compiler turns the syntax tree of a text into a value. It types each part on the way, so
// accepted parts need no check at evaluation.
type compiler struct {
	env    *Env
	src    string
	names  []binding // let, innermost last
	loops  []loop    // those around, innermost last
	factor int       // how often the current part runs in one evaluation
	vars   int

	footprint     // of the text so far, or of the innermost fold so far
	folding   int // folds around, of which it is not known yet whether they are incremental
	folds     []anyFold
	setup     int // steps to build the incremental aggregates
	visits    int // parts compiled so far
}

// binding is a name given by let: a value, or the tree of a group, which is
// compiled again where it is used.
type binding struct {
	name string
	read value
	tree node
}

// loop is one over members, or over the elements of a list.
type loop struct {
	elem value
	list bool
}

func (c *compiler) errorf(n node, hint, format string, args ...any) *Error {
	return errorAt(c.src, offsetOf(n), hint, format, args...)
}

// offsetOf is where a message about a part points. Some trees share nodes or have
// no place of their own.
func offsetOf(n node) int {
	if cond, ok := n.(*ast.ConditionalNode); ok {
		return offsetOf(cond.Cond)
	}
	return n.Location().From
}

// chargeSteps counts steps of the current part, and refuses when they are too many;
// inside a fold only once that is found not to be incremental. The compiler itself is
// bounded too, since trees may share nodes.
func (c *compiler) chargeSteps(n node, steps int) error {
	c.visits++
	c.cost = min(c.cost+multiplySteps(steps, c.factor), manySteps)
	if c.fault == nil && (c.cost > MaxSteps || c.visits > MaxSteps) {
		c.fault = c.tooMany(n)
	}
	if c.folding > 0 && c.visits <= MaxSteps {
		return nil
	}
	return c.fault
}

func (c *compiler) tooMany(n node) error {
	hint := "split it, or name a part that stands in it more than once with let"
	switch {
	case len(c.loops) > 0 && c.loops[len(c.loops)-1].list:
		hint = fmt.Sprintf("a list counts as %d elements: use in or len where that is enough, or lower the member limit", scgs.MaxElements)
	case len(c.loops) > 1:
		hint = "compute the inner group once, before the loop: let n = count(members, ...); ... or let m = mean(map(members, ...)); ..."
	case len(c.loops) == 1:
		hint = "functions over members that read nothing but the member are updated incrementally and cost few steps: " +
			"write max(map(members, .x)) > memory.limit in place of any(members, .x > memory.limit), or lower the member limit"
	}
	return c.errorf(n, hint, "the expression takes more than %d steps with %d members", MaxSteps, c.env.maxMembers())
}

// compileNode translates any part of the tree.
func (c *compiler) compileNode(n node) (value, error) {
	if err := c.chargeSteps(n, 1); err != nil {
		return value{}, err
	}
	switch n := n.(type) {
	case *ast.BoolNode:
		return boolValue(constantOf(truthOf(n.Value))), nil
	case *ast.IntegerNode:
		v := intValue(constantOf(pointSpan(int64(n.Value))))
		v.knownInt = constantNumber(int64(n.Value))
		return v, nil
	case *ast.FloatNode:
		v := floatValue(constantOf(pointSpan(n.Value)))
		v.knownFloat = constantNumber(n.Value)
		return v, nil
	case *ast.StringNode:
		return c.text(n)
	case *ast.IdentifierNode:
		return c.compileIdentifier(n)
	case *ast.MemberNode:
		return c.compileProperty(n)
	case *ast.PointerNode:
		return c.compilePointer(n)
	case *ast.UnaryNode:
		return c.compileUnary(n)
	case *ast.BinaryNode:
		return c.compileBinary(n)
	case *ast.ConditionalNode:
		return c.compileConditional(n)
	case *ast.VariableDeclaratorNode:
		return c.let(n)
	case *ast.BuiltinNode:
		return c.compileCall(n)
	}
	return value{}, c.refuseForeign(n)
}

// refuseForeign refuses what expr has and predicates do not.
func (c *compiler) refuseForeign(n node) error {
	what, hint := "this", "groups come from members, by filter and map; values from fields, numbers and strings"
	switch n.(type) {
	case *ast.CallNode:
		what, hint = "a method call", "members have fields only"
	case *ast.NilNode:
		what, hint = "nil", "a missing value already makes the predicate unknown"
	case *ast.ArrayNode:
		what, hint = "a list outside of `in`", "lists stand on the right of `in`; groups come from members"
	case *ast.ChainNode:
		what, hint = "?.", "write a dot: a missing value already makes the predicate unknown"
	case *ast.SliceNode:
		what = "a slice"
	case *ast.MapNode:
		what = "a map"
	case *ast.BytesNode:
		what = "a byte string"
	case *ast.SequenceNode:
		what, hint = "a second expression after ;", "a semicolon stands after let only"
	}
	return c.errorf(n, hint, "%s is not part of the predicate language", what)
}

func (c *compiler) text(n *ast.StringNode) (value, error) {
	if len(n.Value) > scgs.MaxTextBytes {
		return value{}, c.errorf(n, "", "a string has at most %d bytes, this one has %d", scgs.MaxTextBytes, len(n.Value))
	}
	return textLiteral(n.Value), nil
}

// compileValue compiles a part that must give want; the words of an enum may be
// written as strings. A want of Invalid takes any type but groups and members.
func (c *compiler) compileValue(n node, want scgs.Field) (value, error) {
	switch n := n.(type) {
	case *ast.ConditionalNode:
		if want.Type != scgs.Invalid {
			return c.compileChoice(n, want)
		}
	case *ast.VariableDeclaratorNode:
		return c.letThen(n, func(body node) (value, error) { return c.compileValue(body, want) })
	}
	v, err := c.compileNode(n)
	if err != nil {
		return value{}, err
	}
	return c.convertValue(n, v, want)
}

func (c *compiler) convertValue(n node, v value, want scgs.Field) (value, error) {
	switch {
	case !v.isScalar():
		return value{}, c.errorf(n, "use len, count, sum or another function of the group, or a field of the member", "a value is wanted, this is %s", v.typeName())
	case want.Type == scgs.Enum && v.literal != nil:
		return c.compileWord(n, v, want.Words)
	case want.Type == scgs.Float && v.typ == scgs.Int:
		return v.toFloat(), nil
	case want.Type == scgs.String && v.typ == scgs.Enum:
		v.typ, v.words = scgs.String, nil
		return v, nil
	case want.Type == scgs.Invalid, want.Type == v.typ && slices.Equal(want.Words, v.words):
		return v, nil
	}
	hint := "change the expression or the declared type"
	if want.Type == scgs.Int && v.typ == scgs.Float {
		hint = "use int(round(...)), or declare it as a float"
	}
	what := v.typeName()
	if v.typ == scgs.Enum {
		what += " of " + strings.Join(v.words, ", ")
	}
	return value{}, c.errorf(n, hint, "%s is wanted, this is %s", wanted(want), what)
}

func wanted(f scgs.Field) string {
	if f.Type == scgs.Enum {
		return "one of the words " + strings.Join(f.Words, ", ")
	}
	return value{typ: f.Type}.typeName()
}

// compileWord makes a string literal a word of an enum.
func (c *compiler) compileWord(n node, v value, words []string) (value, error) {
	if !slices.Contains(words, *v.literal) {
		return value{}, c.errorf(n, didYouMean(*v.literal, words)+"declared words: "+strings.Join(words, ", "),
			"%q is not a word of this enum", *v.literal)
	}
	v.typ, v.words = scgs.Enum, words
	return v, nil
}

// let compiles `let name = value; body`.
func (c *compiler) let(n *ast.VariableDeclaratorNode) (value, error) {
	return c.letThen(n, c.compileNode)
}

func (c *compiler) letThen(n *ast.VariableDeclaratorNode, then func(node) (value, error)) (value, error) {
	if err := c.checkName(n); err != nil {
		return value{}, err
	}
	v, err := c.compileNode(n.Value)
	if err != nil {
		return value{}, err
	}
	b := binding{name: n.Name, tree: n.Value}
	var store func(*frame)
	if v.group == nil {
		store, b.read = v.keepValue(c.vars)
		c.vars++
	}
	c.names = append(c.names, b)
	body, err := then(n.Expr)
	c.names = c.names[:len(c.names)-1]
	if err != nil || store == nil {
		return body, err
	}
	return body.prepareAfter(store), nil
}

// checkName refuses names that mean something already.
func (c *compiler) checkName(n *ast.VariableDeclaratorNode) error {
	_, isFunction := builtin.Index[n.Name]
	_, given := c.env.lets[n.Name]
	taken := given || slices.Contains(roots, n.Name) ||
		slices.ContainsFunc(c.names, func(b binding) bool { return b.name == n.Name })
	if isFunction || taken {
		return c.errorf(n, "choose another name", "the name %q has a meaning already", n.Name)
	}
	return nil
}
