package config

import (
	"cmp"
	"fmt"

	"github.com/gopegasus/pegasus/internal/yamlconf"
	"github.com/gopegasus/pegasus/scgs"
)

// Fields declares the fields of a state in the order of the file.
type Fields scgs.Schema

// UnmarshalNode takes a map of field names to a type, or to {type: T, default: V}.
func (f *Fields) UnmarshalNode(n yamlconf.Node) error {
	if n.Kind() != yamlconf.KindMap {
		return n.Fault("the fields of a state are a map, such as {load: float, phase: {enum: [idle, busy]}}")
	}
	var broken error // A fault of one field is no fault of the others.
	for _, item := range n.Items() {
		name, _ := item.Key()
		if name == "prev" {
			broken = item.Fault("the field name prev is reserved: .prev is the member in the global state before")
			continue
		}
		field, value, err := decodeField(name, item, "default")
		if err != nil {
			broken = err
			continue
		}
		if value != nil {
			if field.Default, err = decodeDefault(field, *value); err != nil {
				field.Default, broken = scgs.Value{}, err
			}
		}
		*f = append(*f, field)
	}
	if broken != nil {
		return broken
	}
	if err := scgs.Schema(*f).Validate(); err != nil {
		return n.Fault("%v", err)
	}
	return nil
}

// Variable is a variable of the synchronizer's memory.
type Variable struct {
	Field   scgs.Field // its name and type
	Initial *string    // as the file writes it; nil: unknown until it is set
}

// InitialValue is the value before the first set, Invalid if it has none.
func (v Variable) InitialValue() scgs.Value {
	if v.Initial == nil {
		return scgs.Value{}
	}
	value, err := ParseValue(v.Field, *v.Initial)
	if err != nil {
		panic("config: a plan with a bad initial value: " + err.Error())
	}
	return value
}

// Variables declares the memory in the order of the file.
type Variables []Variable

// UnmarshalNode takes a map of names to a type, or to {type: T, initial: V}.
func (v *Variables) UnmarshalNode(n yamlconf.Node) error {
	if n.Kind() != yamlconf.KindMap {
		return n.Fault("memory is a map of variables, such as {best: {type: float, initial: +inf}}")
	}
	var broken error
	for _, item := range n.Items() {
		name, _ := item.Key()
		variable, err := decodeVariable(name, item)
		broken = cmp.Or(err, broken)
		if variable.Field.Type != scgs.Invalid {
			*v = append(*v, variable)
		}
	}
	if broken != nil {
		return broken
	}
	if err := v.Schema().Validate(); err != nil {
		return n.Fault("%v", err)
	}
	return nil
}

// Schema is the memory as a schema.
func (v Variables) Schema() scgs.Schema {
	s := make(scgs.Schema, len(v))
	for i := range v {
		s[i] = v[i].Field
	}
	return s
}

// decodeField reads a type: a word, {enum: [...]} or {list: T}; or {type: T} with
// one of these as T, in which a value may stand under another key, and redact.
func decodeField(name string, n yamlconf.Node, valueKey string) (scgs.Field, *yamlconf.Node, error) {
	field := scgs.Field{Name: name}
	of, ok := n.Get("type")
	if n.Kind() != yamlconf.KindMap || !ok {
		return field, nil, decodeType(&field, n)
	}
	for _, item := range n.Items() {
		switch key, _ := item.Key(); key {
		case "type", valueKey:
		case "redact":
			if err := item.Decode(&field.Redact); err != nil {
				return field, nil, err
			}
		default:
			return field, nil, item.Fault("unknown key %q: beside type stand %s and redact", key, valueKey)
		}
	}
	if err := decodeType(&field, of); err != nil {
		return field, nil, err
	}
	if value, ok := n.Get(valueKey); ok {
		return field, &value, nil
	}
	return field, nil, nil
}

// decodeType reads a word, {enum: [...]}, or {list: T} with one of these as T.
func decodeType(f *scgs.Field, n yamlconf.Node) error {
	if n.Kind() != yamlconf.KindMap {
		t, ok := scgs.ParseType(n.Text())
		if !ok || t == scgs.Enum {
			return n.Fault("%q is no type: use bool, int, float, string, duration, {enum: [a, b]} or {list: TYPE}", n.Text())
		}
		f.Type = t
		return nil
	}
	words, isEnum := n.Get("enum")
	elem, isList := n.Get("list")
	switch {
	case len(n.Items()) != 1 || !isEnum && !isList:
		return n.Fault("a type is a word, such as float, {enum: [a, b]} or {list: TYPE}")
	case isEnum:
		f.Type = scgs.Enum
		return words.Decode(&f.Words)
	}
	if err := decodeType(f, elem); err != nil {
		return err
	}
	if f.Type.IsList() {
		return elem.Fault("a list of lists is not possible: its elements are bool, int, float, string, duration or {enum: [a, b]}")
	}
	f.Type = scgs.ListOf(f.Type)
	return nil
}

// decodeDefault reads the value of a field that a state does not give.
func decodeDefault(f scgs.Field, n yamlconf.Node) (scgs.Value, error) {
	value, err := decodeValue(f, n)
	if err != nil {
		return value, err
	}
	f.Default = value
	if err := (scgs.Schema{f}).Validate(); err != nil {
		return value, n.Fault("%v", err)
	}
	return value, nil
}

// decodeValue reads a value of a field, a list as [a, b].
func decodeValue(f scgs.Field, n yamlconf.Node) (scgs.Value, error) {
	switch {
	case f.Type.IsList() && n.Kind() == yamlconf.KindList:
		elements := make([]scgs.Value, 0, len(n.Items()))
		for _, item := range n.Items() {
			value, err := decodeValue(f.Element(), item)
			if err != nil {
				return value, err
			}
			elements = append(elements, value)
		}
		return scgs.ListValue(f.Type.Elem(), elements...), nil
	case f.Type.IsList():
		return scgs.Value{}, n.Fault("a value of %s is a list, such as [] or [a, b]", f)
	case n.Kind() == yamlconf.KindList || n.Kind() == yamlconf.KindMap || n.Kind() == yamlconf.KindNull:
		return scgs.Value{}, n.Fault("%s is no value of %s", n.Kind(), f)
	}
	value, err := ParseValue(f, valueText(f, n))
	if err != nil {
		return value, n.Fault("%v", err)
	}
	return value, nil
}

// valueText is how a value is written, or the parameter which stands for it: a text stands for
// itself.
func valueText(f scgs.Field, n yamlconf.Node) string {
	if f.Type == scgs.String || f.Type == scgs.Enum {
		return n.Text()
	}
	return n.Named()
}

// decodeVariable reads a type, or {type: T, initial: V}.
func decodeVariable(name string, n yamlconf.Node) (Variable, error) {
	field, value, err := decodeField(name, n, "initial")
	switch {
	case err != nil:
		return Variable{}, err
	case field.Type.IsList():
		return Variable{}, n.Fault("memory holds single values: %s is a list, which only a state has", field)
	case value == nil:
		return Variable{field, nil}, nil
	}
	if _, err := decodeValue(field, *value); err != nil {
		return Variable{field, nil}, err
	}
	text := valueText(field, *value)
	return Variable{field, &text}, nil
}

// ParseValue reads a single value of a field as a configuration file writes it.
func ParseValue(f scgs.Field, text string) (scgs.Value, error) {
	if f.Type != scgs.Float {
		return f.Parse(text)
	}
	x, err := yamlconf.ParseFloat(text)
	v := scgs.FloatValue(x)
	if err != nil || !f.Accepts(v) {
		return scgs.Value{}, fmt.Errorf("%q is no value of %s", text, f)
	}
	return v, nil
}
