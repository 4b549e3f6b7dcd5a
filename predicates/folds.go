package predicates

import (
	"github.com/expr-lang/expr/ast"

	"github.com/gopegasus/pegasus/scgs"
)

// fold carries one number over the elements of a group.
type fold[T int64 | float64] struct {
	first bool // begin with the first element, not with zero
	step  func(sum, x span[T]) span[T]
}

// over folds x over the group in the order of the members, and counts them. It
// is void where it is not known which elements are in the group.
func (f fold[T]) over(fr *frame, g *group, x func(*frame) span[T]) (result span[T], n int) {
	g.begin(fr)
	for i := range g.size(fr) {
		switch in := g.has(fr, i); in.is {
		case Unknown:
			return void[T](in.why), n
		case False:
			continue
		case True:
		}
		y := x(fr)
		if n++; n > 1 || !f.first {
			y = f.step(result, y)
		}
		if result = y; result.void {
			break
		}
	}
	if n == 0 && f.first {
		return void[T](g.empty()), 0
	}
	return result, n
}

// numbers compiles a group and the number that a function takes of each element.
func (c *compiler) numbers(n *ast.BuiltinNode) (*group, value, error) {
	g, err := c.group(n)
	if err != nil {
		return nil, value{}, err
	}
	v, _, err := c.body(n, g)
	if err != nil {
		return nil, value{}, err
	}
	if !v.numeric() {
		hint := "write " + n.Name + "(map(members, .x)) with a field that is an int or a float"
		if n.Name == "sum" {
			hint = "write sum(members, .x) with a field that is an int or a float"
		}
		return nil, value{}, c.errorf(n.Arguments[len(n.Arguments)-1], hint, "%s needs numbers, this is %s", n.Name, c.elements(n, g, v))
	}
	return g, v, nil
}

// elements describes what a group has instead of numbers.
func (c *compiler) elements(n *ast.BuiltinNode, g *group, v value) string {
	if len(n.Arguments) == 1 && g.list != nil {
		return "a list with " + v.what() + " at each place"
	}
	if len(n.Arguments) == 1 && v.item != nil {
		return "a group of members"
	}
	if len(n.Arguments) == 1 {
		return "a list with " + v.what() + " of each member"
	}
	return v.what()
}

// sum adds in the order of the members; over nobody it is 0.
func (c *compiler) sum(n *ast.BuiltinNode) (value, error) {
	g, v, err := c.numbers(n)
	if err != nil {
		return value{}, err
	}
	if v.typ == scgs.Int {
		overflow := at(intOverflow, offset(n))
		f := fold[int64]{step: func(a, b span[int64]) span[int64] { return corners(a, b, overflow, addInt) }}
		return intValue(func(fr *frame) span[int64] { s, _ := f.over(fr, g, v.int); return s }), nil
	}
	f := c.floatSum(n)
	return floatValue(func(fr *frame) span[float64] { s, _ := f.over(fr, g, v.float); return s }), nil
}

func (c *compiler) floatSum(n node) fold[float64] {
	nan := at(notANumber, offset(n))
	return fold[float64]{step: func(a, b span[float64]) span[float64] { return corners(a, b, nan, addFloat) }}
}

// mean is unknown over nobody.
func (c *compiler) mean(n *ast.BuiltinNode) (value, error) {
	g, v, err := c.numbers(n)
	if err != nil {
		return value{}, err
	}
	f, x := c.floatSum(n), v.toFloat().float
	empty := g.empty()
	return floatValue(func(fr *frame) span[float64] {
		s, k := f.over(fr, g, x)
		return divide(s, point(float64(k)), empty, empty)
	}), nil
}

// extreme compiles min and max, of the numbers of a group or of some numbers.
func (c *compiler) extreme(n *ast.BuiltinNode) (value, error) {
	ints, floats := lesser[int64], lesser[float64]
	if n.Name == "max" {
		ints, floats = greater[int64], greater[float64]
	}
	if len(n.Arguments) > 1 {
		return c.extremeOf(n, ints, floats)
	}
	g, v, err := c.numbers(n)
	if err != nil {
		return value{}, err
	}
	if v.typ == scgs.Int {
		f := fold[int64]{first: true, step: ints}
		return intValue(func(fr *frame) span[int64] { s, _ := f.over(fr, g, v.int); return s }), nil
	}
	f := fold[float64]{first: true, step: floats}
	return floatValue(func(fr *frame) span[float64] { s, _ := f.over(fr, g, v.float); return s }), nil
}

// extremeOf takes the least or greatest of its arguments; they are floats if
// one of them is.
func (c *compiler) extremeOf(n *ast.BuiltinNode, ints func(a, b span[int64]) span[int64], floats func(a, b span[float64]) span[float64]) (value, error) {
	result, err := c.number(n, n.Arguments[0])
	for _, arg := range n.Arguments[1:] {
		if err != nil {
			return value{}, err
		}
		var next value
		if next, err = c.number(n, arg); err != nil {
			return value{}, err
		}
		a, b := result, next
		if a.typ == scgs.Int && b.typ == scgs.Int {
			result = intValue(func(fr *frame) span[int64] { return ints(a.int(fr), b.int(fr)) })
			continue
		}
		x, y := a.toFloat().float, b.toFloat().float
		result = floatValue(func(fr *frame) span[float64] { return floats(x(fr), y(fr)) })
	}
	return result, err
}
