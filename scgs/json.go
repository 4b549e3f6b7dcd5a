package scgs

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// typed is a value as JSON has it, beside its type: it reads back as the same
// value. A duration is in nanoseconds, an infinite float a text.
type typed[T any] struct {
	Type  string `json:"type"`
	Value T      `json:"value"`
}

// MarshalJSON writes the value with its type, as in {"type":"float","value":1.5};
// null for Invalid.
func (v Value) MarshalJSON() ([]byte, error) {
	if v.typ == Invalid {
		return []byte("null"), nil
	}
	return json.Marshal(typed[any]{v.typ.String(), v.bare()})
}

func (v Value) bare() any {
	switch {
	case v.typ.IsList():
		list := make([]any, v.Len())
		for i := range list {
			list[i] = v.At(i).bare()
		}
		return list
	case v.typ == Duration:
		return v.Int()
	case math.IsInf(v.Float(), 0):
		return v.String()
	}
	return v.Any()
}

// UnmarshalJSON reads what MarshalJSON writes.
func (v *Value) UnmarshalJSON(raw []byte) error {
	var t typed[json.RawMessage]
	if err := json.Unmarshal(raw, &t); err != nil {
		return fmt.Errorf("value: %w", err)
	}
	word, isList := strings.CutPrefix(t.Type, "list of ")
	elem, ok := ParseType(word)
	switch {
	case t.Type == "" && t.Value == nil: // null
		*v = Value{}
		return nil
	case !ok:
		return fmt.Errorf("value: %q is no type", t.Type)
	case !isList:
		one, err := readBare(elem, t.Value)
		*v = one
		return err
	}
	var items []json.RawMessage
	if err := json.Unmarshal(t.Value, &items); err != nil {
		return fmt.Errorf("value: %w", err)
	}
	list := make([]Value, len(items))
	for i, item := range items {
		var err error
		if list[i], err = readBare(elem, item); err != nil {
			return err
		}
	}
	*v = ListValue(elem, list...)
	return nil
}

// readBare reads a single value of a type.
func readBare(t Type, raw json.RawMessage) (v Value, err error) {
	switch t {
	case Bool:
		v, err = read(raw, BoolValue)
	case Int:
		v, err = read(raw, IntValue)
	case Duration:
		v, err = read(raw, func(ns int64) Value { return DurationValue(time.Duration(ns)) })
	case String:
		v, err = read(raw, StringValue)
	case Enum:
		v, err = read(raw, EnumValue)
	default:
		if len(raw) == 0 || raw[0] != '"' {
			v, err = read(raw, FloatValue)
			break
		}
		var text string
		if err = json.Unmarshal(raw, &text); err == nil {
			var f float64
			f, err = strconv.ParseFloat(text, 64)
			v = FloatValue(f)
		}
	}
	if err != nil || v.typ == Invalid {
		return Value{}, fmt.Errorf("value: %s is no %s", raw, t)
	}
	return v, nil
}

func read[T any](raw json.RawMessage, value func(T) Value) (Value, error) {
	var x *T
	if err := json.Unmarshal(raw, &x); err != nil || x == nil {
		return Value{}, err
	}
	return value(*x), nil
}
