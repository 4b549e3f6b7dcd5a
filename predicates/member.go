package predicates

import (
	"slices"

	"github.com/expr-lang/expr/ast"

	"github.com/gopegasus/pegasus/scgs"
)

// MemberExpression is a compiled expression on one member: a value of it, or a list
// of values. It is immutable and may be used by many goroutines, each with a
// [Scope] of its own.
type MemberExpression struct {
	expr    *Expression
	members *group
	value   value
}

// the text around an expression on a member, which stands in a function over members
// for the parser.
const memberBefore, memberAfter = "map(members, ", ")"

// Member compiles an expression on one member, such as .power * 2 or a list
// .weights. It may read nothing but the fields of the declared state, .name and
// .host. What it is wanted for is a number where numbers is set, else an int or a
// string; where lists is set it has to be a list of those. The error is an *[Error].
func (e *Env) Member(src string, numbers, lists bool) (*MemberExpression, error) {
	m, err := e.member(memberBefore+src+memberAfter, numbers, lists)
	if m != nil {
		m.expr.src, m.expr.shift = src, len(memberBefore)
	}
	if err != nil {
		return nil, inMember(src, err)
	}
	return m, nil
}

func (e *Env) member(wrapped string, numbers, lists bool) (*MemberExpression, error) {
	tree, _, err := e.parseText(wrapped)
	if err != nil {
		return nil, err
	}
	one := *e
	one.MaxMembers = 1 // It is evaluated for each changed member separately.
	c := &compiler{env: &one, src: wrapped, factor: 1}
	call, ok := tree.(*ast.BuiltinNode)
	if !ok || call.Name != "map" || len(call.Arguments) != 2 {
		return nil, c.errorf(tree, "write a field such as .load, or a computation with fields", "the text is no expression on one member")
	}
	w := locals{fields: e.localFields()}
	ast.Walk(&call.Arguments[1], &w)
	w.others = slices.DeleteFunc(w.others, func(n node) bool { // Of a field that there is not the compiler says more.
		name, _ := n.(*ast.StringNode)
		return name == nil || name.Value != "prev"
	})
	if foreign := w.findForeign(); foreign != nil {
		return nil, c.errorf(foreign, "the expression reads the fields of a single member, its .name and .host", "the expression must read one member alone, and this part does not")
	}
	g, err := c.compileGroup(call)
	if err != nil {
		return nil, err
	}
	v, _, err := c.compileBody(call, g)
	if err != nil {
		return nil, err
	}
	if v, err = c.wanted(call.Arguments[1], v, numbers, lists); err != nil {
		return nil, err
	}
	m := &MemberExpression{members: g, value: v}
	m.expr = &Expression{
		env: e.scopeEnv(), src: wrapped, tree: call, cost: c.cost, setup: c.setup, vars: c.vars, folds: c.folds, uses: c.uses.sortSignals(),
	}
	return m, nil
}

// wanted checks the type of an expression on a member, and makes numbers floats.
func (c *compiler) wanted(n node, v value, numbers, lists bool) (value, error) {
	if p, ok := n.(*ast.PredicateNode); ok {
		n = p.Node
	}
	of, article := v, "a number"
	if !numbers {
		article = "an int or a string"
	}
	what := article
	if lists {
		what = "a list, each element of which is " + article + ","
		of = value{}
		if v.group != nil {
			of = v.group.elem
		}
	}
	number := of.typ == scgs.Int || of.typ == scgs.Float
	switch {
	case numbers && !number, !numbers && of.typ != scgs.Int && of.typ != scgs.String:
		return value{}, c.errorf(n, "use a field of that type", "%s is wanted, this is %s", what, v.typeName())
	case !numbers:
		return v, nil
	case lists:
		g := *v.group
		g.elem = of.toFloat()
		return value{group: &g}, nil
	}
	return v.toFloat(), nil
}

// Expression has the costs of the expression, for a single member, and the names that it uses;
// it must not be evaluated.
func (m *MemberExpression) Expression() *Expression { return m.expr }

// Eval appends to dst the value of the expression for member i, or the elements of
// its list. If something of that is not known the reason says why.
func (m *MemberExpression) Eval(dst []scgs.Value, s *Scope, i int) ([]scgs.Value, string) {
	fr := s.beginExpression(m.expr)
	m.members.beginLoop(fr)
	m.members.moveTo(fr, i)
	if m.value.group == nil {
		v, why := m.value.evalValue(fr)
		if why.isSet() {
			return dst, m.expr.describeCause(why, s)
		}
		return append(dst, v), ""
	}
	g := m.value.group
	g.beginLoop(fr)
	for at := range g.loopSize(fr) {
		in := g.moveTo(fr, at)
		if in.is == False {
			continue
		}
		v, why := g.elem.evalValue(fr)
		if in.is == Unknown {
			why = in.why
		}
		if why.isSet() {
			return dst, m.expr.describeCause(why, s)
		}
		dst = append(dst, v)
	}
	return dst, ""
}
