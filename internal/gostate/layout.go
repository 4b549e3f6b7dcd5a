// Package gostate answers how a Go struct is read as a row of a local state. A struct
// type becomes a layout: which exported fields it has, of which types, and where they
// lie. Bound to a declared state it is an [Encoder], which reads values of the type where
// they lie: as words where the declared state is plain (see [agentcore.Plain]), or as a
// row. An [Encoding] remembers the last one of an owner of states.
//
// Nothing here locks: an Encoding and its Encoders belong to one owner, under its lock.
// The errors are those that users of package agent see, and begin with its name.
package gostate

import (
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/scgs"
)

// StateError says that a struct cannot be a state, or differs from the declared state. Users
// find it as agent.StateError.
type StateError struct {
	Type   reflect.Type // of the state; nil if that was nil
	Field  string       // at fault, of the struct, or as declared where the struct has none; empty: the type itself
	Reason string       // the fault and what to do
}

// Error is the reason.
func (e *StateError) Error() string { return "agent: " + e.Reason }

// faults are the faults of a state.
type faults []*StateError

func (f *faults) add(t reflect.Type, field, format string, args ...any) {
	*f = append(*f, &StateError{Type: t, Field: field, Reason: fmt.Sprintf(format, args...)})
}

// err is the first fault with the reasons of all, nil if there is none.
func (f faults) err() error {
	if len(f) == 0 {
		return nil
	}
	var reasons []string
	for _, e := range f {
		reasons = append(reasons, e.Reason)
	}
	return &StateError{Type: f[0].Type, Field: f[0].Field, Reason: atMost(reasons, "; ")}
}

// layout is how a struct type is read as a local state.
type layout struct {
	typ    reflect.Type
	fields []layoutField
}

type layoutField struct {
	column

	field scgs.Field // a string's type is String, also if it will carry an enum; so for lists of them
}

var durationType = reflect.TypeFor[time.Duration]()

// SchemaOf is the fields of a state in the order of the struct, or a [*StateError] if that
// is none.
func SchemaOf(state any) (scgs.Schema, error) {
	l, err := layoutFor(state)
	if err != nil {
		return nil, err
	}
	return l.schema(), nil
}

// Match reports with a [*StateError] that a state has not all declared fields and no other;
// it may lack those that have a default, or that a provider fills.
func Match(state any, declared scgs.Schema, providers []Provider) error {
	l, err := layoutFor(state)
	if err == nil {
		_, err = l.match(declared, providers)
	}
	return err
}

// Fill replaces the fields of a row of the declared state that a state has, which may be a
// part of them. After an error the row is of no state.
func Fill(declared scgs.Schema, row []scgs.Value, state any) error {
	l, err := layoutFor(state)
	if err != nil {
		return err
	}
	e, faults := l.part(declared)
	if err := faults.err(); err != nil {
		return err
	}
	_, at := given(&state)
	return e.fill(row, at)
}

// Defaults is a row of the declared state in which every field has its default; a field without
// a default is Invalid.
func Defaults(declared scgs.Schema) []scgs.Value {
	row := make([]scgs.Value, len(declared))
	for i, f := range declared {
		row[i] = f.Default
	}
	return row
}

// layoutFor is the layout of a state.
func layoutFor(state any) (*layout, error) { return layoutOf(reflect.TypeOf(state)) }

// layoutOf reads the exported fields of a struct type.
func layoutOf(t reflect.Type) (*layout, error) {
	if t == nil || t.Kind() != reflect.Struct {
		return nil, NoStruct(t)
	}
	var wrong faults
	l := &layout{typ: t}
	var schema scgs.Schema
	for f := range t.Fields() {
		tag, tagged := f.Tag.Lookup("pegasus")
		if tag == "-" {
			continue
		}
		if f.Anonymous {
			wrong.add(t, f.Name, "%v embeds %v, whose fields are not looked at: write them out, or leave it out with the tag `pegasus:\"-\"`", t, f.Type)
			continue
		}
		if !f.IsExported() {
			continue
		}
		name := tag
		if !tagged {
			name = lowerFirst(f.Name)
		}
		typ := typeOf(f.Type)
		if typ == scgs.Invalid {
			wrong.add(t, f.Name, "field %s of %v has type %v, which no state field has: use bool, an integer, a float, string, time.Duration or a slice of these, or leave the field out with the tag `pegasus:\"-\"`", f.Name, t, f.Type)
			continue
		}
		if strings.HasPrefix(name, Filled) {
			wrong.add(t, f.Name, "field %s of %v has the name %q, and the package work fills such fields: leave it out with the tag `pegasus:\"-\"`, or give it another name", f.Name, t, name)
			continue
		}
		field := scgs.Field{Name: name, Type: typ}
		l.fields = append(l.fields, layoutField{columnOf(&f), field})
		schema = append(schema, field)
	}
	if err := schema.Validate(); err != nil {
		wrong.add(t, "", "%v: %v", t, err)
	}
	return l, wrong.err()
}

// NoStruct is the [*StateError] of a type that is none of a struct.
func NoStruct(t reflect.Type) error {
	var wrong faults
	switch {
	case t == nil:
		wrong.add(t, "", "a state is a struct, not nil: pass the struct itself")
	case t.Kind() == reflect.Interface:
		wrong.add(t, "", "a state is a struct, and %v is an interface: name the type of the struct", t)
	default:
		wrong.add(t, "", "a state is a struct, not %v: pass the struct itself, not a pointer to it", t)
	}
	return wrong.err()
}

// schema is the fields in the order of the struct.
func (l *layout) schema() scgs.Schema {
	var s scgs.Schema
	for _, f := range l.fields {
		s = append(s, f.field)
	}
	return s
}

func typeOf(t reflect.Type) scgs.Type {
	if t.Kind() == reflect.Slice {
		return scgs.ListOf(typeOf(t.Elem()))
	}
	if t == durationType {
		return scgs.Duration
	}
	switch t.Kind() {
	case reflect.Bool:
		return scgs.Bool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return scgs.Int
	case reflect.Float32, reflect.Float64:
		return scgs.Float
	case reflect.String:
		return scgs.String
	default:
		return scgs.Invalid
	}
}

func lowerFirst(name string) string {
	r, size := utf8.DecodeRuneInString(name)
	return string(unicode.ToLower(r)) + name[size:]
}

// Encoder turns values of a struct type into rows of a declared state.
type Encoder struct {
	typ      reflect.Type
	is       uintptr // the same, as given tells it
	declared scgs.Schema
	columns  []column     // in the declared order; without a name where the struct has none
	row      []scgs.Value // of the last state, and the defaults of the fields that the struct lacks
	next     []scgs.Value // of the state being read, likewise
	elements []scgs.Value // of the current list
	plain    bool         // a state is usually but words
	words    []uint64     // of the last state that was, and defaults
	// providers fill fields that the struct has not, by their places; nil: nobody does.
	providers []Provider
}

// part binds a layout to the declared state, of which it may have a part: the same names
// with the same types.
func (l *layout) part(declared scgs.Schema) (e *Encoder, wrong faults) {
	e = &Encoder{typ: l.typ, declared: declared, columns: make([]column, len(declared))}
	for _, f := range l.fields {
		if i := f.declaredIn(declared, l.typ, &wrong); i >= 0 {
			e.columns[i] = f.column
		}
	}
	return e, wrong
}

// match binds a layout to the declared state, of which it has all but for fields that
// have a default, or that a provider fills.
func (l *layout) match(declared scgs.Schema, providers []Provider) (*Encoder, error) {
	e, wrong := l.part(declared)
	for i, c := range e.columns {
		if c.goName != "" {
			continue
		}
		if by := providerOf(declared[i], providers); by != nil {
			if e.providers == nil {
				e.providers = make([]Provider, len(declared))
			}
			e.providers[i] = by
		} else if declared[i].Default.Type() == scgs.Invalid {
			l.lacks(declared[i].Name, &wrong)
		}
	}
	if err := wrong.err(); err != nil {
		return nil, err
	}
	e.row, e.next = Defaults(declared), Defaults(declared)
	e.plain = agentcore.Plain(declared)
	e.words = make([]uint64, len(declared))
	for i, c := range e.columns {
		if c.goName == "" && e.plain {
			e.words[i], e.plain = agentcore.Word(&declared[i], declared[i].Default)
			e.plain = e.plain && (e.providers == nil || e.providers[i] == nil)
		}
	}
	return e, nil
}

// lacks adds the fault that the struct has not a declared field, unless that has one
// already.
func (l *layout) lacks(name string, wrong *faults) {
	add := "add it, give it one with"
	for f := range l.typ.Fields() {
		tag, tagged := f.Tag.Lookup("pegasus")
		switch {
		case tagged && tag != name || !tagged && lowerFirst(f.Name) != name:
		case f.IsExported(): // It is there, but of another type.
			return
		default:
			add = fmt.Sprintf("its field %s is not exported, so write it with a capital letter, give it a default with", f.Name)
		}
	}
	wrong.add(l.typ, name, "%v has no field %q, which the configuration declares without a default: %s {type: T, default: V}, or take it out of the declaration", l.typ, name, add)
}

// declaredIn finds the declared field that a field of a struct is; below 0, and a fault, if
// there is none.
func (f *layoutField) declaredIn(declared scgs.Schema, typ reflect.Type, wrong *faults) int {
	i := declared.Index(f.field.Name)
	if i < 0 {
		wrong.add(typ, f.goName, "field %s of %v: the configuration declares no field %q, but %s: declare it, or leave it out with the tag `pegasus:\"-\"`", f.goName, typ, f.field.Name, fieldNames(declared))
	} else if d := declared[i]; !d.Carries(f.field.Type) {
		wrong.add(typ, f.goName, "field %s of %v: the configuration declares %s, the program has %s: make them the same", f.goName, typ, d, f.field.Type)
		i = -1
	}
	return i
}

func fieldNames(s scgs.Schema) string {
	var names []string
	for _, f := range s {
		names = append(names, f.Name)
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, ", ")
}
