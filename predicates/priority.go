package predicates

import (
	"math"
	"slices"

	"github.com/expr-lang/expr/ast"
)

// Priority is an expression on a call that waits at a server, by which the server chooses the next one: numbers, weight,
// size or len(arg), age (seconds at the server), number, loc, server.head, server.dir, + - * / %, abs, and
// CONDITION ? A : B with one comparison as the condition.
type Priority struct {
	root node
}

// priorityFields are what a priority reads.
var priorityFields = []string{"weight", "size", "age", "number", "loc", "server.head", "server.dir"}

// CompilePriority reads a priority. The error is an [*Error].
func CompilePriority(src string) (*Priority, error) {
	root, err := parseTree(src)
	if err != nil {
		return nil, err
	}
	if err := checkPriority(src, root, false); err != nil {
		return nil, err
	}
	return &Priority{root}, nil
}

// Value is the value for a call whose fields are given by their names: weight, size, age,
// number, loc, server.head and server.dir. NaN counts as infinite.
func (p *Priority) Value(field func(name string) float64) float64 {
	if v := evalPriority(p.root, field); !math.IsNaN(v) {
		return v
	}
	return math.Inf(1)
}

// priorityField is the name of the field that a node reads, or empty.
func priorityField(n node) string {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		return n.Value
	case *ast.MemberNode:
		name, isName := n.Property.(*ast.StringNode)
		if of, ok := n.Node.(*ast.IdentifierNode); ok && isName && of.Value == "server" {
			return "server." + name.Value
		}
	case *ast.BuiltinNode:
		if n.Name == "len" && len(n.Arguments) == 1 {
			if id, ok := n.Arguments[0].(*ast.IdentifierNode); ok && id.Value == "arg" {
				return "size"
			}
		}
	}
	return ""
}

const priorityHint = "write numbers, weight, size, age, number, loc, server.head, server.dir, + - * / %, abs, and CONDITION ? A : B, such as abs(loc - server.head)"

// checkPriority refuses what a priority may not have. Truth: the node has to be a comparison.
func checkPriority(src string, n node, truth bool) error {
	refuse := func(format string, args ...any) error {
		return errorAt(src, n.Location().From, priorityHint, format, args...)
	}
	both := func(a, b node) error {
		if err := checkPriority(src, a, false); err != nil {
			return err
		}
		return checkPriority(src, b, false)
	}
	if b, ok := n.(*ast.BinaryNode); ok {
		_, compares := comparisons[b.Operator]
		_, counts := arithmetic[b.Operator]
		if truth && compares || !truth && counts {
			return both(b.Left, b.Right)
		}
		if compares {
			return refuse("%s stands where a number has to be", b.Operator)
		}
		return refuse("the priority of a call cannot have %s here", b.Operator)
	}
	if truth {
		return refuse("a condition has to be one comparison")
	}
	if name := priorityField(n); name != "" {
		if slices.Contains(priorityFields, name) {
			return nil
		}
		if of, ok := n.(*ast.MemberNode); ok {
			n = of.Node
		}
		return refuse("there is no %s", name)
	}
	switch n := n.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		return nil
	case *ast.UnaryNode:
		if n.Operator == "-" || n.Operator == "+" {
			return checkPriority(src, n.Node, false)
		}
	case *ast.BuiltinNode:
		if n.Name == "abs" && len(n.Arguments) == 1 {
			return checkPriority(src, n.Arguments[0], false)
		}
	case *ast.ConditionalNode:
		if err := checkPriority(src, n.Cond, true); err != nil {
			return err
		}
		return both(n.Exp1, n.Exp2)
	}
	return refuse("the priority of a call cannot have this")
}

var comparisons = map[string]func(a, b float64) bool{
	"<": func(a, b float64) bool { return a < b }, "<=": func(a, b float64) bool { return a <= b },
	">": func(a, b float64) bool { return a > b }, ">=": func(a, b float64) bool { return a >= b },
	"==": func(a, b float64) bool { return a == b }, "!=": func(a, b float64) bool { return a != b },
}

// The remainder has the sign of the divisor, as distances around a ring need it.
var arithmetic = map[string]func(a, b float64) float64{
	"+": func(a, b float64) float64 { return a + b }, "-": func(a, b float64) float64 { return a - b },
	"*": func(a, b float64) float64 { return a * b }, "/": func(a, b float64) float64 { return a / b },
	"%": func(a, b float64) float64 { return a - b*math.Floor(a/b) },
}

// evalPriority is the value of a node that was checked.
func evalPriority(n node, field func(string) float64) float64 {
	if name := priorityField(n); name != "" {
		return field(name)
	}
	switch n := n.(type) {
	case *ast.IntegerNode:
		return float64(n.Value)
	case *ast.FloatNode:
		return n.Value
	case *ast.UnaryNode:
		v := evalPriority(n.Node, field)
		if n.Operator == "-" {
			return -v
		}
		return v
	case *ast.BuiltinNode:
		return math.Abs(evalPriority(n.Arguments[0], field))
	case *ast.BinaryNode:
		return arithmetic[n.Operator](evalPriority(n.Left, field), evalPriority(n.Right, field))
	case *ast.ConditionalNode:
		if c, ok := n.Cond.(*ast.BinaryNode); ok && comparisons[c.Operator](evalPriority(c.Left, field), evalPriority(c.Right, field)) {
			return evalPriority(n.Exp1, field)
		}
		return evalPriority(n.Exp2, field)
	}
	panic("predicates: a priority that was not checked")
}
