package predicates

import (
	"fmt"
	"math"
	"slices"

	"github.com/expr-lang/expr/ast"

	"github.com/gopegasus/pegasus/scgs"
)

// RosterThreshold takes an expression of [Env.Bool] apart as [Expression.Threshold] does,
// where k is no number but an expression of who the members are, such as
// len(members) / 2 + 1. In k the operator / rounds down, since k is a whole number. The
// results are the local condition; k, an int, for [Expression.EvalValue] on a [Scope] of the
// members; and the whole expression with k rounded. The error is an *[Error].
func (p *Expression) RosterThreshold() (local, least, when *Expression, err error) {
	count, number, op, ok := p.counted()
	if _, isNumber := p.env.findNumber(number); !ok || isNumber {
		_, _, err := p.Threshold()
		return nil, nil, nil, err
	}
	if local, err = p.compileLocal(count); err != nil {
		return nil, nil, nil, err
	}
	k := p.whole(number)
	if when, err = p.part(placeLike(&ast.BinaryNode{Operator: op, Left: count, Right: k}, p.tree)); err != nil {
		return nil, nil, nil, err
	}
	if op == ">" {
		k = placeLike(&ast.BinaryNode{Operator: "+", Left: k, Right: placeLike(&ast.IntegerNode{Value: 1}, k)}, number)
	}
	if least, err = p.part(k); err != nil {
		return nil, nil, nil, err
	}
	if least.result.Type != scgs.Int {
		return nil, nil, nil, errorAt(p.src, offsetOf(number), "write int(...) around it, as in int(len(members) * 0.7) + 1", "k is a whole number, this is %s", least.root.typeName())
	}
	if !least.ofRoster() {
		return nil, nil, nil, errorAt(p.src, offsetOf(number), "k may read len(members), .name, .host and parameters", "k is set when an epoch begins, by who the members are, and this reads more")
	}
	return local, least, when, nil
}

// counted takes a comparison apart of which one side is count(members, c): op is >= or >,
// with the count on its left.
func (p *Expression) counted() (count *ast.BuiltinNode, number node, op string, ok bool) {
	compare, ok := p.tree.(*ast.BinaryNode)
	if !ok {
		return nil, nil, "", false
	}
	isCount := func(n node) bool {
		call, ok := n.(*ast.BuiltinNode)
		return ok && call.Name == "count" && len(call.Arguments) == 2
	}
	left, right, op := compare.Left, compare.Right, compare.Operator
	if _, number := p.env.findNumber(left); number || !isCount(left) {
		left, right, op = right, left, mirrored[op]
	}
	if !isCount(left) || op != ">=" && op != ">" {
		return nil, nil, "", false
	}
	return left.(*ast.BuiltinNode), right, op, true
}

// part compiles a part of the tree, or a tree made of parts.
func (p *Expression) part(tree node) (*Expression, error) {
	c := &compiler{env: p.env, src: p.src, factor: 1}
	v, err := c.compileNode(tree)
	if err != nil {
		return nil, err
	}
	return &Expression{
		env: p.env, src: p.src, tree: tree, named: p.named, root: v, result: scgs.Field{Type: v.typ, Words: v.words},
		cost: c.cost, setup: c.setup, vars: c.vars, folds: c.folds, uses: c.uses.sortSignals(),
	}, nil
}

// placeLike gives a part that was made the place of another one.
func placeLike(n, at node) node {
	n.SetLocation(at.Location())
	return n
}

// whole is a number in which / of two ints rounds down, apart from what stands in a function.
// A float in it stays one: to round it in silence would change k.
func (p *Expression) whole(n node) node {
	switch n := n.(type) {
	case *ast.BinaryNode:
		made := placeLike(&ast.BinaryNode{Operator: n.Operator, Left: p.whole(n.Left), Right: p.whole(n.Right)}, n).(*ast.BinaryNode)
		if n.Operator == "/" && p.isInt(made.Left) && p.isInt(made.Right) {
			return placeLike(&ast.BuiltinNode{Name: "int", Arguments: []node{made}}, n)
		}
		return made
	case *ast.BuiltinNode:
		if (n.Name == "min" || n.Name == "max") && len(n.Arguments) > 1 {
			made := &ast.BuiltinNode{Name: n.Name, Arguments: slices.Clone(n.Arguments)}
			for i, arg := range made.Arguments {
				made.Arguments[i] = p.whole(arg)
			}
			return placeLike(made, n)
		}
	}
	return n
}

func (p *Expression) isInt(n node) bool {
	q, err := p.part(n)
	return err == nil && q.result.Type == scgs.Int
}

// LeastOf is k of a threshold in a group of so many members, where a parameter has another
// value. It is not ok if the expression is no threshold, or k has no value.
func (p *Expression) LeastOf(members int, param string, value scgs.Value) (k int64, ok bool) {
	_, number, op, ok := p.counted()
	if !ok {
		return 0, false
	}
	env := *p.env
	env.Params = slices.Clone(env.Params)
	for i := range env.Params {
		if env.Params[i].Field.Name == param {
			env.Params[i].Value = value
		}
	}
	other := *p
	other.env = &env
	values := other.perSize(other.whole(number), members, members)
	if len(values) == 0 || values[0] != math.Trunc(values[0]) {
		return 0, false
	}
	if k = int64(values[0]); op == ">" {
		k++
	}
	return k, true
}

// perSize are the values of a number for groups of so many members, nil if it reads more
// than who the members are, or has no value for some.
func (p *Expression) perSize(n node, from, to int) (values []float64) {
	q, err := p.part(n)
	if err != nil || !q.ofRoster() {
		return nil
	}
	s := NewScope(q.env)
	for size := from; size <= to; size++ {
		s.Reset(make([]Member, size))
		switch v, why := q.EvalValue(s); {
		case why != "":
			return nil
		case q.result.Type == scgs.Int:
			values = append(values, float64(v.Int()))
		case q.result.Type == scgs.Float:
			values = append(values, v.Float())
		default:
			return nil
		}
	}
	return values
}

// MisreadShare finds a comparison with count(members, c) >= a share that asks for another share
// of the members than it seems to, for some size of the group between from and to. It names a
// size close to like. In a threshold, with rounds, the share has a / that rounds down to fewer
// members; elsewhere it has a / and + 1, which does not round. It returns nil if there is none.
func (p *Expression) MisreadShare(from, to, like int, rounds bool) *Error {
	count, number, op, ok := p.counted()
	if !ok || op != ">=" {
		return nil
	}
	share := number
	if call, ok := number.(*ast.BuiltinNode); ok && rounds && call.Name == "int" && call.Location() == call.Arguments[0].Location() {
		share = call.Arguments[0] // RosterThreshold has made the call.
	}
	sum, _ := number.(*ast.BinaryNode)
	if !rounds && sum != nil && sum.Operator == "+" {
		if i, ok := sum.Right.(*ast.IntegerNode); ok && i.Value == 1 {
			share = sum.Left
		}
	}
	division, ok := share.(*ast.BinaryNode)
	if !ok || division.Operator != "/" || !rounds && share == number {
		return nil
	}
	from, to = max(from, like-mostTried, 1), min(to, like+mostTried)
	values, size := p.perSize(share, from, to), 0
	for i, v := range values {
		n := from + i
		if math.Abs(v*float64(from)-values[0]*float64(n)) > 1e-9*float64(n) {
			return nil // It is no share of the members.
		}
		if v != math.Trunc(v) && (size < like || n < size) {
			size = n
		}
	}
	if size == 0 {
		return nil
	}
	v, hint := values[size-from], fmt.Sprintf("write count(...) > %s, which is more than that share", share)
	if rounds {
		return errorAt(p.src, offsetOf(count), hint+"; int(ceil(...)) around it rounds up", "%.0f of %d members are enough here, fewer than %s: / rounds down in a threshold", math.Trunc(v), size, share)
	}
	return errorAt(p.src, offsetOf(count), hint+"; in a threshold, with modality: atleast, / rounds down", "%.0f of %d members are needed here, as / does not round: %s is %v", math.Ceil(v+1), size, number, v+1)
}

// ofRoster is whether the value depends on nothing but who the members are.
func (p *Expression) ofRoster() bool {
	var w onlines
	ast.Walk(&p.tree, &w)
	u := p.uses
	return u.Fields|u.Memory|u.Process == 0 && len(u.Parent) == 0 && !u.Prev && !w.found
}

// onlines looks for .online.
type onlines struct{ found bool }

// Visit implements ast.Visitor.
func (w *onlines) Visit(n *node) {
	m, ok := (*n).(*ast.MemberNode)
	if !ok {
		return
	}
	name, ok := m.Property.(*ast.StringNode)
	w.found = w.found || ok && name.Value == "online"
}

// LikeThreshold reports whether an expression of [Env.Bool] that is no threshold says that
// so many members satisfy a condition, as count(members, c) * 2 > len(members) does: it
// reads the members' states in one count(members, c) with a local c alone, and is false
// where that is 0, true where it is all members, and changes once between.
func (p *Expression) LikeThreshold() bool {
	if _, _, err := p.Threshold(); err == nil {
		return false
	}
	members := make([]Member, min(p.env.maxMembers(), mostTried))
	s := NewScope(p.env)
	s.Reset(members)
	before := False
	for n := range len(members) + 1 {
		w := replacer{p: p, by: n}
		tree, _, err := p.env.parseText(p.expanded())
		if err != nil {
			return false
		}
		if ast.Walk(&tree, &w); w.failed || w.text == "" {
			return false
		}
		q, err := p.part(tree)
		if err != nil || !q.ofRoster() || q.root.bool == nil {
			return false
		}
		is := q.Eval(s).Truth
		if is == Unknown && n > 0 || is == True && n == 0 || is == False && before == True {
			return false
		}
		before = is
	}
	return before == True
}

// mostTried is with how many members at most an expression is tried.
const mostTried = 16

// expanded is the text with the expressions of its names.
func (p *Expression) expanded() string {
	text, _ := p.Expanded()
	return text
}

// replacer puts a number in place of count(members, c), with a local condition c that is the
// same wherever it stands.
type replacer struct {
	p      *Expression
	by     int
	text   string // of the condition
	failed bool
}

// Visit implements ast.Visitor.
func (w *replacer) Visit(n *node) {
	call, ok := (*n).(*ast.BuiltinNode)
	if !ok || call.Name != "count" || len(call.Arguments) != 2 {
		return
	}
	text := call.Arguments[1].String()
	if _, err := w.p.compileLocal(call); err != nil || w.text != "" && w.text != text {
		w.failed = true
		return
	}
	w.text = text
	*n = placeLike(&ast.IntegerNode{Value: w.by}, call)
}
