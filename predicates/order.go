package predicates

import (
	"math"

	"github.com/expr-lang/expr/ast"
)

// Order is an expression on a task, by which tasks are sorted: numbers, weight, age (the seconds since
// the task was put), + - * / and abs. Age may only be added, times a number, so that the order of two
// tasks never changes while they wait.
type Order struct {
	root node
}

// CompileOrder reads an order. The error is an [*Error].
func CompileOrder(src string) (*Order, error) {
	root, err := parseTree(src)
	if err != nil {
		return nil, err
	}
	c := orderChecker{src}
	if _, _, err := c.check(root); err != nil {
		return nil, err
	}
	return &Order{root}, nil
}

// Key is the value for a task of a weight that was put at an instant in seconds on the same clock,
// without the part that all tasks share: of two tasks the one with the smaller key has the
// smaller value, whenever they are compared. It may be infinite; NaN counts as infinite.
func (o *Order) Key(weight, put float64) float64 {
	value, rise := o.eval(o.root, weight)
	if key := value - rise*put; !math.IsNaN(key) {
		return key
	}
	return math.Inf(1)
}

// eval is the value at age 0, and by how much it rises in a second.
func (o *Order) eval(n node, weight float64) (value, rise float64) {
	switch n := n.(type) {
	case *ast.IntegerNode:
		return float64(n.Value), 0
	case *ast.FloatNode:
		return n.Value, 0
	case *ast.IdentifierNode:
		if n.Value == "age" {
			return 0, 1
		}
		return weight, 0
	case *ast.UnaryNode:
		value, rise = o.eval(n.Node, weight)
		if n.Operator == "-" {
			return -value, -rise
		}
		return value, rise
	case *ast.BuiltinNode:
		value, _ = o.eval(n.Arguments[0], weight)
		return math.Abs(value), 0
	case *ast.BinaryNode:
		a, p := o.eval(n.Left, weight)
		b, q := o.eval(n.Right, weight)
		switch n.Operator {
		case "+":
			return a + b, p + q
		case "-":
			return a - b, p - q
		case "*":
			return a * b, p*b + q*a
		default:
			return a / b, p / b
		}
	}
	panic("predicates: an order that was not checked")
}

// orderChecker refuses what an order may not have.
type orderChecker struct{ src string }

// check reports whether age is in an expression, and whether it is a plain number.
func (c orderChecker) check(n node) (ages, plain bool, err error) {
	refuse := func(hint, format string, args ...any) (bool, bool, error) {
		return false, false, errorAt(c.src, n.Location().From, hint, format, args...)
	}
	switch n := n.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		return false, true, nil
	case *ast.IdentifierNode:
		if n.Value != "weight" && n.Value != "age" {
			return refuse("a task has weight, and age in seconds", "there is no %s", n.Value)
		}
		return n.Value == "age", false, nil
	case *ast.UnaryNode:
		if n.Operator == "-" || n.Operator == "+" {
			return c.check(n.Node)
		}
	case *ast.BuiltinNode:
		if n.Name == "abs" && len(n.Arguments) == 1 {
			if ages, plain, err = c.check(n.Arguments[0]); err == nil && ages {
				return refuse("add it, times a number: -weight - age / 10", "age stands inside of abs, so the order of two tasks could change while they wait")
			}
			return false, plain, err
		}
	case *ast.BinaryNode:
		return c.checkBinary(n)
	}
	return refuse("write numbers, weight, age, + - * / and abs, such as -weight - age / 10", "an order of tasks cannot have this")
}

func (c orderChecker) checkBinary(n *ast.BinaryNode) (ages, plain bool, err error) {
	left, leftPlain, err := c.check(n.Left)
	if err != nil {
		return false, false, err
	}
	right, rightPlain, err := c.check(n.Right)
	if err != nil {
		return false, false, err
	}
	switch n.Operator {
	case "+", "-":
		return left || right, leftPlain && rightPlain, nil
	case "*", "/":
		if left && !rightPlain || right && (!leftPlain || n.Operator == "/") {
			return false, false, errorAt(c.src, n.Location().From, "add it, times a number: -weight - age / 10", "age is not only added, times a number, so the order of two tasks could change while they wait")
		}
		return left || right, leftPlain && rightPlain, nil
	}
	return false, false, errorAt(c.src, n.Location().From, "write numbers, weight, age, + - * / and abs, such as -weight - age / 10", "an order of tasks cannot have %s", n.Operator)
}
