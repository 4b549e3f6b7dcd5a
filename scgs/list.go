package scgs

import (
	"encoding/binary"
	"strings"
	"time"
)

// MaxElements bounds the elements of a list. The texts of a list of strings
// have together at most [MaxTextBytes]: so a row of [MaxFields] lists still fits
// a message.
const MaxElements = 64

// listBit turns a type into the type of its lists; it is part of the formats that types are
// written in.
const listBit = 1 << 7

// ListOf is the type of the lists of a type. It is Invalid for Invalid, for a list and for an
// unknown type.
func ListOf(elem Type) Type {
	if elem == Invalid || int(elem) >= len(typeNames) {
		return Invalid
	}
	return elem | listBit
}

// IsList reports whether values of the type are lists.
func (t Type) IsList() bool { return t&listBit != 0 }

// Elem is the type of a list's elements, and the type itself of others.
func (t Type) Elem() Type { return t &^ listBit }

// ListValue makes a list of values that all have the same type, else it is Invalid;
// [Field.Accepts] checks the number of values.
//
// A list is packed into one text, so that lists compare by == as other values do
// and share no memory with the program: numbers and booleans have 8 bytes each;
// texts stand one after another behind the 4 bytes each for where they end.
func ListValue(elem Type, values ...Value) Value {
	list := Value{typ: ListOf(elem), bits: uint64(len(values))}
	size := 8 * len(values)
	for i := range values {
		if values[i].typ != elem || list.typ == Invalid {
			return Value{}
		}
		size += len(values[i].text)
	}
	var b strings.Builder
	b.Grow(size)
	var word [8]byte
	if elem != String && elem != Enum {
		for i := range values {
			binary.LittleEndian.PutUint64(word[:], values[i].bits)
			_, _ = b.Write(word[:])
		}
		list.text = b.String()
		return list
	}
	end := 0
	for i := range values {
		end += len(values[i].text)
		binary.LittleEndian.PutUint32(word[:], uint32(end))
		_, _ = b.Write(word[:4])
	}
	for i := range values {
		_, _ = b.WriteString(values[i].text)
	}
	list.text = b.String()
	return list
}

// Len is the number of elements of a list, 0 for every other type.
func (v Value) Len() int {
	if v.typ.IsList() {
		return int(v.bits)
	}
	return 0
}

// At is the element i of a list, counted from 0; Invalid where there is none.
func (v Value) At(i int) Value {
	n := v.Len()
	if i < 0 || i >= n {
		return Value{}
	}
	elem := v.typ.Elem()
	if elem != String && elem != Enum {
		s := v.text[8*i : 8*i+8]
		return Value{typ: elem, bits: uint64(load32(s)) | uint64(load32(s[4:]))<<32}
	}
	from := 0
	if i > 0 {
		from = int(load32(v.text[4*i-4:]))
	}
	return Value{typ: elem, text: v.text[4*n+from : 4*n+int(load32(v.text[4*i:]))]}
}

func load32(s string) uint32 {
	_ = s[3]
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

// anyList is a list as a slice of the Go type that its elements have.
func (v Value) anyList() any {
	switch v.typ.Elem() {
	case Bool:
		return slice(v, Value.Bool)
	case Int:
		return slice(v, Value.Int)
	case Float:
		return slice(v, Value.Float)
	case Duration:
		return slice(v, Value.Duration)
	default:
		return slice(v, Value.Text)
	}
}

func slice[T bool | int64 | float64 | time.Duration | string](v Value, get func(Value) T) []T {
	list := make([]T, v.Len())
	for i := range list {
		list[i] = get(v.At(i))
	}
	return list
}

func (v Value) listString() string {
	elements := make([]string, v.Len())
	for i := range elements {
		elements[i] = v.At(i).String()
	}
	return "[" + strings.Join(elements, ", ") + "]"
}
