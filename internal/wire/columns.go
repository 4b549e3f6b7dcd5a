package wire

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/gopegasus/pegasus/scgs"
)

// The forms of the columns of fields, a byte each. Any column can have the first
// two, whose values are written as in other messages, nil for one that is missing.
// They are the forms of texts, of lists and of a column with missing values. A byte
// stands for a word of an enum, by its place, or a bool; a float has 8 bytes.
//
// A column of integers has, from formIntegers on, the width of its first number less
// 1 in the lowest three bits, and in the next four that of the differences of the
// others from the one before: 0 where all are the same.
const (
	formEach     = iota // one value after another, or the mark that it is the one before
	formOne             // one value, which all have
	formRaw             // one byte or float after another
	formOneRaw          // one, which all have
	formIntegers = 1 << 7

	asBefore = 0xc1 // no value of MessagePack begins so
)

// cut says of a frame, wherever it is cut.
const cut = "the frame ends inside it"

// writeColumns writes the fields of the rows, so many, of the reports that are no
// ends. It returns false where one of them cannot be written.
func (b *BatchCodec) writeColumns(c *coder, reports []Report, rows int) bool {
	if rows == 0 {
		return true
	}
	for f := range b.schema {
		field, start, ok := &b.schema[f], len(c.buf), false
		switch field.Type { //nolint:exhaustive // The others are written in general.
		case scgs.Int, scgs.Duration:
			c.buf, ok = appendIntegers(c.buf, reports, rows, f, field.Type)
		case scgs.Float:
			c.buf, ok = appendFloats(c.buf, reports, rows, f)
		case scgs.Bool, scgs.Enum:
			c.buf, ok = appendWords(c.buf, reports, f, field)
		}
		if !ok {
			c.buf = c.buf[:start]
			if c.buf, ok = appendValues(c.buf, reports, rows, f, field); !ok {
				return false
			}
		}
		if c.size() > MaxFrameBytes {
			return true
		}
	}
	return true
}

func appendIntegers(buf []byte, reports []Report, rows, f int, t scgs.Type) ([]byte, bool) {
	var all differences
	others := 0 // where they begin
	for i := range reports {
		if reports[i].End {
			continue
		}
		v := &reports[i].Row[f]
		switch {
		case v.Type() != t:
			return buf, false
		case others == 0:
			all, others = begin(v.Int()), i+1
		default:
			all.add(v.Int())
		}
	}
	first := differences{}
	first.add(all.first)
	base, width := max(1, first.width()), all.width()
	at := len(buf) + 1
	buf = room(append(buf, byte(formIntegers|width<<3|base-1)), base+rows*width)
	binary.LittleEndian.PutUint64(buf[at:], uint64(all.first)) //nolint:gosec // Its bits.
	at += base
	if width == 0 {
		return buf[:at], true
	}
	last := all.first
	for i := others; i < len(reports); i++ {
		if reports[i].End {
			continue
		}
		v := reports[i].Row[f].Int()
		binary.LittleEndian.PutUint64(buf[at:], uint64(v-last)) //nolint:gosec // Its bits.
		at, last = at+width, v
	}
	return buf[:at], true
}

func appendFloats(buf []byte, reports []Report, rows, f int) ([]byte, bool) {
	at, first, all := len(buf)+1, uint64(0), uint64(0)
	buf = room(append(buf, formRaw), 8*rows)
	for i, begun := 0, at; i < len(reports); i++ {
		if reports[i].End {
			continue
		}
		v := &reports[i].Row[f]
		x := v.Float()
		if v.Type() != scgs.Float || !(math.Abs(x) <= math.MaxFloat64) {
			return buf, false
		}
		word := math.Float64bits(x)
		if at == begun {
			first = word
		}
		all |= word ^ first
		binary.LittleEndian.PutUint64(buf[at:], word)
		at += 8
	}
	if all == 0 {
		at -= 8 * (rows - 1)
		buf[at-9] = formOneRaw
	}
	return buf[:at], true
}

func appendWords(buf []byte, reports []Report, f int, field *scgs.Field) ([]byte, bool) {
	start, word, all := len(buf), 0, true
	buf = append(buf, formRaw)
	var last *scgs.Value
	for i := range reports {
		if reports[i].End {
			continue
		}
		v := &reports[i].Row[f]
		if last == nil || *v != *last {
			if v.Type() != field.Type {
				return buf, false
			}
			if field.Type == scgs.Enum {
				word = slices.Index(field.Words, v.Text())
			} else if word = 0; v.Bool() {
				word = 1
			}
			if word < 0 {
				return buf, false
			}
			last, all = v, last == nil
		}
		buf = append(buf, byte(word)) //nolint:gosec // There are at most as many as [scgs.MaxFields].
	}
	if all {
		buf = buf[:start+2]
		buf[start] = formOneRaw
	}
	return buf, true
}

// appendValues appends a column of any values.
func appendValues(buf []byte, reports []Report, rows, f int, field *scgs.Field) ([]byte, bool) {
	start, first, repeated := len(buf), 0, 0
	buf = append(buf, formEach)
	var last *scgs.Value
	for i := range reports {
		if reports[i].End {
			continue
		}
		v := &reports[i].Row[f]
		if last != nil && *v == *last {
			buf = append(buf, asBefore)
			repeated++
			continue
		}
		if fault(field, *v) != "" {
			return buf, false
		}
		buf = appendValue(buf, field, *v)
		if last == nil {
			first = len(buf)
		}
		last = v
	}
	if repeated == rows-1 {
		buf = buf[:first]
		buf[start] = formOne
	}
	return buf, true
}

// readColumns reads the fields of so many rows into the values, which are one row after
// another. It returns where the last column ends.
func (b *BatchCodec) readColumns(c *coder, frame []byte, at int, values []scgs.Value, rows int) int {
	fields := len(b.schema)
	values = values[:rows*fields]
	for f := range b.schema {
		field := &b.schema[f]
		if at >= len(frame) {
			c.fail(field.Name, cut)
			return at
		}
		form := frame[at]
		at++
		switch {
		case form <= formOne:
			at = c.values(field, frame, at, values, f, fields, form == formOne)
		case form >= formIntegers && (field.Type == scgs.Int || field.Type == scgs.Duration):
			at = c.integers(field, frame, at, values, f, fields, form)
		case form > formOneRaw:
			c.noForm(field, form)
		case field.Type == scgs.Float:
			at = c.floats(field, frame, at, values, f, fields, form == formOneRaw)
		case field.Type == scgs.Bool || field.Type == scgs.Enum:
			at = c.words(field, frame, at, values, f, fields, form == formOneRaw, b.words[f])
		default:
			c.noForm(field, form)
		}
		if c.err != nil {
			return at
		}
	}
	return at
}

func (c *coder) noForm(field *scgs.Field, form byte) {
	c.fail(field.Name, "a column of "+field.Type.String()+" has no form "+strconv.Itoa(int(form)))
}

func (c *coder) integers(field *scgs.Field, frame []byte, at int, values []scgs.Value, f, fields int, form byte) int {
	var all entries
	all.end, all.width = at+int(form&7)+1, int(form>>3&15)
	if all.width > maxWidth {
		c.noForm(field, form)
		return at
	}
	if at = all.end + (len(values)/fields-1)*all.width; at > len(frame) {
		c.fail(field.Name, cut)
		return at
	}
	all.value = number(frame, all.end, int(form&7)+1)
	for i := f; ; all.next(frame) {
		if values[i] = scgs.IntValue(all.value); field.Type == scgs.Duration {
			values[i] = scgs.DurationValue(time.Duration(all.value))
		}
		if i += fields; i >= len(values) {
			return at
		}
	}
}

func (c *coder) floats(field *scgs.Field, frame []byte, at int, values []scgs.Value, f, fields int, one bool) int {
	n := len(values) / fields
	if one {
		n = 1
	}
	end := at + 8*n
	if end > len(frame) {
		c.fail(field.Name, cut)
		return end
	}
	for i := f; i < len(values); i += fields {
		x := math.Float64frombits(binary.LittleEndian.Uint64(frame[at : at+8]))
		if !(math.Abs(x) <= math.MaxFloat64) {
			c.fail(field.Name, floatFault(x))
			c.within("rows", i/fields)
			return end
		}
		values[i] = scgs.FloatValue(x)
		if !one {
			at += 8
		}
	}
	return end
}

func (c *coder) words(field *scgs.Field, frame []byte, at int, values []scgs.Value, f, fields int, one bool, words []scgs.Value) int {
	n := len(values) / fields
	if one {
		n = 1
	}
	end := at + n
	if end > len(frame) {
		c.fail(field.Name, cut)
		return end
	}
	for i := f; i < len(values); i += fields {
		word := int(frame[at])
		if word >= len(words) {
			c.fail(field.Name, "word "+strconv.Itoa(word)+" of "+strconv.Itoa(len(words)))
			c.within("rows", i/fields)
			return end
		}
		values[i] = words[word]
		if !one {
			at++
		}
	}
	return end
}

// values reads a column of any values. Those may hold older ones, whose texts are
// kept where they are the same; the next place to look is the row above.
func (c *coder) values(field *scgs.Field, frame []byte, at int, values []scgs.Value, f, fields int, one bool) int {
	c.buf = frame[at:]
	var above scgs.Value
	for i := f; i < len(values); i += fields {
		switch {
		case i > f && one:
			values[i] = above
		case i > f && len(c.buf) > 0 && c.buf[0] == asBefore:
			values[i], c.buf = above, c.buf[1:]
		case msgp.IsNil(c.buf):
			values[i], c.buf = scgs.Value{}, c.buf[1:]
		default:
			if c.fieldValue(field, &values[i], above); c.err != nil {
				c.within("rows", i/fields)
				return at
			}
		}
		above = values[i]
	}
	return len(frame) - len(c.buf)
}
