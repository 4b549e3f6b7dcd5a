package scgs

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
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
	typ, ok := ParseType(word)
	if isList {
		typ = ListOf(typ)
	}
	switch {
	case t.Type == "" && t.Value == nil: // null
		*v = Value{}
		return nil
	case !ok:
		return fmt.Errorf("value: %q is no type", t.Type)
	}
	var err error
	if *v, err = typ.ReadJSON(t.Value); err != nil {
		return fmt.Errorf("value: %w", err)
	}
	return nil
}

// ReadJSON reads a value of the type that stands as JSON without it: a duration in
// nanoseconds, an infinite float as a text. It refuses null, which is no value, and
// lists of more than [MaxElements].
func (t Type) ReadJSON(raw []byte) (v Value, err error) {
	switch t {
	case Bool:
		var b bool
		err = json.Unmarshal(raw, &b)
		v = BoolValue(b)
	case Int, Duration:
		var i int64
		i, err = strconv.ParseInt(string(raw), 10, 64)
		v = Value{typ: t, bits: uint64(i)}
	case Float:
		number := string(raw)
		if number == `"+Inf"` || number == `"-Inf"` {
			number = number[1:5]
		}
		var f float64
		f, err = strconv.ParseFloat(number, 64)
		v = FloatValue(f)
	case String, Enum:
		v.typ = t
		err = json.Unmarshal(raw, &v.text)
	default:
		return t.readList(raw)
	}
	if err != nil || v.typ == Invalid || isNull(raw) {
		return Value{}, fmt.Errorf("%.100s is no %s", raw, t)
	}
	return v, nil
}

func isNull(raw []byte) bool { return string(raw) == "null" }

func (t Type) readList(raw []byte) (Value, error) {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil || len(items) > MaxElements || isNull(raw) {
		return Value{}, fmt.Errorf("%.100s is no %s of at most %d elements", raw, t, MaxElements)
	}
	list := make([]Value, len(items))
	for i, item := range items {
		if isNull(item) {
			return Value{}, fmt.Errorf("an element is null: a %s has values only", t)
		}
		var err error
		if list[i], err = t.Elem().ReadJSON(item); err != nil {
			return Value{}, err
		}
	}
	return ListValue(t.Elem(), list...), nil
}
