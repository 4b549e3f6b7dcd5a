package wire

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/tinylib/msgp/msgp"

	"github.com/gopegasus/pegasus/scgs"
)

// CheckRow refuses a row that cannot be encoded, and names the field: a wrong
// number of values, a value of another type, an enum's word that was not
// declared, a text that is too long or not UTF-8, a float that is not finite, a
// list that is too long or has such an element. An Invalid value stands for a
// field that has none yet. A program's state is checked when it is set, so that
// one bad state does not hold up a batch.
func (b *BatchCodec) CheckRow(row []scgs.Value) error {
	if len(row) != len(b.schema) {
		return errors.New("state: " + b.arity(len(row)))
	}
	for i := range row {
		if plain(&b.schema[i], &row[i]) {
			continue
		}
		if fault := findFault(&b.schema[i], row[i]); fault != "" {
			return errors.New("state: field " + strconv.Quote(b.schema[i].Name) + ": " + fault)
		}
	}
	return nil
}

func (b *BatchCodec) arity(values int) string {
	return strconv.Itoa(values) + " values for " + strconv.Itoa(len(b.schema)) + " fields"
}

// plain reports whether v is a value of the field that needs no closer look.
func plain(f *scgs.Field, v *scgs.Value) bool {
	t := v.Type()
	return t == f.Type && (t == scgs.Int || t == scgs.Bool || t == scgs.Duration)
}

// findFault says why v is no value of the field, "" if it is one.
func findFault(f *scgs.Field, v scgs.Value) string {
	switch {
	case v.Type() == scgs.Invalid:
		return ""
	case v.Type() != f.Type:
		return "its type is " + f.Type.String() + ", not " + v.Type().String()
	}
	switch f.Type {
	case scgs.Float:
		return floatFault(v.Float())
	case scgs.String:
		if len(v.Text()) > scgs.MaxTextBytes {
			return tooLong(len(v.Text()), scgs.MaxTextBytes)
		}
		if !utf8.ValidString(v.Text()) {
			return notUTF8
		}
	case scgs.Enum:
		if !slices.Contains(f.Words, v.Text()) {
			if f.Redact {
				return scgs.Redacted + " is not one of its words"
			}
			return strconv.Quote(v.Text()) + " is not one of its words"
		}
	case scgs.Invalid, scgs.Bool, scgs.Int, scgs.Duration:
	}
	if f.Type.IsList() {
		return listFault(f, v)
	}
	return ""
}

func listFault(f *scgs.Field, v scgs.Value) string {
	if v.Len() > scgs.MaxElements {
		return tooMany(v.Len(), scgs.MaxElements)
	}
	elem, texts := f.Element(), 0
	for i := range v.Len() {
		e := v.At(i)
		if fault := findFault(&elem, e); fault != "" {
			return "element " + strconv.Itoa(i) + ": " + fault
		}
		texts += len(e.Text())
	}
	if elem.Type == scgs.String && texts > scgs.MaxTextBytes {
		return textsTooLong(texts)
	}
	return ""
}

func textsTooLong(n int) string { return "its elements together have " + tooLong(n, scgs.MaxTextBytes) }

func floatFault(f float64) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return strconv.FormatFloat(f, 'g', -1, 64) + " is not a finite number"
	}
	return ""
}

// rowFault fails with the fault of a row, if there is any.
func (b *BatchCodec) rowFault(c *coder, row []scgs.Value) {
	if len(row) != len(b.schema) {
		c.keepFault("row", b.arity(len(row)))
		return
	}
	for i := range row {
		if fault := findFault(&b.schema[i], row[i]); fault != "" {
			c.keepFault(b.schema[i].Name, fault)
		}
	}
}

func appendValue(buf []byte, f *scgs.Field, v scgs.Value) []byte {
	switch v.Type() {
	case scgs.Bool:
		return msgp.AppendBool(buf, v.Bool())
	case scgs.Int, scgs.Duration:
		return msgp.AppendInt64(buf, v.Int())
	case scgs.Float:
		return msgp.AppendFloat(buf, v.Float())
	case scgs.String:
		return msgp.AppendString(buf, v.Text())
	case scgs.Enum:
		return msgp.AppendInt(buf, slices.Index(f.Words, v.Text()))
	case scgs.Invalid:
	}
	if v.Type().IsList() {
		return appendList(buf, f, v)
	}
	return msgp.AppendNil(buf)
}

func appendList(buf []byte, f *scgs.Field, v scgs.Value) []byte {
	elem := f.Element()
	buf = msgp.AppendArrayHeader(buf, uint32(v.Len()))
	for i := range v.Len() {
		buf = appendValue(buf, &elem, v.At(i))
	}
	return buf
}

// readRow reads into a row that may still hold an older one, whose texts are
// kept where they are the same; the next place to look is the row above.
func (b *BatchCodec) readRow(c *coder, row, above []scgs.Value) {
	for i := range row {
		f := &b.schema[i]
		if msgp.IsNil(c.buf) {
			row[i], c.buf = scgs.Value{}, c.buf[1:]
			continue
		}
		var other scgs.Value
		if len(above) > 0 {
			other = above[i]
		}
		if c.fieldValue(f, &row[i], other); c.err != nil {
			return
		}
	}
}

// list reads a list, whose length is checked before anything is made of it.
func (c *coder) list(f *scgs.Field, v *scgs.Value, other scgs.Value) {
	var read [scgs.MaxElements]scgs.Value
	n := c.codeCount(f.Name, 0, scgs.MaxElements, 1)
	elem, texts := f.Element(), 0
	for i := range n {
		read[i] = v.At(i) // A text that is the same is not copied.
		if c.fieldValue(&elem, &read[i], other.At(i)); c.err != nil {
			c.err.Field = f.Name + "[" + strconv.Itoa(i) + "]"
			return
		}
		texts += len(read[i].Text())
	}
	switch {
	case c.err != nil:
	case elem.Type == scgs.String && texts > scgs.MaxTextBytes:
		c.keepFault(f.Name, textsTooLong(texts))
	case holds(*v, f.Type, read[:n]):
	case holds(other, f.Type, read[:n]):
		*v = other
	default:
		*v = scgs.ListValue(elem.Type, read[:n]...)
	}
}

// holds reports whether a value is the list of these elements.
func holds(v scgs.Value, t scgs.Type, elements []scgs.Value) bool {
	if v.Type() != t || v.Len() != len(elements) {
		return false
	}
	for i := range elements {
		if v.At(i) != elements[i] {
			return false
		}
	}
	return true
}

func (c *coder) string(field string, v *scgs.Value, other scgs.Value) {
	text, ok := c.rawText(field, scgs.MaxTextBytes)
	switch {
	case !ok:
	case v.Type() == scgs.String && v.Text() == string(text):
	case other.Type() == scgs.String && other.Text() == string(text):
		*v = other
	default:
		*v = scgs.StringValue(string(text))
	}
}

// fieldValue reads a value of a field into v, which may hold an older one.
// Memory is shared with that or with other where they say the same.
func (c *coder) fieldValue(f *scgs.Field, v *scgs.Value, other scgs.Value) {
	switch f.Type {
	case scgs.Bool:
		var got bool
		c.codeBool(f.Name, &got)
		*v = scgs.BoolValue(got)
	case scgs.Int, scgs.Duration:
		var got int64
		c.codeInt(f.Name, &got)
		*v = scgs.IntValue(got)
		if f.Type == scgs.Duration {
			*v = scgs.DurationValue(time.Duration(got))
		}
	case scgs.Float:
		var got float64
		c.codeFloat(f.Name, &got)
		if fault := floatFault(got); fault != "" {
			c.keepFault(f.Name, fault)
		}
		*v = scgs.FloatValue(got)
	case scgs.Enum:
		var got uint64
		c.codeUint(f.Name, &got)
		if got >= uint64(len(f.Words)) {
			c.keepFault(f.Name, "word "+strconv.FormatUint(got, 10)+" of "+strconv.Itoa(len(f.Words)))
			return
		}
		*v = scgs.EnumValue(f.Words[got])
	case scgs.String:
		c.string(f.Name, v, other)
	case scgs.Invalid:
	}
	if f.Type.IsList() {
		c.list(f, v, other)
	}
}
