package predicates

import (
	"fmt"

	"github.com/expr-lang/expr/ast"

	"github.com/gopegasus/pegasus/scgs"
)

// Part is a part of a condition and what it comes to on a global state.
type Part struct {
	// Depth is 0 for the operands of the outermost && or || and the variables named
	// by let; a part is inside the last one before it that has a smaller depth.
	Depth int
	// Text is the part as expr prints it, which may differ from the source in
	// blanks and brackets.
	Text string
	// Low and High bound the value; they are equal if it is known, and Invalid if
	// nothing is known of it.
	Low, High scgs.Value
	// Reason says why the value is not known; empty if it is.
	Reason string
	// Redacted is set if the part reads a field with [scgs.Field.Redact]. Then Low,
	// High and Split tell nothing.
	Redacted bool
	// Split is nil where the part is not all, any, none, one or count over members, and
	// no condition on one member.
	Split *Split
}

// Split says for which members, by their indexes in ascending order, the condition
// of a function over a group holds. Members that are not in the group are in none
// of the lists.
type Split struct {
	True, False, Unknown []int // the members for which the condition is that
}

// Explain takes a condition apart: into the operands of its && and ||, the variables named by
// let, and the functions over groups and the variables in these parts, each with its present
// value. A condition that is a single function over a group gives one part. In a condition on
// one member, by [Env.Each], the operands are evaluated on each member of the Scope; such a
// part is true if it is true for some member.
//
// Explain compiles the parts again, which costs some 100 us and then twice the cost of
// [Expression.Eval]: it is for questions of people.
func (p *Expression) Explain(s *Scope) []Part {
	if p.root.bool == nil {
		panic(fmt.Sprintf("predicates: %q is no condition but %s", p.src, p.root.typeName()))
	}
	root := p.tree
	x := explainer{expr: p, scope: s, compiler: compiler{env: p.env, src: p.src, factor: 1}, seen: map[string]bool{}}
	if p.own != "" {
		x.members(root.(*ast.BuiltinNode))
		return x.parts
	}
	for {
		let, ok := root.(*ast.VariableDeclaratorNode)
		if !ok {
			break
		}
		x.let(let)
		root = let.Expr
	}
	x.condition(root, 0)
	return x.parts
}

// explainer walks the outer levels of a condition and computes each part on its
// own.
type explainer struct {
	expr       *Expression
	scope      *Scope
	compiler   compiler
	aggregates []aggregator // of the folds compiled so far: none of them is incremental
	parts      []Part
	seen       map[string]bool // values told already, by text
	// secret is set once a variable named by let reads a field with Redact: the parts
	// that follow may read the variable.
	secret bool
}

// compile compiles a part, all of which has been compiled before; so it cannot
// fail, and its cost is no more than it was.
func (x *explainer) compile(n node, how func(*compiler) error) *frame {
	c := &x.compiler
	c.footprint, c.setup, c.visits, c.uses = footprint{}, 0, 0, Uses{}
	if err := how(c); err != nil {
		panic(fmt.Sprintf("predicates: the part %s of %q does not compile: %v", n, x.expr.src, err))
	}
	begun := len(x.aggregates)
	for _, f := range c.folds[begun:] {
		x.aggregates = append(x.aggregates, f.aggregate())
	}
	for _, k := range x.aggregates[begun:] {
		k.addOwn(x.aggregates)
	}
	fr := x.scope.beginExpression(x.expr)
	x.room(fr)
	fr.aggregates, x.scope.last = x.aggregates, nil // It is no longer as it was for the expression.
	return fr
}

// room makes room for the variables of all parts.
func (x *explainer) room(fr *frame) {
	for _, f := range []*frame{fr, &x.scope.sharedFrame} {
		f.vars = append(f.vars, make([]stored, max(0, x.compiler.vars-len(f.vars)))...)
	}
}

// condition tells a condition.
func (x *explainer) condition(n node, depth int) {
	if b, ok := n.(*ast.BinaryNode); ok && connective(b.Operator) != 0 {
		if depth > 0 {
			x.tell(n, depth-1)
		}
		x.operands(b, connective(b.Operator), depth)
		return
	}
	if x.tell(n, depth) == nil {
		x.values(n, depth+1)
	}
}

// members tells the operands of a condition on one member, each as any over the members.
func (x *explainer) members(call *ast.BuiltinNode) {
	of, ok := call.Arguments[1].(*ast.PredicateNode)
	if !ok {
		x.tell(call, 0)
		return
	}
	var operands func(n node, depth int)
	tell := func(n node, depth int) {
		x.tell(&ast.BuiltinNode{Name: call.Name, Arguments: []node{call.Arguments[0], &ast.PredicateNode{Node: n}}}, depth)
		x.parts[len(x.parts)-1].Text = textOf(n)
	}
	operands = func(n node, depth int) {
		b, ok := n.(*ast.BinaryNode)
		if !ok || connective(b.Operator) == 0 {
			tell(n, depth)
			return
		}
		for _, side := range []node{b.Left, b.Right} {
			switch inner, ok := side.(*ast.BinaryNode); {
			case !ok || connective(inner.Operator) == 0:
				tell(side, depth)
			case connective(inner.Operator) == connective(b.Operator):
				operands(side, depth)
			default:
				tell(side, depth)
				operands(side, depth+1)
			}
		}
	}
	operands(of.Node, 0)
}

// connective is '&' or '|' for these operators, 0 for others.
func connective(operator string) byte {
	switch operator {
	case "&&", "and":
		return '&'
	case "||", "or":
		return '|'
	}
	return 0
}

// operands tells the conditions that one operator joins.
func (x *explainer) operands(n *ast.BinaryNode, operator byte, depth int) {
	for _, side := range []node{n.Left, n.Right} {
		b, ok := side.(*ast.BinaryNode)
		switch {
		case ok && connective(b.Operator) == operator:
			x.operands(b, operator, depth)
		case ok && connective(b.Operator) != 0:
			x.condition(side, depth+1)
		default:
			x.condition(side, depth)
		}
	}
}

// let tells a variable, which counts in what follows.
func (x *explainer) let(n *ast.VariableDeclaratorNode) {
	c := &x.compiler
	b := binding{name: n.Name, tree: n.Value}
	var v value
	fr := x.compile(n, func(c *compiler) (err error) {
		v, err = c.compileNode(n.Value)
		return err
	})
	if v.group == nil {
		var store func(*frame)
		store, b.read = v.keepValue(c.vars)
		c.vars++
		x.room(fr)
		store(fr)
		if v.isScalar() {
			part := Part{Text: n.Name + " = " + textOf(n.Value)}
			x.fill(&part, b.read, fr)
			if x.reads() {
				part.hide()
			}
			x.parts = append(x.parts, part)
		}
	}
	x.secret = x.secret || x.reads()
	c.names = append(c.names, b)
}

// reads reports whether the text that was compiled last reads a field with Redact.
func (x *explainer) reads() bool { return x.secret || x.expr.env.Redacts(x.compiler.uses) != "" }

// hide takes the values out of a part that reads a field with Redact.
func (p *Part) hide() {
	p.Low, p.High, p.Split, p.Redacted = scgs.Value{}, scgs.Value{}, nil, true
}

// tell computes a part; it returns how it splits the members if it does.
func (x *explainer) tell(n node, depth int) *Split {
	var v value
	fr := x.compile(n, func(c *compiler) (err error) {
		v, err = c.compileNode(n)
		return err
	})
	if !v.isScalar() {
		return nil
	}
	part, secret := Part{Depth: depth, Text: textOf(n)}, x.reads()
	x.fill(&part, v, fr)
	if call, ok := n.(*ast.BuiltinNode); ok {
		part.Split = x.split(call)
	}
	split := part.Split
	if secret {
		part.hide()
	}
	x.parts = append(x.parts, part)
	return split
}

// fill puts in the known part of a value.
func (x *explainer) fill(part *Part, v value, fr *frame) {
	low, why := v.evalValue(fr)
	part.Low, part.High = low, low
	if !why.isSet() {
		return
	}
	part.Low, part.High = scgs.Value{}, scgs.Value{}
	part.Reason = x.expr.describeCause(why, x.scope)
	switch {
	case v.int != nil:
		if s := v.int(fr); !s.void && v.typ == scgs.Int {
			part.Low, part.High = scgs.IntValue(s.lo), scgs.IntValue(s.hi)
		}
	case v.float != nil:
		if s := v.float(fr); !s.void {
			part.Low, part.High = scgs.FloatValue(s.lo), scgs.FloatValue(s.hi)
		}
	}
}

// split asks the condition of a function over a group of each member.
func (x *explainer) split(n *ast.BuiltinNode) *Split {
	switch n.Name {
	case "all", "any", "none", "one", "count":
	default:
		return nil
	}
	if len(n.Arguments) != 2 {
		return nil
	}
	var g *group
	var holds func(*frame) truth
	fr := x.compile(n, func(c *compiler) (err error) {
		outer := c.enterFold() // As in a fold, whose steps differ from a loop's.
		g, holds, err = c.compileEach(n)
		c.leaveFold(outer)
		return err
	})
	if g.list != nil {
		return nil // Its elements are no members.
	}
	s := &Split{}
	g.beginLoop(fr)
	for i := range x.scope.members {
		in := g.moveTo(fr, i)
		if in.is == False {
			continue
		}
		switch t := holds(fr); {
		case t.is == False:
			s.False = append(s.False, i)
		case t.is == True && in.is == True:
			s.True = append(s.True, i)
		default:
			s.Unknown = append(s.Unknown, i)
		}
	}
	return s
}

// values tells the functions over groups and the variables that stand in a part.
func (x *explainer) values(n node, depth int) {
	switch n := n.(type) {
	case *ast.BinaryNode:
		x.value(n.Left, depth)
		x.value(n.Right, depth)
	case *ast.UnaryNode:
		x.value(n.Node, depth)
	case *ast.ConditionalNode:
		x.value(n.Cond, depth)
		x.value(n.Exp1, depth)
		x.value(n.Exp2, depth)
	case *ast.BuiltinNode:
		if !overGroup(n) {
			for _, arg := range n.Arguments {
				x.value(arg, depth)
			}
		}
	}
}

// value tells a part that is a value of its own, or looks into it.
func (x *explainer) value(n node, depth int) {
	call, isCall := n.(*ast.BuiltinNode)
	_, isField := n.(*ast.MemberNode)
	if !isField && (!isCall || !overGroup(call)) {
		x.values(n, depth)
		return
	}
	if text := n.String(); !x.seen[text] {
		x.seen[text] = true
		x.tell(n, depth)
	}
}

// overGroup is whether a call makes one value of a group or a list.
func overGroup(n *ast.BuiltinNode) bool { return len(n.Arguments) <= functions[n.Name].folds }
