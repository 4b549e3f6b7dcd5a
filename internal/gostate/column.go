package gostate

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"
	"unsafe"

	"github.com/gopegasus/pegasus/scgs"
)

// column is where a struct has the value of a field. It is read where it lies: to ask
// package reflect for each field of each state would cost more than all the rest of
// setting it but reading the clock.
type column struct {
	goName string
	offset uintptr
	list   bool         // it is a slice
	kind   reflect.Kind // its own, or its elements'
	size   uintptr      // of an element
	word   int          // of an enum: the place of the last word read
}

// columnOf is a field whose type [typeOf] knows.
func columnOf(f *reflect.StructField) column {
	c := column{goName: f.Name, offset: f.Offset, kind: f.Type.Kind()}
	if c.list = c.kind == reflect.Slice; c.list {
		c.kind, c.size = f.Type.Elem().Kind(), f.Type.Elem().Size()
	}
	return c
}

// given is where a state lies that is given as an interface, and which type it has: the address
// of its description, which no other type has while a reference to it exists. A struct that is
// nothing but a pointer lies in the interface itself, but none of its fields is read.
func given(state *any) (typ uintptr, at unsafe.Pointer) {
	words := (*[2]unsafe.Pointer)(unsafe.Pointer(state))
	return uintptr(words[0]), words[1]
}

// read puts a state that lies at an address, and is of the encoder's type, into words.
// It reports false where it cannot be told as words, and fill has to look at it.
func (e *Encoder) read(at unsafe.Pointer) bool {
	if !e.plain {
		return false
	}
	words := e.words[:len(e.columns)]
	for i := range e.columns {
		c := &e.columns[i]
		if c.goName == "" {
			continue
		}
		p, ok := unsafe.Add(at, c.offset), false
		switch c.kind {
		case reflect.String:
			ok = c.place(*(*string)(p), e.declared[i].Words)
			words[i] = uint64(c.word) //nolint:gosec // It is not below 0.
		case reflect.Float64, reflect.Float32:
			x := float(c.kind, p)
			words[i], ok = math.Float64bits(x), math.Abs(x) <= math.MaxFloat64 // Nor NaN.
		default:
			words[i], ok = integer(c.kind, p)
		}
		if !ok {
			return false
		}
	}
	return true
}

// place finds a word of an enum, which is often the one before. Where a text lies says
// nothing: that memory may have held another one.
func (c *column) place(text string, words []string) bool {
	if text == words[c.word] {
		return true
	}
	for i, w := range words {
		if text == w {
			c.word = i
			return true
		}
	}
	return false
}

// fill replaces the fields of a row that a state has, which lies at an address and is of
// the encoder's type.
func (e *Encoder) fill(row []scgs.Value, at unsafe.Pointer) (err error) {
	for i := range e.columns {
		c := &e.columns[i]
		if c.goName == "" {
			continue
		}
		if row[i], err = e.value(unsafe.Add(at, c.offset), c, &e.declared[i]); err != nil {
			return err
		}
	}
	return nil
}

// value reads one field of a state as one of a declared field.
func (e *Encoder) value(p unsafe.Pointer, c *column, declared *scgs.Field) (scgs.Value, error) {
	as, words := declared.Type, declared.Words
	var value scgs.Value
	if c.list {
		slice := (*[]byte)(p) // Of whatever: its length is the number of elements.
		if n := len(*slice); n > scgs.MaxElements {
			return value, fmt.Errorf("agent: field %s of %v has %d elements, at most %d can be reported", c.goName, e.typ, n, scgs.MaxElements)
		}
		value = e.list(unsafe.Pointer(unsafe.SliceData(*slice)), len(*slice), c, as.Elem())
	} else {
		value = scalar(p, c.kind, as)
	}
	why := ""
	switch {
	case as.Elem() == scgs.Enum:
		why = c.notAWord(value, words, declared.Redact)
	case value.Type() != scgs.Invalid:
	case as.Elem() == scgs.Float:
		why = "NaN is no number: leave the state as it was, or report a value that means unknown"
	default:
		why = "an integer has at most 63 bits and a sign"
	}
	if why != "" {
		return value, fmt.Errorf("agent: field %s of %v cannot be told: %s", c.goName, e.typ, why)
	}
	return value, nil
}

// notAWord says why the value of an enum, or a list of them, is none; "" if it is one.
// The text does not show the value of a field with Redact.
func (c *column) notAWord(value scgs.Value, words []string, redact bool) string {
	text, known := value.Text(), c.list || c.place(value.Text(), words)
	for i := 0; c.list && known && i < value.Len(); i++ {
		text = value.At(i).Text()
		known = c.place(text, words)
	}
	if known {
		return ""
	}
	shown := fmt.Sprintf("%.64q", text)
	if redact {
		shown = scgs.Redacted
	}
	return fmt.Sprintf("%s is not one of its words: use %s", shown, atMost(words, ", "))
}

// atMost joins texts, of which it shows so many as one can read.
func atMost(texts []string, separator string) string {
	const shown = 16
	if more := len(texts) - shown; more > 0 {
		return strings.Join(texts[:shown], separator) + separator + fmt.Sprintf("and %d more", more)
	}
	return strings.Join(texts, separator)
}

// list copies the elements of a slice. It is Invalid if one of them is.
func (e *Encoder) list(p unsafe.Pointer, n int, c *column, elem scgs.Type) scgs.Value {
	e.elements = e.elements[:0]
	for i := range n {
		e.elements = append(e.elements, scalar(unsafe.Add(p, uintptr(i)*c.size), c.kind, elem))
	}
	return scgs.ListValue(elem, e.elements...)
}

// scalar is Invalid for NaN and for unsigned integers that are too large.
func scalar(p unsafe.Pointer, kind reflect.Kind, as scgs.Type) scgs.Value {
	switch as {
	case scgs.String:
		return scgs.StringValue(*(*string)(p))
	case scgs.Enum:
		return scgs.EnumValue(*(*string)(p))
	case scgs.Float:
		return scgs.FloatValue(float(kind, p))
	default:
	}
	word, ok := integer(kind, p)
	n := int64(word) //nolint:gosec // Its bits.
	switch {
	case !ok:
		return scgs.Value{}
	case as == scgs.Bool:
		return scgs.BoolValue(n != 0)
	case as == scgs.Duration:
		return scgs.DurationValue(time.Duration(n))
	default:
		return scgs.IntValue(n)
	}
}

// float reads a number of any size.
func float(kind reflect.Kind, p unsafe.Pointer) float64 {
	if kind == reflect.Float32 {
		return float64(*(*float32)(p))
	}
	return *(*float64)(p)
}

// integer reads an integer of any size, or a boolean, as an int64. It reports false for values
// that are too large.
func integer(kind reflect.Kind, p unsafe.Pointer) (word uint64, ok bool) {
	var n int64
	switch kind {
	case reflect.Bool, reflect.Uint8:
		n = int64(*(*uint8)(p))
	case reflect.Int:
		n = int64(*(*int)(p))
	case reflect.Uint:
		n = int64(*(*uint)(p)) //nolint:gosec // Below 0 if it is too large.
	case reflect.Int8:
		n = int64(*(*int8)(p))
	case reflect.Int16:
		n = int64(*(*int16)(p))
	case reflect.Uint16:
		n = int64(*(*uint16)(p))
	case reflect.Int32:
		n = int64(*(*int32)(p))
	case reflect.Uint32:
		n = int64(*(*uint32)(p))
	default:
		n = *(*int64)(p)
	}
	return uint64(n), n >= 0 || kind < reflect.Uint //nolint:gosec // Its bits.
}
