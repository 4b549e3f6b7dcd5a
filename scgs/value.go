package scgs

import (
	"math"
	"strconv"
	"time"
)

// Type is the type of a field of a local state: one of the types below, or a list of such a
// type ([ListOf]).
type Type uint8

// The types of single values. An Enum is a string out of a declared list.
const (
	Invalid Type = iota
	Bool
	Int
	Float
	String
	Duration
	Enum
)

var typeNames = [...]string{"invalid", "bool", "int", "float", "string", "duration", "enum"}

// String gives the word that configuration files use for the type, and "list of
// float" for lists.
func (t Type) String() string {
	switch {
	case int(t) < len(typeNames):
		return typeNames[t]
	case ListOf(t.Elem()) == t:
		return "list of " + typeNames[t.Elem()]
	}
	return "type(" + strconv.Itoa(int(t)) + ")"
}

// ParseType finds the type a configuration word stands for. Lists have no word.
func ParseType(word string) (Type, bool) {
	for i, name := range typeNames {
		if name == word && Type(i) != Invalid {
			return Type(i), true
		}
	}
	return Invalid, false
}

// Value is one typed value: a field of a local state, a variable, or a datum of
// a signal. It is a plain value; copying it never shares memory that can change.
// The zero Value has type Invalid and stands for "no value". Values compare by ==:
// two are equal if their types and contents are, where 0 and -0 are different.
type Value struct {
	typ  Type
	bits uint64 // of a list the number of elements
	text string // of a list the elements, packed
}

// BoolValue makes a Value of type Bool.
func BoolValue(b bool) Value {
	if b {
		return Value{typ: Bool, bits: 1}
	}
	return Value{typ: Bool}
}

// IntValue makes a Value of type Int.
func IntValue(i int64) Value { return Value{typ: Int, bits: uint64(i)} }

// FloatValue makes a Value of type Float, or Invalid from a NaN.
func FloatValue(f float64) Value {
	if math.IsNaN(f) {
		return Value{}
	}
	return Value{typ: Float, bits: math.Float64bits(f)}
}

// DurationValue makes a Value of type Duration.
func DurationValue(d time.Duration) Value { return Value{typ: Duration, bits: uint64(d)} }

// StringValue makes a Value of type String.
func StringValue(s string) Value { return Value{typ: String, text: s} }

// EnumValue makes a Value of type Enum. Whether the word is in the declared
// list is checked against the field by [Field.Accepts].
func EnumValue(s string) Value { return Value{typ: Enum, text: s} }

// Type is the type of the value, Invalid for the zero Value.
func (v Value) Type() Type { return v.typ }

// Bool is the value of a Bool, false for every other type.
func (v Value) Bool() bool { return v.typ == Bool && v.bits != 0 }

// Int is the value of an Int or the nanoseconds of a Duration, 0 for others.
func (v Value) Int() int64 {
	if v.typ == Int || v.typ == Duration {
		return int64(v.bits)
	}
	return 0
}

// Float is the value of a Float, or of an Int or Duration as a float; 0 for
// others.
func (v Value) Float() float64 {
	switch v.typ {
	case Float:
		return math.Float64frombits(v.bits)
	case Int, Duration:
		return float64(int64(v.bits))
	default:
		return 0
	}
}

// Duration is the value of a Duration, 0 for every other type.
func (v Value) Duration() time.Duration {
	if v.typ == Duration {
		return time.Duration(v.bits)
	}
	return 0
}

// Text is the value of a String or Enum, "" for every other type.
func (v Value) Text() string {
	if v.typ.IsList() {
		return ""
	}
	return v.text
}

// Any returns the value as the Go type of the same meaning: bool, int64,
// float64, string (also for an Enum), time.Duration, a slice of these for a list;
// nil for Invalid.
func (v Value) Any() any {
	if v.typ.IsList() {
		return v.anyList()
	}
	switch v.typ {
	case Bool:
		return v.Bool()
	case Int:
		return v.Int()
	case Float:
		return v.Float()
	case Duration:
		return v.Duration()
	case String, Enum:
		return v.text
	default:
		return nil
	}
}

// String gives the value as a person would write it; "none" for Invalid.
func (v Value) String() string {
	if v.typ.IsList() {
		return v.listString()
	}
	switch v.typ {
	case Bool:
		return strconv.FormatBool(v.Bool())
	case Int:
		return strconv.FormatInt(v.Int(), 10)
	case Float:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	case Duration:
		return v.Duration().String()
	case String:
		return strconv.Quote(v.text)
	case Enum:
		return v.text
	default:
		return "none"
	}
}
