package predicates

import (
	"fmt"
	"strconv"

	"github.com/gopegasus/pegasus/scgs"
)

// value is a compiled expression: its static type and the one function that
// computes it. A type of Invalid is of a member (item) or of a group.
type value struct {
	typ   scgs.Type
	words []string // of an Enum

	bool  func(*frame) truth
	int   func(*frame) span[int64] // Int; Duration in nanoseconds
	float func(*frame) span[float64]
	text  func(*frame) text // String, Enum
	item  func(*frame) item
	group *group

	// What is known of a number, quicker than its bounds; nil: there is no quicker way.
	knownInt   known[int64]
	knownFloat known[float64]

	own     bool    // of a member: the innermost loop is at it
	field   int     // of a number: 1 + the place of the field of that member that it is; 0: it is computed
	prev    bool    // of a member: it is the one in the global state before
	list    bool    // of a group: it is a list of a state as it stands
	literal *string // the text, if it is written out in the source
}

// known computes a number; ok is false where it is not known, or perhaps not.
type known[T int64 | float64] func(*frame) (x T, ok bool)

func constantNumber[T int64 | float64](x T) known[T] {
	return func(*frame) (T, bool) { return x, true }
}

func boolValue(f func(*frame) truth) value          { return value{typ: scgs.Bool, bool: f} }
func intValue(f func(*frame) span[int64]) value     { return value{typ: scgs.Int, int: f} }
func floatValue(f func(*frame) span[float64]) value { return value{typ: scgs.Float, float: f} }
func durationValue(f func(*frame) span[int64]) value {
	return value{typ: scgs.Duration, int: f}
}

func constantOf[T any](x T) func(*frame) T { return func(*frame) T { return x } }

func textLiteral(s string) value {
	return value{typ: scgs.String, text: constantOf(text{s: s}), literal: &s}
}

// loadField makes the value of a declared field from a function that finds it.
func loadField(f scgs.Field, get func(*frame) (*scgs.Value, cause)) value {
	v := value{typ: f.Type, words: f.Words}
	switch f.Type {
	case scgs.Bool:
		v.bool = func(fr *frame) truth {
			x, why := get(fr)
			if why.isSet() {
				return unknownTruth(why)
			}
			return truthOf(x.Bool())
		}
	case scgs.Int, scgs.Duration:
		v.int = func(fr *frame) span[int64] {
			x, why := get(fr)
			if why.isSet() {
				return unknownSpan[int64](why)
			}
			return pointSpan(x.Int())
		}
		v.knownInt = func(fr *frame) (int64, bool) {
			x, why := get(fr)
			if why.isSet() {
				return 0, false
			}
			return x.Int(), true
		}
	case scgs.Float:
		v.float = func(fr *frame) span[float64] {
			x, why := get(fr)
			if why.isSet() {
				return unknownSpan[float64](why)
			}
			return pointSpan(x.Float())
		}
		v.knownFloat = func(fr *frame) (float64, bool) {
			x, why := get(fr)
			if why.isSet() {
				return 0, false
			}
			return x.Float(), true
		}
	case scgs.String, scgs.Enum:
		v.text = func(fr *frame) text {
			x, why := get(fr)
			if why.isSet() {
				return text{why: why}
			}
			return text{s: x.Text()}
		}
	default:
		panic(fmt.Sprintf("predicates: field %q is declared without a type", f.Name))
	}
	return v
}

// evalValue computes the value, or says why it is not known.
func (v value) evalValue(fr *frame) (scgs.Value, cause) {
	switch v.typ {
	case scgs.Bool:
		t := v.bool(fr)
		return scgs.BoolValue(t.is == True), t.why
	case scgs.Int:
		n := v.int(fr)
		return scgs.IntValue(n.lo), n.why
	case scgs.Duration:
		n := v.int(fr)
		return scgs.DurationValue(makeDuration(n.lo)), n.why
	case scgs.Float:
		n := v.float(fr)
		return scgs.FloatValue(n.lo), n.why
	case scgs.String:
		t := v.text(fr)
		return scgs.StringValue(t.s), t.why
	case scgs.Enum:
		t := v.text(fr)
		return scgs.EnumValue(t.s), t.why
	case scgs.Invalid:
	}
	panic(fmt.Sprintf("predicates: %s has no value", v.typeName()))
}

// isNumeric is whether the value is an int or a float.
func (v value) isNumeric() bool { return v.typ == scgs.Int || v.typ == scgs.Float }

// isScalar is whether the value is neither a member nor a group.
func (v value) isScalar() bool { return v.typ != scgs.Invalid }

// toFloat is the value of a number as a float.
func (v value) toFloat() value {
	if v.typ == scgs.Float {
		return v
	}
	n := v.int
	f := floatValue(func(fr *frame) span[float64] {
		return applyMonotone(n(fr), func(x int64) float64 { return float64(x) })
	})
	f.field = v.field
	if known := v.knownInt; known != nil {
		f.knownFloat = func(fr *frame) (float64, bool) {
			x, ok := known(fr)
			return float64(x), ok
		}
	}
	return f
}

// elsewhere is the value without what holds only where it was compiled.
func (v value) elsewhere() value {
	v.own, v.field, v.knownInt, v.knownFloat = false, 0, nil, nil
	return v
}

// prepareAfter is the value computed once prepare has run.
func (v value) prepareAfter(prepare func(*frame)) value {
	v.bool = prepared(prepare, v.bool)
	v.int = prepared(prepare, v.int)
	v.float = prepared(prepare, v.float)
	v.text = prepared(prepare, v.text)
	v.item = prepared(prepare, v.item)
	v = v.elsewhere()
	if v.group != nil {
		g := *v.group
		g.before = append([]func(*frame){prepare}, g.before...) // An inner let may read this one.
		v.group = &g
	}
	return v
}

func prepared[T any](prepare func(*frame), f func(*frame) T) func(*frame) T {
	if f == nil {
		return nil
	}
	return func(fr *frame) T {
		prepare(fr)
		return f(fr)
	}
}

// keepValue gives a function that computes the value into a variable, and the value
// that reads it back.
func (v value) keepValue(slot int) (store func(*frame), read value) {
	read = v.elsewhere()
	switch {
	case v.bool != nil:
		store = func(fr *frame) { fr.vars[slot].bool = v.bool(fr) }
		read.bool = func(fr *frame) truth { return fr.vars[slot].bool }
	case v.int != nil:
		store = func(fr *frame) { fr.vars[slot].int = v.int(fr) }
		read.int = func(fr *frame) span[int64] { return fr.vars[slot].int }
	case v.float != nil:
		store = func(fr *frame) { fr.vars[slot].float = v.float(fr) }
		read.float = func(fr *frame) span[float64] { return fr.vars[slot].float }
	case v.text != nil:
		store = func(fr *frame) { fr.vars[slot].text = v.text(fr) }
		read.text = func(fr *frame) text { return fr.vars[slot].text }
	case v.item != nil:
		store = func(fr *frame) { fr.vars[slot].item = v.item(fr) }
		read.item = func(fr *frame) item { return fr.vars[slot].item }
	}
	return store, read
}

// typeName describes the value's type in messages.
func (v value) typeName() string {
	switch {
	case v.group != nil && v.group.elem.item != nil:
		return "a group of members"
	case v.group != nil:
		return "a list of values"
	case v.item != nil:
		return "a member"
	case v.literal != nil:
		return "the string " + strconv.Quote(*v.literal)
	case v.typ == scgs.Enum || v.typ == scgs.Int:
		return "an " + v.typ.String()
	}
	return "a " + v.typ.String()
}
