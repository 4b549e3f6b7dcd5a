package journal

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"strconv"

	"github.com/gopegasus/pegasus/internal/synccore"
)

// Digest is a hash of the outputs of a machine, one step after another: FNV-1a
// over every field that is not zero, by its name. So a field that a later version
// adds changes no digest as long as it is not used. The zero Digest is ready.
type Digest struct {
	sum   uint64
	names map[reflect.Type][]string
}

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// Add takes in the output of the next step.
func (d *Digest) Add(out *synccore.Output) {
	if d.names == nil {
		d.sum, d.names = fnvOffset, map[reflect.Type][]string{}
	}
	d.fields(reflect.ValueOf(out).Elem())
	d.byte(';')
}

// Sum is the hash so far.
func (d *Digest) Sum() uint64 { return d.sum }

// appendHex appends the hash as 16 hexadecimal digits.
func (d *Digest) appendHex(buf []byte) []byte {
	for shift := 60; shift >= 0; shift -= 4 {
		buf = append(buf, "0123456789abcdef"[d.sum>>shift&15])
	}
	return buf
}

func parseDigest(text string) (uint64, error) {
	if len(text) != 16 {
		return 0, fmt.Errorf("%q is no digest of 16 hexadecimal digits", text)
	}
	sum, err := strconv.ParseUint(text, 16, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no digest of 16 hexadecimal digits", text)
	}
	return sum, nil
}

func (d *Digest) byte(b byte) { d.sum = (d.sum ^ uint64(b)) * fnvPrime }

func (d *Digest) number(n uint64) {
	for range 8 {
		d.byte(byte(n))
		n >>= 8
	}
}

func (d *Digest) text(s string) {
	d.number(uint64(len(s)))
	for i := range len(s) {
		d.byte(s[i])
	}
}

func (d *Digest) fields(v reflect.Value) {
	t := v.Type()
	names, ok := d.names[t]
	if !ok {
		for f := range t.Fields() {
			name := cmp.Or(f.Tag.Get("digest"), f.Name) // The name in older journals, if it was renamed.
			if name == "-" {
				name = ""
			}
			names = append(names, name)
		}
		d.names[t] = names
	}
	for i, name := range names {
		if f := v.Field(i); name != "" && !void(f) {
			d.text(name)
			d.value(f)
		}
	}
	d.byte('.')
}

// void reports whether there is nothing in a value; a slice that was truncated is
// as empty as none.
func void(v reflect.Value) bool {
	if v.Kind() == reflect.Slice {
		return v.Len() == 0
	}
	return v.IsZero()
}

func (d *Digest) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		d.byte(1)
		if !v.Bool() {
			d.byte(0)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		d.number(uint64(v.Int())) //nolint:gosec // Only the bits count.
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		d.number(v.Uint())
	case reflect.Float64:
		d.number(math.Float64bits(v.Float()))
	case reflect.String:
		d.text(v.String())
	case reflect.Slice, reflect.Array:
		d.number(uint64(v.Len())) //nolint:gosec // A length is not negative.
		for i := range v.Len() {
			d.value(v.Index(i))
		}
	case reflect.Struct:
		d.fields(v)
	case reflect.Pointer:
		if !v.IsNil() {
			d.value(v.Elem())
		}
	default:
		panic(fmt.Sprintf("journal: an output has a %s, whose digest is not defined", v.Type()))
	}
}
