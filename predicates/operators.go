package predicates

import (
	"math"
	"slices"

	"github.com/expr-lang/expr/ast"

	"github.com/gopegasus/pegasus/scgs"
)

func (c *compiler) compileUnary(n *ast.UnaryNode) (value, error) {
	v, err := c.compileNode(n.Node)
	if err != nil {
		return value{}, err
	}
	switch overflow := causeAt(intOverflow, offsetOf(n)); {
	case n.Operator == "!" || n.Operator == "not":
		if v.bool != nil {
			return boolValue(func(fr *frame) truth { return notTruth(v.bool(fr)) }), nil
		}
	case n.Operator == "+" && v.isNumeric():
		return v, nil
	case n.Operator == "-" && v.typ == scgs.Int:
		return intValue(func(fr *frame) span[int64] { return negateSpan(v.int(fr), overflow) }), nil
	case n.Operator == "-" && v.typ == scgs.Float:
		return floatValue(func(fr *frame) span[float64] { return negateSpan(v.float(fr), overflow) }), nil
	}
	return value{}, c.errorf(n, "! and not take a condition, + and - take a number", "%s does not take %s", n.Operator, v.typeName())
}

func (c *compiler) compileBinary(n *ast.BinaryNode) (value, error) {
	switch n.Operator {
	case "in":
		return c.in(n)
	case "&&", "and", "||", "or", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%":
	default:
		return value{}, c.errorf(n, "the operators are && || ! == != < <= > >= in + - * / % ?:", "the operator %s is not part of the predicate language", n.Operator)
	}
	l, err := c.compileNode(n.Left)
	if err != nil {
		return value{}, c.hintMisplacedNot(n, err)
	}
	r, err := c.compileNode(n.Right)
	if err != nil {
		return value{}, err
	}
	switch n.Operator {
	case "&&", "and", "||", "or":
		return c.connective(n, l, r)
	case "==", "!=":
		return c.compileEquality(n, l, r)
	case "<", "<=", ">", ">=":
		return c.order(n, l, r)
	}
	return c.arithmetic(n, l, r)
}

// mismatch refuses operands that an operator cannot join.
func (c *compiler) mismatch(n *ast.BinaryNode, l, r value) error {
	hint := "both sides must have the same type: conditions for && and ||, numbers for arithmetic"
	switch {
	case l.item != nil || r.item != nil:
		hint = "take one of the member's fields, such as find(members, .online).name"
	case l.typ == scgs.Duration || r.typ == scgs.Duration:
		hint = `durations compare, add and subtract, a number scales one, and one by another is a float; one is written duration("200ms")`
	case l.typ == scgs.Enum || r.typ == scgs.Enum:
		hint = "an enum compares with one of its words, written as a string, by == and !="
	case n.Operator == "+" && l.text != nil:
		hint = "strings are compared, not joined"
	case l.text != nil && r.text != nil:
		hint = "strings have no order: they compare by == and != only"
	case l.group != nil || r.group != nil:
		hint = "use len, count, sum or another function of the group"
	}
	return c.errorf(n, hint, "%s does not join %s and %s", n.Operator, l.typeName(), r.typeName())
}

func (c *compiler) connective(n *ast.BinaryNode, l, r value) (value, error) {
	if l.bool == nil || r.bool == nil {
		return value{}, c.mismatch(n, l, r)
	}
	if n.Operator == "&&" || n.Operator == "and" {
		return boolValue(func(fr *frame) truth {
			a := l.bool(fr)
			if a.is == False {
				return a
			}
			return andTruth(a, r.bool(fr))
		}), nil
	}
	return boolValue(func(fr *frame) truth {
		a := l.bool(fr)
		if a.is == True {
			return a
		}
		return orTruth(a, r.bool(fr))
	}), nil
}

func (c *compiler) compileEquality(n *ast.BinaryNode, l, r value) (value, error) {
	if err := c.words(n, &l, &r); err != nil {
		return value{}, err
	}
	eq, ok := equals(l, r)
	if !ok {
		return value{}, c.mismatch(n, l, r)
	}
	if n.Operator == "!=" {
		return boolValue(func(fr *frame) truth { return notTruth(eq(fr)) }), nil
	}
	return boolValue(eq), nil
}

// words gives a string literal beside an enum its type, and refuses to compare
// an enum with anything but its words.
func (c *compiler) words(n *ast.BinaryNode, l, r *value) (err error) {
	switch {
	case l.typ == scgs.Enum && r.literal != nil:
		*r, err = c.compileWord(n.Right, *r, l.words)
	case r.typ == scgs.Enum && l.literal != nil:
		*l, err = c.compileWord(n.Left, *l, r.words)
	case l.typ == scgs.Enum && r.typ == scgs.Enum && !slices.Equal(l.words, r.words):
		err = c.errorf(n, "compare them with words, or declare the same words for both", "the enums have different words: %s and %s", l.words, r.words)
	}
	return err
}

// equals compares two values of the same type, or an int and a float; ok is false for others.
func equals(l, r value) (eq func(*frame) truth, ok bool) {
	switch {
	case l.typ == scgs.Int && r.typ == scgs.Float:
		return func(fr *frame) truth { return equalSpans(l.int(fr), r.float(fr)) }, true
	case l.typ == scgs.Float && r.typ == scgs.Int:
		return equals(r, l)
	case l.typ != r.typ:
		return nil, false
	case l.bool != nil:
		return func(fr *frame) truth { return sameTruth(l.bool(fr), r.bool(fr)) }, true
	case l.int != nil:
		return func(fr *frame) truth { return equalSpans(l.int(fr), r.int(fr)) }, true
	case l.float != nil:
		return func(fr *frame) truth { return equalSpans(l.float(fr), r.float(fr)) }, true
	case l.text != nil:
		return func(fr *frame) truth { return l.text(fr).equalsText(r.text(fr)) }, true
	}
	return nil, false
}

func (c *compiler) order(n *ast.BinaryNode, l, r value) (value, error) {
	if l.typ != r.typ && (!l.isNumeric() || !r.isNumeric()) || l.int == nil && l.float == nil {
		return value{}, c.mismatch(n, l, r)
	}
	a, b := l, r
	if n.Operator == ">" || n.Operator == "<=" { // a > b is b < a, a <= b is not b < a
		a, b = r, l
	}
	negated := n.Operator == "<=" || n.Operator == ">="
	switch {
	case a.int != nil && b.int != nil:
		return boolValue(ordered(a.int, b.int, a.knownInt, b.knownInt, negated)), nil
	case a.int != nil:
		return boolValue(ordered(a.int, b.float, a.knownInt, b.knownFloat, negated)), nil
	case b.int != nil:
		return boolValue(ordered(a.float, b.int, a.knownFloat, b.knownInt, negated)), nil
	}
	return boolValue(ordered(a.float, b.float, a.knownFloat, b.knownFloat, negated)), nil
}

// ordered is whether a is less than b or, negated, whether it is not.
func ordered[T, U int64 | float64](a func(*frame) span[T], b func(*frame) span[U], knownA known[T], knownB known[U], negated bool) func(*frame) truth {
	is := func(fr *frame) truth { return lessSpan(a(fr), b(fr)) }
	if negated {
		is = func(fr *frame) truth { return notTruth(lessSpan(a(fr), b(fr))) }
	}
	if knownA == nil || knownB == nil {
		return is
	}
	return func(fr *frame) truth {
		if x, ok := knownA(fr); ok {
			if y, ok := knownB(fr); ok {
				return truthOf(isSmaller(x, y) != negated)
			}
		}
		return is(fr)
	}
}

func (c *compiler) arithmetic(n *ast.BinaryNode, l, r value) (value, error) {
	whole := l.typ == scgs.Int && r.typ == scgs.Int
	switch {
	case l.typ == scgs.Duration || r.typ == scgs.Duration:
		return c.durationArithmetic(n, l, r)
	case n.Operator == "%" && !whole, !l.isNumeric(), !r.isNumeric():
		return value{}, c.mismatch(n, l, r)
	case whole && n.Operator != "/":
		return c.intArithmetic(n, l, r), nil
	}
	return c.floatArithmetic(n, l.toFloat(), r.toFloat()), nil
}

// durationArithmetic adds and subtracts durations, divides one by another, and scales one by a number. By an int
// it is exact; else it is rounded to a nanosecond.
func (c *compiler) durationArithmetic(n *ast.BinaryNode, l, r value) (value, error) {
	both := l.typ == r.typ
	switch op := n.Operator; {
	case both && op == "/":
		return c.floatArithmetic(n, l.toFloat(), r.toFloat()), nil
	case both && (op == "+" || op == "-"), op == "*" && (l.typ == scgs.Int || r.typ == scgs.Int):
		v := c.intArithmetic(n, l, r)
		v.typ = scgs.Duration
		return v, nil
	case op == "*" && (l.typ == scgs.Float || r.typ == scgs.Float), op == "/" && r.isNumeric():
		return c.nanoseconds(n, c.floatArithmetic(n, l.toFloat(), r.toFloat())), nil
	}
	return value{}, c.mismatch(n, l, r)
}

// nanoseconds is the duration of a float of nanoseconds.
func (c *compiler) nanoseconds(n *ast.BinaryNode, v value) value {
	overflow := causeAt(intOverflow, offsetOf(n))
	d := durationValue(func(fr *frame) span[int64] {
		s := v.float(fr)
		if s.void {
			return unknownSpan[int64](s.why)
		}
		lo, fits := wholeInt(s.lo)
		hi, also := wholeInt(s.hi)
		if !fits || !also {
			return unknownSpan[int64](overflow)
		}
		return spanBetween(lo, hi, s.why)
	})
	if known := v.knownFloat; known != nil {
		d.knownInt = func(fr *frame) (int64, bool) {
			x, ok := known(fr)
			if !ok {
				return 0, false
			}
			return wholeInt(x)
		}
	}
	return d
}

// wholeInt is the nearest int of a float, the one further from 0 of two; ok is false if it does not fit.
func wholeInt(x float64) (n int64, ok bool) {
	x = math.Round(x)
	return int64(x), x >= math.MinInt64 && x < math.MaxInt64 // The bound rounds to 2^63, which does not fit.
}

func (c *compiler) intArithmetic(n *ast.BinaryNode, l, r value) value {
	var f func(x, y int64) (int64, bool)
	switch n.Operator {
	case "+":
		f = addInt
	case "-":
		f = subInt
	case "*":
		f = mulInt
	case "%":
		zero := causeAt(divisionByZero, offsetOf(n))
		return intValue(func(fr *frame) span[int64] { return remainderSpan(l.int(fr), r.int(fr), zero) })
	}
	overflow := causeAt(intOverflow, offsetOf(n))
	v := intValue(func(fr *frame) span[int64] { return applyToCorners(l.int(fr), r.int(fr), overflow, f) })
	v.knownInt = joined(l.knownInt, r.knownInt, f)
	return v
}

// joined computes an operator where both operands are known, and it has a result.
func joined[T int64 | float64](a, b known[T], f func(x, y T) (T, bool)) known[T] {
	if a == nil || b == nil {
		return nil
	}
	return func(fr *frame) (T, bool) {
		x, ok := a(fr)
		if !ok {
			return 0, false
		}
		y, ok := b(fr)
		if !ok {
			return 0, false
		}
		z, ok := f(x, y)
		return z, ok && !isNaN(z)
	}
}

func (c *compiler) floatArithmetic(n *ast.BinaryNode, l, r value) value {
	nan := causeAt(notANumber, offsetOf(n))
	var f func(x, y float64) (float64, bool)
	switch n.Operator {
	case "+":
		f = addFloat
	case "-":
		f = subFloat
	case "*":
		f = mulFloat
	case "/":
		zero := causeAt(divisionByZero, offsetOf(n))
		return floatValue(func(fr *frame) span[float64] { return divideSpans(l.float(fr), r.float(fr), zero, nan) })
	}
	v := floatValue(func(fr *frame) span[float64] { return applyToCorners(l.float(fr), r.float(fr), nan, f) })
	v.knownFloat = joined(l.knownFloat, r.knownFloat, f)
	return v
}

// in compiles `x in [a, b]`: x equals one of the list, which is written out.
func (c *compiler) in(n *ast.BinaryNode) (value, error) {
	list, ok := n.Right.(*ast.ArrayNode)
	if !ok {
		return c.inList(n)
	}
	left, err := c.compileSingle(n.Left)
	if err != nil {
		return value{}, c.hintMisplacedNot(n, err)
	}
	store, x := left.keepValue(c.vars)
	c.vars++
	among := make([]func(*frame) truth, 0, len(list.Nodes))
	for _, e := range list.Nodes {
		v, err := c.compileNode(e)
		if err != nil {
			return value{}, err
		}
		eq := &ast.BinaryNode{Operator: "==", Left: n.Left, Right: e}
		eq.SetLocation(e.Location())
		is, err := c.compileEquality(eq, x, v)
		if err != nil {
			return value{}, err
		}
		among = append(among, is.bool)
	}
	return boolValue(func(fr *frame) truth {
		store(fr)
		found := truth{is: False}
		for _, is := range among {
			if found = orTruth(found, is(fr)); found.is == True {
				break
			}
		}
		return found
	}), nil
}

// compileSingle compiles the value to compare with the elements of a list.
func (c *compiler) compileSingle(n node) (value, error) {
	v, err := c.compileNode(n)
	if err != nil {
		return value{}, err
	}
	if !v.isScalar() {
		return value{}, c.errorf(n, "use a field of it", "a value is wanted, this is %s", v.typeName())
	}
	return v, nil
}
