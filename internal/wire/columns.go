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

// The forms of the columns of fields, a byte each. Any column can have the first two, whose
// values are written as in other messages, nil for a missing value. They are the forms of
// texts, of lists and of a column with missing values. A byte stands for a word of an enum, by
// its place, or a bool; a float has 8 bytes.
//
// A column of integers has, from formIntegers on, the width of its first number less 1 in the
// lowest three bits, and in the next four the width of the differences of the others from the
// one before: 0 where all are the same.
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
	buf, longest := c.buf, c.start+MaxFrameBytes
	for f, t := range b.types {
		start, ok := len(buf), false
		switch t { //nolint:exhaustive // The others are written in general.
		case scgs.Int, scgs.Duration:
			buf, ok = appendIntegers(buf, reports, rows, f, t)
		case scgs.Float:
			buf, ok = appendFloats(buf, reports, rows, f)
		case scgs.Bool, scgs.Enum:
			buf, ok = appendWords(buf, reports, f, &b.schema[f])
		}
		if !ok {
			if buf, ok = appendValues(buf[:start], reports, rows, f, &b.schema[f]); !ok {
				return false
			}
		}
		if len(buf) > longest {
			break
		}
	}
	c.buf = buf
	return true
}

func appendIntegers(buf []byte, reports []Report, rows, f int, t scgs.Type) ([]byte, bool) {
	form, base := len(buf), 0
	buf = makeRoom(append(buf, 0), 8+8*rows)
	begin, bits, last, at := form+1, uint64(0), int64(0), form+1 // bits that any difference has
	for i := range reports {
		r := &reports[i]
		if r.End {
			continue
		}
		v := &r.Row[f]
		if v.Type() != t {
			return buf, false
		}
		x := v.Int()
		binary.LittleEndian.PutUint64(buf[at:], uint64(x-last)) //nolint:gosec // Its bits.
		if base == 0 {
			base = max(1, widthOf(zigzagOf(x)))
			begin += base
			at, last = begin, x
			continue
		}
		bits |= zigzagOf(x - last)
		at, last = at+8, x
	}
	buf, width := narrowNumbers(buf[:at], begin, bits)
	buf[form] = byte(formIntegers | width<<3 | (base - 1))
	return buf, true
}

func appendFloats(buf []byte, reports []Report, rows, f int) ([]byte, bool) {
	form, at := len(buf), len(buf)+1
	buf = makeRoom(append(buf, formRaw), 8*rows)
	differ, first := uint64(0), uint64(0)
	for i := range reports {
		r := &reports[i]
		if r.End {
			continue
		}
		v := &r.Row[f]
		if v.Type() != scgs.Float {
			return buf, false
		}
		word := math.Float64bits(v.Float())
		if word&notFinite == notFinite {
			return buf, false
		}
		if at == form+1 {
			first = word
		}
		differ |= word ^ first
		binary.LittleEndian.PutUint64(buf[at:], word)
		at += 8
	}
	if differ == 0 {
		at, buf[form] = form+9, formOneRaw
	}
	return buf[:at], true
}

// notFinite are the bits of a float that are all set in infinities and in NaN.
const notFinite = 0x7ff << 52

func appendWords(buf []byte, reports []Report, f int, field *scgs.Field) ([]byte, bool) {
	start, word, same := len(buf), 0, true
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
			last, same = v, last == nil
		}
		buf = append(buf, byte(word)) //nolint:gosec // There are at most as many as [scgs.MaxFields].
	}
	if same {
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
		if findFault(field, *v) != "" {
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
	to := column{values: values[:rows*len(b.types)], fields: len(b.types)}
	for f, t := range b.types {
		to.field, to.f = &b.schema[f], f
		if at >= len(frame) {
			c.keepFault(to.field.Name, cut)
			return at
		}
		form := frame[at]
		at++
		switch {
		case form >= formIntegers && (t == scgs.Int || t == scgs.Duration):
			at = c.integers(&to, frame, at, form, t)
		case form <= formOne:
			at = c.values(&to, frame, at, form == formOne)
		case form > formOneRaw:
			c.noForm(to.field, form)
		case t == scgs.Float:
			at = c.floats(&to, frame, at, form == formOneRaw)
		case t == scgs.Bool || t == scgs.Enum:
			at = c.words(&to, frame, at, form == formOneRaw, b.words[f])
		default:
			c.noForm(to.field, form)
		}
		if c.err != nil {
			return at
		}
	}
	return at
}

// column is where the values of a field go: to every so many of the values, one of each row,
// the first of them at f.
type column struct {
	field     *scgs.Field
	values    []scgs.Value
	f, fields int
}

func (to *column) rows() int { return len(to.values) / to.fields }

func (c *coder) noForm(field *scgs.Field, form byte) {
	c.keepFault(field.Name, "a column of "+field.Type.String()+" has no form "+strconv.Itoa(int(form)))
}

func (c *coder) integers(to *column, frame []byte, at int, form byte, t scgs.Type) int {
	base, width := int(form&7)+1, int(form>>3&15)
	if width > maxWidth {
		c.noForm(to.field, form)
		return at
	}
	numbers := entries{end: at + base, width: width}
	if at = numbers.end + (to.rows()-1)*width; at > len(frame) {
		c.keepFault(to.field.Name, cut)
		return at
	}
	numbers.value = readNumber(frame, numbers.end, base)
	values, fields := to.values, to.fields
	if t == scgs.Duration {
		for i := to.f; ; numbers.nextEntry(frame) {
			values[i] = scgs.DurationValue(time.Duration(numbers.value))
			if i += fields; i >= len(values) {
				return at
			}
		}
	}
	for i := to.f; ; numbers.nextEntry(frame) {
		values[i] = scgs.IntValue(numbers.value)
		if i += fields; i >= len(values) {
			return at
		}
	}
}

func (c *coder) floats(to *column, frame []byte, at int, one bool) int {
	end, step := at+to.rows()*8, 8
	if one {
		end, step = at+8, 0
	}
	if end > len(frame) {
		c.keepFault(to.field.Name, cut)
		return end
	}
	values, fields := to.values, to.fields
	for i := to.f; i < len(values); i += fields {
		word := binary.LittleEndian.Uint64(frame[at : at+8])
		x := math.Float64frombits(word)
		if word&notFinite == notFinite {
			c.keepFault(to.field.Name, floatFault(x))
			c.noteWithin("rows", i/fields)
			return end
		}
		values[i] = scgs.FloatValue(x)
		at += step
	}
	return end
}

func (c *coder) words(to *column, frame []byte, at int, one bool, words []scgs.Value) int {
	end, step := at+to.rows(), 1
	if one {
		end, step = at+1, 0
	}
	if end > len(frame) {
		c.keepFault(to.field.Name, cut)
		return end
	}
	values, fields := to.values, to.fields
	for i := to.f; i < len(values); i += fields {
		word := int(frame[at])
		if word >= len(words) {
			c.keepFault(to.field.Name, "word "+strconv.Itoa(word)+" of "+strconv.Itoa(len(words)))
			c.noteWithin("rows", i/fields)
			return end
		}
		values[i] = words[word]
		at += step
	}
	return end
}

// values reads a column of any values. Those may hold older ones, whose texts are
// kept where they are the same; the next place to look is the row above.
func (c *coder) values(to *column, frame []byte, at int, one bool) int {
	c.buf = frame[at:]
	var above scgs.Value
	values, fields, f := to.values, to.fields, to.f
	for i := f; i < len(values); i += fields {
		switch {
		case i > f && one:
			values[i] = above
		case i > f && len(c.buf) > 0 && c.buf[0] == asBefore:
			values[i], c.buf = above, c.buf[1:]
		case msgp.IsNil(c.buf):
			values[i], c.buf = scgs.Value{}, c.buf[1:]
		default:
			if c.fieldValue(to.field, &values[i], above); c.err != nil {
				c.noteWithin("rows", i/fields)
				return at
			}
		}
		above = values[i]
	}
	return len(frame) - len(c.buf)
}
