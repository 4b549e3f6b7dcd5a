package predicates

import (
	"math"

	"github.com/expr-lang/expr/ast"

	"github.com/gopegasus/pegasus/scgs"
)

// fold joins the elements of a group to one result that does not depend on their
// order. Of a condition it counts the elements that it holds for.
type fold[T int64 | float64] struct {
	group *group
	x     func(*frame) span[T] // of an element; of a condition, see indicator
	count bool                 // x is a condition
	total func() total[T]
	// enough is set where one element that the condition holds for decides.
	enough bool
	state  int // its place among the states of the expression
	// field is 1 + the place of the field that x is of the member, whoever that is, and
	// 0 of any other fold.
	field int

	// Folds of the same key share an incremental aggregate; of a fold that
	// depends on more than its elements the key is empty.
	key    string
	fields uint64
}

// anyFold is a fold of any type.
type anyFold interface {
	aggregate() aggregator
	id() (key string, fields uint64)
}

func (f *fold[T]) aggregate() aggregator           { return &aggregate[T]{fold: f, total: f.total()} }
func (f *fold[T]) id() (key string, fields uint64) { return f.key, f.fields }
func (f *fold[T]) isIncremental() bool             { return f.key != "" }

// combine takes all elements together.
func (f *fold[T]) combine(fr *frame) *combined[T] {
	return fr.aggregates[f.state].(*aggregate[T]).combineState(fr)
}

// look finds whether member i is in the group, and its number.
func (f *fold[T]) look(fr *frame, i int) (in truth, x span[T]) {
	switch in = f.group.moveTo(fr, i); {
	case in.is == False:
		return in, x
	case in.is == Unknown && !f.count:
		return in, unknownSpan[T](in.why)
	}
	if x = f.x(fr); in.is == Unknown { // it may not count
		x = spanBetween(0, x.hi, eitherCause(x.why, in.why))
	}
	return in, x
}

func (f *fold[T]) partOf(fr *frame, i int) part[T] {
	in, x := f.look(fr, i)
	var p part[T]
	switch {
	case in.is == False:
		return p
	case x.void:
		return part[T]{is: unsure}
	case in.is == Unknown:
		p.is = unsure
	case in.is == True:
		p.is = present
	}
	if x.lo < x.hi {
		p.is |= open
	}
	p.lo, p.hi = x.lo+0, x.hi+0 // -0 becomes 0: they are equal, and so are parts of them
	return p
}

// fieldPart is the part of a member of which the number is a field: what part finds,
// read straight from the state.
func (f *fold[T]) fieldPart(s *Scope, i int) part[T] {
	v, why := s.stateValue(i, f.field-1)
	if why.isSet() {
		return part[T]{is: unsure}
	}
	x := T(v.Int())
	if v.Type() == scgs.Float {
		x = T(v.Float()) + 0
	}
	return part[T]{is: present, lo: x, hi: x}
}

// why is the cause for which the number of a member is not known.
func (f *fold[T]) why(fr *frame, i int) cause {
	f.group.beginLoop(fr)
	_, x := f.look(fr, i)
	return x.why
}

// number is the total as a number. bad is the reason where there is none.
func (f *fold[T]) number(fr *frame, a *combined[T], bad cause) span[T] {
	switch {
	case a.unsure >= 0:
		return unknownSpan[T](f.why(fr, a.unsure))
	case !a.ok:
		return unknownSpan[T](bad)
	case a.open >= 0:
		return spanBetween(a.lo, a.hi, f.why(fr, a.open))
	}
	return pointSpan(a.lo)
}

// known is the total where all elements are known; the aggregate is incremental then.
func (f *fold[T]) known(fr *frame) (T, bool) {
	k := fr.aggregates[f.state].(*aggregate[T])
	if !k.built || k.present == 0 || k.unsure.firstMarked() >= 0 || k.open.firstMarked() >= 0 {
		return 0, false
	}
	x, _, ok := k.total.bounds()
	return x, ok
}

// answer is whether a condition holds, from the number of elements that it holds
// for; it is unknown if an open element could change it, and over an empty group.
func answer(f *fold[int64], fr *frame, a *combined[int64], is bool) truth {
	switch {
	case a.open >= 0:
		return unknownTruth(f.why(fr, a.open))
	case a.present > 0:
		return truthOf(is)
	case a.unsure >= 0:
		f.group.beginLoop(fr)
		return f.group.moveTo(fr, a.unsure)
	}
	return unknownTruth(f.group.isEmptyCause())
}

// indicator is 1 where a condition holds, 0 where it does not, and between them
// where that is unknown.
func indicator(holds func(*frame) truth) func(*frame) span[int64] {
	return func(fr *frame) span[int64] {
		switch t := holds(fr); t.is {
		case True:
			return pointSpan[int64](1)
		case False:
			return pointSpan[int64](0)
		default:
			return span[int64]{lo: 0, hi: 1, why: t.why}
		}
	}
}

// counting compiles a group and a condition as a fold that counts; negated, it
// counts the elements that the condition does not hold for.
func (c *compiler) counting(n *ast.BuiltinNode, negated bool) (*fold[int64], error) {
	outer := c.enterFold()
	g, holds, err := c.compileEach(n)
	if err != nil {
		return nil, err
	}
	if !negated {
		return c.counted(n, g, holds, outer, "count")
	}
	return c.counted(n, g, func(fr *frame) truth { return notTruth(holds(fr)) }, outer, "all")
}

func (c *compiler) counted(n *ast.BuiltinNode, g *group, holds func(*frame) truth, outer footprint, kind string) (*fold[int64], error) {
	f := &fold[int64]{group: g, x: indicator(holds), count: true, total: func() total[int64] { return &intSum{} }}
	return f, finishFold(c, f, n, outer, kind)
}

// compileQuantifier compiles all, any, none and one.
func (c *compiler) compileQuantifier(n *ast.BuiltinNode) (value, error) {
	f, err := c.counting(n, n.Name == "all")
	if err != nil {
		return value{}, err
	}
	if n.Name == "one" {
		return boolValue(func(fr *frame) truth {
			a := f.combine(fr)
			if a.lo > 1 {
				return truth{is: False}
			}
			return answer(f, fr, a, a.lo == 1)
		}), nil
	}
	f.enough = true
	found := func(fr *frame) truth {
		a := f.combine(fr)
		if a.lo > 0 {
			return truth{is: True}
		}
		return answer(f, fr, a, false)
	}
	if n.Name == "any" {
		return boolValue(found), nil
	}
	return boolValue(func(fr *frame) truth { return notTruth(found(fr)) }), nil
}

// compileCount compiles count.
func (c *compiler) compileCount(n *ast.BuiltinNode) (value, error) {
	f, err := c.counting(n, false)
	return size(f), err
}

// compileLength compiles len.
func (c *compiler) compileLength(n *ast.BuiltinNode) (value, error) {
	outer := c.enterFold()
	g, err := c.compileGroup(n)
	if err != nil {
		return value{}, err
	}
	if g.list != nil && len(g.when) == 0 {
		c.leaveFold(outer)
		return g.listLength(), nil
	}
	if err := c.compileInside(g, func() error { return c.chargeSteps(n, 1) }); err != nil {
		return value{}, err
	}
	f, err := c.counted(n, g, constantOf(truth{is: True}), outer, "len")
	return size(f), err
}

// size is how many elements the condition of a fold holds for.
func size(f *fold[int64]) value {
	v := intValue(func(fr *frame) span[int64] {
		a := f.combine(fr)
		if a.open < 0 {
			return pointSpan(a.lo)
		}
		return spanBetween(a.lo, a.hi, f.why(fr, a.open))
	})
	v.knownInt = f.known
	return v
}

// numbers compiles a group and the number that a function takes of each element.
func (c *compiler) numbers(n *ast.BuiltinNode) (*group, value, error) {
	g, err := c.compileGroup(n)
	if err != nil {
		return nil, value{}, err
	}
	v, _, err := c.compileBody(n, g)
	if err != nil {
		return nil, value{}, err
	}
	if v.typ == scgs.Duration && n.Name != "mean" {
		return g, v, nil
	}
	if !v.isNumeric() {
		hint := "write " + n.Name + "(map(members, .x)) with a field that is an int or a float"
		if v.typ == scgs.Duration {
			hint = "divide their sum by how many there are: sum(members, .x) / len(members)"
		}
		if n.Name == "sum" {
			hint = "write sum(members, .x) with a field that is an int or a float"
		}
		return nil, value{}, c.errorf(n.Arguments[len(n.Arguments)-1], hint, "%s needs numbers, this is %s", n.Name, c.elements(n, g, v))
	}
	return g, v, nil
}

// field is the field of a number, if the group has all members.
func (g *group) field(v value) int {
	if g.list != nil || len(g.when) > 0 || len(g.before) > 0 {
		return 0
	}
	return v.field
}

// elements describes what a group has instead of numbers.
func (c *compiler) elements(n *ast.BuiltinNode, g *group, v value) string {
	if len(n.Arguments) == 1 && g.list != nil {
		return "a list with " + v.typeName() + " at each place"
	}
	if len(n.Arguments) == 1 && v.item != nil {
		return "a group of members"
	}
	if len(n.Arguments) == 1 {
		return "a list with " + v.typeName() + " of each member"
	}
	return v.typeName()
}

// compileSum and mean add without rounding; the sum over an empty group is 0, the mean is
// unknown.
func (c *compiler) compileSum(n *ast.BuiltinNode) (value, error) {
	outer := c.enterFold()
	g, v, err := c.numbers(n)
	if err != nil {
		return value{}, err
	}
	if v.int != nil && n.Name == "sum" {
		f := &fold[int64]{group: g, x: v.int, field: g.field(v), total: func() total[int64] { return &intSum{} }}
		overflow := causeAt(intOverflow, offsetOf(n))
		result := intValue(func(fr *frame) span[int64] { return f.number(fr, f.combine(fr), overflow) })
		result.typ, result.knownInt = v.typ, f.known
		return result, finishFold(c, f, n, outer, "int sum")
	}
	f := &fold[float64]{group: g, x: v.toFloat().float, field: g.field(v), total: func() total[float64] { return &floatSum{} }}
	nan := causeAt(notANumber, offsetOf(n))
	sum := func(fr *frame, a *combined[float64]) span[float64] {
		s := f.number(fr, a, nan)
		if s.lo < s.hi && (math.IsInf(s.lo, 0) || math.IsInf(s.hi, 0)) { // what lies between may be NaN
			return unknownSpan[float64](s.why)
		}
		return s
	}
	result := floatValue(func(fr *frame) span[float64] { return sum(fr, f.combine(fr)) })
	result.knownFloat = f.known
	if n.Name == "mean" {
		empty := g.isEmptyCause()
		result = floatValue(func(fr *frame) span[float64] {
			a := f.combine(fr)
			return divideSpans(sum(fr, a), pointSpan(float64(a.present)), empty, empty)
		})
	}
	return result, finishFold(c, f, n, outer, "float sum")
}

// compileExtreme compiles min and max, of the numbers of a group or of some numbers.
func (c *compiler) compileExtreme(n *ast.BuiltinNode) (value, error) {
	if len(n.Arguments) > 1 {
		if n.Name == "min" {
			return c.extremeOf(n, lesserSpan, lesserSpan)
		}
		return c.extremeOf(n, greaterSpan, greaterSpan)
	}
	outer := c.enterFold()
	g, v, err := c.numbers(n)
	if err != nil {
		return value{}, err
	}
	if v.int != nil {
		f := &fold[int64]{group: g, x: v.int, field: g.field(v), total: extremeTotal[int64](n.Name, math.MinInt64, math.MaxInt64)}
		result := intValue(func(fr *frame) span[int64] { return best(f, fr) })
		result.typ, result.knownInt = v.typ, f.known
		return result, finishFold(c, f, n, outer, "int "+n.Name)
	}
	f := &fold[float64]{group: g, x: v.float, field: g.field(v), total: extremeTotal(n.Name, math.Inf(-1), math.Inf(1))}
	result := floatValue(func(fr *frame) span[float64] { return best(f, fr) })
	result.knownFloat = f.known
	return result, finishFold(c, f, n, outer, "float "+n.Name)
}

func extremeTotal[T int64 | float64](name string, least, greatest T) func() total[T] {
	if name == "min" {
		return func() total[T] {
			return &extreme[T]{worst: greatest, better: func(x, y T) T { return min(x, y) }}
		}
	}
	return func() total[T] { return &extreme[T]{worst: least, better: func(x, y T) T { return max(x, y) }} }
}

// best is the extreme, which is unknown over an empty group.
func best[T int64 | float64](f *fold[T], fr *frame) span[T] {
	a := f.combine(fr)
	empty := f.group.isEmptyCause()
	if a.present == 0 && a.unsure < 0 {
		return unknownSpan[T](empty)
	}
	return f.number(fr, a, empty)
}

// extremeOf takes the least or greatest of its arguments; they are floats if
// one of them is.
func (c *compiler) extremeOf(n *ast.BuiltinNode, ints func(a, b span[int64]) span[int64], floats func(a, b span[float64]) span[float64]) (value, error) {
	result, err := c.compileNumber(n, n.Arguments[0])
	for _, arg := range n.Arguments[1:] {
		if err != nil {
			return value{}, err
		}
		var next value
		if next, err = c.compileNumber(n, arg); err != nil {
			return value{}, err
		}
		a, b := result, next
		switch {
		case a.typ != b.typ && (a.typ == scgs.Duration || b.typ == scgs.Duration):
			return value{}, c.errorf(arg, "give it durations alone, or numbers alone", "%s does not join %s and %s", n.Name, a.typeName(), b.typeName())
		case a.int != nil && b.int != nil:
			result = intValue(func(fr *frame) span[int64] { return ints(a.int(fr), b.int(fr)) })
			result.typ = a.typ
			continue
		}
		x, y := a.toFloat().float, b.toFloat().float
		result = floatValue(func(fr *frame) span[float64] { return floats(x(fr), y(fr)) })
	}
	return result, err
}
