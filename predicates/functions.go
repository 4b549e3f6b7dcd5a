package predicates

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/expr-lang/expr/ast"

	"github.com/gopegasus/pegasus/scgs"
)

// function compiles the call of a builtin.
type function struct {
	least, most int // arguments
	// folds is with how many arguments at most it makes one value of a group or a list; 0: never.
	folds   int
	compile func(*compiler, *ast.BuiltinNode) (value, error)
}

// functions is filled by init because its entries refer to the compiler, which
// refers to it.
var functions map[string]function

func init() {
	functions = map[string]function{
		"all":      {2, 2, 2, (*compiler).compileQuantifier},
		"any":      {2, 2, 2, (*compiler).compileQuantifier},
		"none":     {2, 2, 2, (*compiler).compileQuantifier},
		"one":      {2, 2, 2, (*compiler).compileQuantifier},
		"count":    {1, 2, 2, (*compiler).compileCount},
		"len":      {1, 1, 1, (*compiler).compileLength},
		"filter":   {2, 2, 0, (*compiler).compileFilter},
		"map":      {2, 2, 0, (*compiler).compileMapping},
		"find":     {2, 2, 0, (*compiler).compileFind},
		"sum":      {1, 2, 2, (*compiler).compileSum},
		"mean":     {1, 1, 1, (*compiler).compileSum},
		"min":      {1, MaxNodes, 1, (*compiler).compileExtreme},
		"max":      {1, MaxNodes, 1, (*compiler).compileExtreme},
		"abs":      {1, 1, 0, (*compiler).abs},
		"floor":    {1, 1, 0, (*compiler).round},
		"ceil":     {1, 1, 0, (*compiler).round},
		"round":    {1, 1, 0, (*compiler).round},
		"int":      {1, 1, 0, (*compiler).toInt},
		"float":    {1, 1, 0, (*compiler).toFloat},
		"duration": {1, 1, 0, (*compiler).duration},
	}
}

// Functions are the names of the functions that predicates may call, in
// ascending order.
func Functions() []string {
	return slices.Sorted(maps.Keys(functions))
}

func (c *compiler) compileCall(n *ast.BuiltinNode) (value, error) {
	f, ok := functions[n.Name]
	if !ok {
		return value{}, c.refuseForeign(n) // the guard has refused it by name
	}
	if k := len(n.Arguments); k < f.least || k > f.most {
		return value{}, c.errorf(n, "", "%s takes %s, here are %d", n.Name, arguments(f), k)
	}
	return f.compile(c, n)
}

func arguments(f function) string {
	switch {
	case f.least == 2:
		return "two arguments"
	case f.most == 2:
		return "one or two arguments"
	}
	return "one argument"
}

// compileNumber compiles an argument that must be a number.
func (c *compiler) compileNumber(n *ast.BuiltinNode, arg node) (value, error) {
	v, err := c.compileNode(arg)
	if err != nil {
		return value{}, err
	}
	if !v.isNumeric() && (v.typ != scgs.Duration || n.Name != "min" && n.Name != "max") {
		hint := ""
		if v.group != nil {
			hint = "take a number of the group first, such as max(map(members, .x))"
		}
		return value{}, c.errorf(arg, hint, "%s needs a number, this is %s", n.Name, v.typeName())
	}
	return v, nil
}

func (c *compiler) abs(n *ast.BuiltinNode) (value, error) {
	v, err := c.compileNumber(n, n.Arguments[0])
	if err != nil {
		return value{}, err
	}
	overflow := causeAt(intOverflow, offsetOf(n))
	if v.typ == scgs.Int {
		return intValue(func(fr *frame) span[int64] { return absoluteSpan(v.int(fr), overflow) }), nil
	}
	return floatValue(func(fr *frame) span[float64] { return absoluteSpan(v.float(fr), overflow) }), nil
}

// round compiles floor, ceil and round; as in expr, the result is a float.
func (c *compiler) round(n *ast.BuiltinNode) (value, error) {
	v, err := c.compileNumber(n, n.Arguments[0])
	if err != nil {
		return value{}, err
	}
	f := map[string]func(float64) float64{"floor": math.Floor, "ceil": math.Ceil, "round": math.Round}[n.Name]
	x := v.toFloat().float
	return floatValue(func(fr *frame) span[float64] { return applyMonotone(x(fr), f) }), nil
}

func (c *compiler) toInt(n *ast.BuiltinNode) (value, error) {
	v, err := c.compileNumber(n, n.Arguments[0])
	if err != nil || v.typ == scgs.Int {
		return v, err
	}
	overflow := causeAt(intOverflow, offsetOf(n))
	return intValue(func(fr *frame) span[int64] { return truncateSpan(v.float(fr), overflow) }), nil
}

func (c *compiler) toFloat(n *ast.BuiltinNode) (value, error) {
	v, err := c.compileNumber(n, n.Arguments[0])
	if err != nil {
		return value{}, err
	}
	return v.toFloat(), nil
}

// duration compiles a literal such as duration("200ms").
func (c *compiler) duration(n *ast.BuiltinNode) (value, error) {
	s, ok := n.Arguments[0].(*ast.StringNode)
	if !ok {
		return value{}, c.errorf(n.Arguments[0], `write duration("200ms")`, "a duration is written out as a string")
	}
	d, err := time.ParseDuration(s.Value)
	if err != nil {
		return value{}, c.errorf(s, "a duration is a number with a unit, such as 200ms, 1.5s or 1h30m", "%q is not a duration", s.Value)
	}
	return durationValue(constantOf(pointSpan(int64(d)))), nil
}
