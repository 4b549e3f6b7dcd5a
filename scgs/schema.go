package scgs

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The limits of a schema and of the values in a report. What exceeds them is
// refused, never truncated.
const (
	MaxFields    = 64  // fields of a schema, words of an enum
	MaxNameBytes = 64  // bytes of a field's name or an enum's word
	MaxTextBytes = 256 // bytes of a string value
)

// Field declares one field of a local state.
type Field struct {
	Name  string   // unique in the schema, at most [MaxNameBytes]
	Type  Type     // of its values
	Words []string // the words of an Enum or a list of them, in declared order; else empty
	// Default is what a state has that says nothing of the field; Invalid: such a
	// state is refused.
	Default Value `json:",omitzero"`
	// Redact keeps the values of the field out of everything that people read and
	// files keep: [Redacted] stands there instead. Expressions read the values.
	Redact bool `json:",omitempty"`
}

// Redacted is shown in place of a value of a field with Redact.
const Redacted = "(redacted)"

// Show gives a value of the field for people: [Redacted] if the field has Redact,
// else as [Value.String] does. Every text with a value of a field is made by it.
func (f Field) Show(v Value) string {
	if f.Redact {
		return Redacted
	}
	return v.String()
}

// Redacts reports whether some field of the schema has Redact.
func (s Schema) Redacts() bool {
	return slices.ContainsFunc(s, func(f Field) bool { return f.Redact })
}

// Hidden is a row without the values of the fields with Redact: the row itself if
// there are none, else a copy.
func (s Schema) Hidden(row []Value) []Value {
	if len(row) != len(s) || !s.Redacts() {
		return row
	}
	row = slices.Clone(row)
	for i := range row {
		if s[i].Redact {
			row[i] = Value{}
		}
	}
	return row
}

// Element is the field that has an element of this one, which is a list, as its
// value.
func (f Field) Element() Field {
	return Field{Name: f.Name, Type: f.Type.Elem(), Words: f.Words, Redact: f.Redact}
}

// Accepts reports whether v is a value of this field: of its type, an enum's
// word out of its list, a text within [MaxTextBytes], a list within
// [MaxElements].
func (f Field) Accepts(v Value) bool {
	if v.typ != f.Type || v.typ == Invalid {
		return false
	}
	if f.Type.IsList() {
		return f.acceptsList(v)
	}
	switch f.Type {
	case Enum:
		return slices.Contains(f.Words, v.text)
	case String:
		return len(v.text) <= MaxTextBytes
	default:
		return true
	}
}

func (f Field) acceptsList(v Value) bool {
	elem, texts := f.Element(), 0
	for i := range min(v.Len(), MaxElements) {
		e := v.At(i)
		if !elem.Accepts(e) {
			return false
		}
		texts += len(e.text)
	}
	return v.Len() <= MaxElements && (elem.Type != String || texts <= MaxTextBytes)
}

// Parse reads a value of the field, which is no list, as people write it: true, 7,
// -0.5, +Inf, 1.5s, and texts without quotes.
func (f Field) Parse(text string) (Value, error) {
	var v Value
	var err error
	switch f.Type {
	case Bool:
		var b bool
		b, err = strconv.ParseBool(text)
		v = BoolValue(b)
	case Int:
		var i int64
		i, err = strconv.ParseInt(text, 10, 64)
		v = IntValue(i)
	case Float:
		var x float64
		x, err = strconv.ParseFloat(text, 64)
		v = FloatValue(x)
	case Duration:
		var d time.Duration
		d, err = time.ParseDuration(text)
		v = DurationValue(d)
	case String:
		v = StringValue(text)
	case Enum:
		v = EnumValue(text)
	default:
	}
	if err != nil || !f.Accepts(v) {
		return Value{}, fmt.Errorf("%q is no value of %s", text, f)
	}
	return v, nil
}

// Carries reports whether a program's field of type t can have this field's
// values: it is of the same type, or of strings where this one is of an enum's
// words.
func (f Field) Carries(t Type) bool {
	return t == f.Type || f.Type.Elem() == Enum && t.Elem() == String && t.IsList() == f.Type.IsList()
}

// String gives the field as configuration files write it, without its default.
func (f Field) String() string {
	typ := f.Type.Elem().String()
	if f.Type.Elem() == Enum {
		typ = "{enum: [" + strings.Join(f.Words, ", ") + "]}"
	}
	if f.Type.IsList() {
		typ = "{list: " + typ + "}"
	}
	return f.Name + ": " + typ
}

// Schema is the declared form of a local state: its fields in order. The fields
// of a schema do not change after it is in use.
type Schema []Field

// filled begins the names of the fields that a member fills, not the program.
const filled = "work."

// reserved are the names that every member has beside its declared fields.
var reserved = []string{"name", "host", "online"}

// Validate checks names, types, enum words and limits, and names the first
// field that is wrong.
func (s Schema) Validate() error {
	if len(s) > MaxFields {
		return fmt.Errorf("state: %d fields declared, at most %d are allowed", len(s), MaxFields)
	}
	for i, f := range s {
		if err := f.validate(); err != nil {
			return err
		}
		if j := s.Index(f.Name); j != i {
			return fmt.Errorf("state: field %q is declared twice", f.Name)
		}
	}
	return nil
}

func (f Field) validate() error {
	switch {
	case !identifier(strings.TrimPrefix(f.Name, filled)) || len(f.Name) > MaxNameBytes:
		return fmt.Errorf("state: field %q: a name is a letter or _, then letters, digits or _, at most %d bytes", f.Name, MaxNameBytes)
	case slices.Contains(reserved, f.Name):
		return fmt.Errorf("state: field %q is reserved: every member has %s of its own", f.Name, strings.Join(reserved, ", "))
	case ListOf(f.Type.Elem()) == Invalid:
		return fmt.Errorf("state: field %q has no type: use bool, int, float, string, duration, {enum: [...]} or {list: TYPE}", f.Name)
	case f.Type.Elem() == Enum && (len(f.Words) == 0 || len(f.Words) > MaxFields):
		return fmt.Errorf("state: field %q: an enum has 1 to %d words, this one has %d", f.Name, MaxFields, len(f.Words))
	case f.Type.Elem() != Enum && len(f.Words) > 0:
		return fmt.Errorf("state: field %q of type %s has enum words", f.Name, f.Type)
	}
	for i, w := range f.Words {
		if w == "" || len(w) > MaxNameBytes {
			return fmt.Errorf("state: field %q: enum word %q must have 1 to %d bytes", f.Name, w, MaxNameBytes)
		}
		if slices.Index(f.Words, w) != i {
			return fmt.Errorf("state: field %q: enum word %q is given twice", f.Name, w)
		}
	}
	if f.Default.typ != Invalid && (!f.Accepts(f.Default) || !f.Default.finite()) {
		return fmt.Errorf("state: field %q: its default %v is no value of %s", f.Name, f.Default, f)
	}
	return nil
}

// finite reports whether no number of the value is infinite: states have none.
func (v Value) finite() bool {
	for i := range v.Len() {
		if !v.At(i).finite() {
			return false
		}
	}
	return !math.IsInf(v.Float(), 0)
}

func identifier(name string) bool {
	if name == "" || len(name) > MaxNameBytes {
		return false
	}
	for i, r := range []byte(name) {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return true
}

// Index returns the position of the field of that name, or -1.
func (s Schema) Index(name string) int {
	return slices.IndexFunc(s, func(f Field) bool { return f.Name == name })
}

// Accepts reports which value of a row does not fit its field. A row fits if it
// has one accepted value for each field; an Invalid value stands for a field
// that has none yet.
func (s Schema) Accepts(row []Value) error {
	if len(row) != len(s) {
		return fmt.Errorf("state: %d values for %d fields", len(row), len(s))
	}
	for i := range row {
		v, f := &row[i], &s[i]
		plain := f.Type >= Bool && f.Type <= Float || f.Type == Duration
		if v.typ != Invalid && (v.typ != f.Type || !plain) && !f.Accepts(*v) {
			return fmt.Errorf("state: field %q (%s) does not take %s %s", f.Name, f, v.typ, f.Show(*v))
		}
	}
	return nil
}

// Hash identifies the schema: equal schemas have equal hashes, and a report
// names by it the schema it was encoded with.
func (s Schema) Hash() uint64 {
	h := fnv.New64a()
	for _, f := range s {
		_, _ = fmt.Fprintf(h, "%q %d %q\n", f.Name, f.Type, f.Words)
		if f.Default.typ != Invalid {
			_, _ = fmt.Fprintf(h, "default %q\n", f.Default.String())
		}
		if f.Redact {
			_, _ = fmt.Fprint(h, "redact\n")
		}
	}
	return h.Sum64()
}
