package predicates

import (
	"github.com/expr-lang/expr/ast"

	"github.com/gopegasus/pegasus/scgs"
)

// compileConditional compiles `cond ? a : b` and `if cond { a } else { b }` whose type is the type of
// its branches.
func (c *compiler) compileConditional(n *ast.ConditionalNode) (value, error) {
	cond, a, b, err := c.branches(n, c.compileNode)
	if err != nil {
		return value{}, err
	}
	switch {
	case a.typ == scgs.Enum && b.literal != nil:
		b, err = c.compileWord(n.Exp2, b, a.words)
	case b.typ == scgs.Enum && a.literal != nil:
		a, err = c.compileWord(n.Exp1, a, b.words)
	case a.typ == scgs.Float || b.typ == scgs.Float:
		want := scgs.Field{Type: scgs.Float}
		if a, err = c.convertValue(n.Exp1, a, want); err == nil {
			b, err = c.convertValue(n.Exp2, b, want)
		}
	default:
		b, err = c.convertValue(n.Exp2, b, scgs.Field{Type: a.typ, Words: a.words})
	}
	if err != nil {
		return value{}, err
	}
	return c.choose(n, cond, a, b)
}

// compileChoice compiles a conditional whose branches must both give want.
func (c *compiler) compileChoice(n *ast.ConditionalNode, want scgs.Field) (value, error) {
	cond, a, b, err := c.branches(n, func(branch node) (value, error) { return c.compileValue(branch, want) })
	if err != nil {
		return value{}, err
	}
	return c.choose(n, cond, a, b)
}

func (c *compiler) branches(n *ast.ConditionalNode, compile func(node) (value, error)) (cond func(*frame) truth, a, b value, err error) {
	if cond, err = c.compileCondition(n.Cond); err == nil {
		a, err = compile(n.Exp1)
	}
	if err == nil {
		b, err = compile(n.Exp2)
	}
	return cond, a, b, err
}

func (c *compiler) compileCondition(n node) (func(*frame) truth, error) {
	v, err := c.compileNode(n)
	if err != nil {
		return nil, err
	}
	if v.bool == nil {
		return nil, c.errorf(n, "compare it with something", "a condition is true or false, this is %s", v.typeName())
	}
	return v.bool, nil
}

// choose joins branches of the same type. Where the condition is unknown, it keeps the
// knowledge on which both branches agree.
func (c *compiler) choose(n node, cond func(*frame) truth, a, b value) (value, error) {
	v := value{typ: a.typ, words: a.words}
	switch {
	case !a.isScalar():
		return value{}, c.errorf(n, "choose between values, or write the condition inside the group", "a condition cannot choose between groups or members")
	case a.bool != nil:
		v.bool = chosen(cond, a.bool, b.bool, func(x, y truth, why cause) truth {
			if x.is == y.is && x.is != Unknown {
				return x
			}
			return unknownTruth(why)
		})
	case a.int != nil:
		v.int = chosen(cond, a.int, b.int, hullOf[int64])
	case a.float != nil:
		v.float = chosen(cond, a.float, b.float, hullOf[float64])
	case a.text != nil:
		v.text = chosen(cond, a.text, b.text, func(x, y text, why cause) text {
			if x == y {
				return x
			}
			return text{why: why}
		})
	}
	return v, nil
}

func chosen[T any](cond func(*frame) truth, a, b func(*frame) T, join func(x, y T, why cause) T) func(*frame) T {
	return func(fr *frame) T {
		switch t := cond(fr); t.is {
		case True:
			return a(fr)
		case False:
			return b(fr)
		default:
			return join(a(fr), b(fr), t.why)
		}
	}
}
