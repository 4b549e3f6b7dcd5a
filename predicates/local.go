package predicates

import (
	"math"
	"slices"

	"github.com/expr-lang/expr/ast"

	"github.com/gopegasus/pegasus/scgs"
)

// Threshold takes an expression of [Env.Bool] apart that is one comparison of a count
// with a number: count(members, c) >= k, or > k-1, or the number first. The local
// condition c may read nothing but the fields of the member's declared state, its
// .name and .host. It is judged by [Expression.Eval] on a [Scope] that has this one
// member. The error is an *[Error] that says what else it is, or that k would be below
// 1: that holds always.
//
// any(members, c) is not taken for a threshold of 1: it fires when it becomes true
// of the members together, and a threshold with each member that begins.
func (p *Expression) Threshold() (local *Expression, k int, err error) {
	other := errorAt(p.src, offsetOf(p.tree), "write count(members, CONDITION) >= K, and nothing else beside it", "a threshold is count(members, condition) >= k alone")
	compare, ok := p.tree.(*ast.BinaryNode)
	if !ok {
		return nil, 0, other
	}
	counted, number, op := compare.Left, compare.Right, compare.Operator
	if _, first := p.env.findNumber(counted); first {
		counted, number, op = number, counted, mirrored[op]
	}
	limit, isNumber := p.env.findNumber(number)
	count, isCall := counted.(*ast.BuiltinNode)
	if !isNumber || !isCall || count.Name != "count" || op != ">=" && op != ">" {
		return nil, 0, other
	}
	if k = limit; op == ">" && k < math.MaxInt {
		k++
	}
	if k < 1 {
		return nil, 0, errorAt(p.src, offsetOf(number), "ask for 1 member at least", "so many members satisfy every condition")
	}
	if local, err = p.compileLocal(count); err != nil {
		return nil, 0, err
	}
	return local, k, nil
}

// findNumber is an int that is written out, or stands for its name.
func (e *Env) findNumber(n node) (int, bool) {
	switch n := n.(type) {
	case *ast.IntegerNode:
		return n.Value, true
	case *ast.MemberNode:
		if i := e.paramOf(n); i >= 0 && e.Params[i].Field.Type == scgs.Int {
			return int(e.Params[i].Value.Int()), true
		}
	}
	return 0, false
}

// mirrored are the comparisons with their sides exchanged.
var mirrored = map[string]string{"<=": ">=", "<": ">"}

// Conjunction takes an expression of [Env.Bool] apart that is all(members, c), with a
// local condition c as for [Expression.Threshold]. The error is an *[Error] that says
// what else it is.
func (p *Expression) Conjunction() (local *Expression, err error) {
	call, ok := p.tree.(*ast.BuiltinNode)
	if !ok || call.Name != "all" {
		return nil, errorAt(p.src, offsetOf(p.tree), "write all(members, CONDITION), or leave the modality out",
			"a modality is for all(members, condition) alone")
	}
	return p.compileLocal(call)
}

// compileLocal compiles the condition of a function over all members for one member.
func (p *Expression) compileLocal(call *ast.BuiltinNode) (*Expression, error) {
	c := &compiler{env: p.env, src: p.src, factor: 1}
	const hint = "a local condition reads the fields of a single member, its .name and .host"
	if len(call.Arguments) != 2 {
		return nil, c.errorf(call, hint, "%s needs members and a condition", call.Name)
	}
	if of, ok := call.Arguments[0].(*ast.IdentifierNode); !ok || of.Value != "members" {
		return nil, c.errorf(call.Arguments[0], "write "+call.Name+"(members, CONDITION)", "the condition has to be on all members")
	}
	w := locals{fields: p.env.localFields()}
	ast.Walk(&call.Arguments[1], &w)
	if foreign := w.findForeign(); foreign != nil {
		return nil, c.errorf(foreign, hint, "the condition has to be a local one, and this is not of the member alone")
	}
	g, cond, err := c.compileEach(call)
	if err != nil {
		return nil, err
	}
	one := func(fr *frame) truth {
		g.moveTo(fr, 0)
		return cond(fr)
	}
	return &Expression{
		env: p.env, src: p.src, tree: p.tree, root: boolValue(one), result: p.result,
		cost: c.cost, setup: c.setup, vars: c.vars, folds: c.folds, uses: c.uses.sortSignals(),
	}, nil
}

// localFields are the names of a member's fields that are of it alone.
func (e *Env) localFields() []string {
	names := []string{"name", "host"}
	for _, f := range e.State {
		names = append(names, f.Name)
	}
	return names
}

// locals gathers what a condition names.
type locals struct {
	fields []string // that may be read
	lets   []string
	names  []*ast.IdentifierNode
	others []node // fields that may not be read
}

// Visit implements ast.Visitor.
func (w *locals) Visit(n *node) {
	switch n := (*n).(type) {
	case *ast.MemberNode:
		if isParams(n.Node) {
			return
		}
		if name, ok := n.Property.(*ast.StringNode); ok && !slices.Contains(w.fields, name.Value) {
			w.others = append(w.others, n.Property)
		}
	case *ast.IdentifierNode:
		w.names = append(w.names, n)
	case *ast.VariableDeclaratorNode:
		w.lets = append(w.lets, n.Name)
	}
}

// findForeign is something that is not of the member alone, or nil. A let hides no
// name that means something outside.
func (w *locals) findForeign() node {
	for _, n := range w.names {
		if !slices.Contains(w.lets, n.Value) && !isParams(n) {
			return n
		}
	}
	if len(w.others) > 0 {
		return w.others[0]
	}
	return nil
}
