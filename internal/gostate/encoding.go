package gostate

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/gopegasus/pegasus/scgs"
)

// Encoding turns the states of an owner into rows; it remembers the last type and declaration.
// It is guarded by the lock of the owner.
type Encoding struct {
	// Providers fill fields that the program does not; the first that fills a field counts.
	Providers []Provider

	last *Encoder // of the last state; nil: there was none
}

// Type is the type of the last state; nil if there was none.
func (e *Encoding) Type() reflect.Type {
	if e.last == nil {
		return nil
	}
	return e.last.typ
}

// Of is the encoder of a state for the declared schema, and where the state lies.
func (e *Encoding) Of(state any, declared scgs.Schema) (*Encoder, unsafe.Pointer, error) {
	is, at := given(&state)
	if b := e.last; b != nil && b.is == is && b.IsFor(declared) {
		return b, at, nil
	}
	b, err := e.Bind(state, declared)
	return b, at, err
}

// Bind makes an encoder of states of the same type as this one.
func (e *Encoding) Bind(state any, declared scgs.Schema) (*Encoder, error) {
	l, err := layoutFor(state)
	if err != nil {
		return nil, err
	}
	b, err := l.match(declared, e.Providers)
	if err != nil {
		return nil, err
	}
	b.is, _ = given(&state)
	return b, nil
}

// Words reads a state that lies at an address, and is of the encoder's type, as words, one
// for each declared field. It reports false where it cannot be told as words, and Row has
// to look at it. The words are valid until the next call.
func (e *Encoding) Words(b *Encoder, at unsafe.Pointer) ([]uint64, bool) {
	if !b.read(at) {
		return nil, false
	}
	if e.last != b {
		e.last = b
	}
	return b.words, true
}

// Row reads a state that lies at an address, and is of the encoder's type, as a row. It is the
// last state only once [Encoding.Took] says so: until then the one before it is, which
// continues where this one is refused, here or by the receiver. The row is valid until the next
// call.
func (e *Encoding) Row(b *Encoder, at unsafe.Pointer) ([]scgs.Value, error) {
	if err := b.fill(b.next, at); err != nil {
		return nil, err // The values are of no state.
	}
	b.provide(b.next)
	return b.next, nil
}

// Took makes the state that Row has read the last one, unless the receiver has refused it with
// an error, which it returns.
func (e *Encoding) Took(b *Encoder, refused error) error {
	if refused == nil {
		b.row, b.next, e.last = b.next, b.row, b
	}
	return refused
}

// Refit makes of the last state's row, as it was declared before, a row of the state declared
// now. The fault is a [*StateError] if the type does not fit, and then told is the type's
// fields, with those that are provided.
func (e *Encoding) Refit(row []scgs.Value, before, declared scgs.Schema) (refit []scgs.Value, told scgs.Schema, err error) {
	l, err := layoutOf(e.last.typ)
	if err != nil {
		return nil, nil, err
	}
	b, err := l.match(declared, e.Providers)
	if err != nil {
		told = l.schema()
		for _, f := range declared {
			if providerOf(f, e.Providers) != nil && told.Index(f.Name) < 0 {
				told = append(told, f)
			}
		}
		return nil, told, err
	}
	for i := range declared {
		f, name := &declared[i], b.columns[i].goName
		if name == "" {
			continue
		}
		if at := before.Index(f.Name); at >= 0 {
			b.row[i] = worded(row[at], f.Type)
		}
		if !f.Accepts(b.row[i]) {
			return nil, nil, fmt.Errorf("agent: field %s of %v, which is %s, cannot be told: the configuration declares %v", name, l.typ, f.Show(b.row[i]), f)
		}
	}
	b.provide(b.row)
	b.is, e.last = e.last.is, b
	return b.row, nil, nil
}

// worded is a value, or its texts as the words of an enum or the other way round.
func worded(v scgs.Value, as scgs.Type) scgs.Value {
	text := scgs.StringValue
	if as.Elem() == scgs.Enum {
		text = scgs.EnumValue
	}
	switch {
	case v.Type() == as:
		return v
	case !as.IsList():
		return text(v.Text())
	}
	values := make([]scgs.Value, v.Len())
	for i := range values {
		values[i] = text(v.At(i).Text())
	}
	return scgs.ListValue(as.Elem(), values...)
}

// Again is the last row with the values provided now; false if there is none, or nothing in it
// has changed.
func (e *Encoding) Again(declared scgs.Schema) ([]scgs.Value, bool) {
	if e.last == nil || !e.last.IsFor(declared) {
		return nil, false
	}
	return e.last.row, e.last.provide(e.last.row)
}

// IsFor reports whether an encoder makes rows of that declared state.
func (e *Encoder) IsFor(declared scgs.Schema) bool { return SameSchema(e.declared, declared) }

// SameSchema compares by identity: a declaration is never changed in place.
func SameSchema(a, b scgs.Schema) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
