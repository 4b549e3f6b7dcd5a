package tracefile

import (
	"bytes"
	"slices"
	"strconv"
	"time"

	"github.com/gopegasus/pegasus/scgs"
)

// Columns turns the fields of states into values of their types.
type Columns struct {
	schema   scgs.Schema
	texts    map[string]string
	elements []scgs.Value // of the current list
	rounded  []string     // the fields of Rounded
	list     reader
}

// NewColumns returns Columns for these fields. A field of type Invalid takes its
// type from its first value: a text makes a String, a number a Float, and true
// and false a Bool.
func NewColumns(schema scgs.Schema) *Columns {
	return &Columns{schema: slices.Clone(schema), texts: make(map[string]string)}
}

// Schema returns the fields with the types known so far. It is not to be changed.
func (c *Columns) Schema() scgs.Schema { return c.schema }

// Rounded returns the fields of which a value is Invalid because it is a whole number that
// no float64 holds exactly, in the order of their first such value.
func (c *Columns) Rounded() []string { return c.rounded }

// Row puts a value for each field into row, in their order, and reports whether
// the type of a field became known by it. What is missing has the field's default.
// What is null, an object, too large, or of another type is Invalid. An Int is a
// whole number, a Duration a text such as "1.5s", an Enum a text out of its words,
// a list an array of such values. A whole number without fraction and exponent that a
// Float does not hold exactly is Invalid too: two of them could become equal.
func (c *Columns) Row(state []Datum, row []scgs.Value) (learnt bool) {
	for i := range state {
		f := &c.schema[i]
		if f.Type == scgs.Invalid {
			f.Type = typeOf(state[i].Kind)
			learnt = learnt || f.Type != scgs.Invalid
		}
		row[i] = c.value(f, &state[i])
	}
	return learnt
}

func typeOf(k Kind) scgs.Type {
	switch k {
	case True, False:
		return scgs.Bool
	case Number:
		return scgs.Float
	case Text:
		return scgs.String
	default:
		return scgs.Invalid
	}
}

func (c *Columns) value(f *scgs.Field, d *Datum) scgs.Value {
	switch {
	case d.Kind == Missing:
		return f.Default
	case d.Kind == Array && f.Type.IsList():
		return c.listValue(f.Element(), d.Text)
	case d.Kind == Text:
		return c.textValue(f, d.Text)
	case d.Kind == Number:
		v := numberValue(f.Type, d.Text)
		if f.Type == scgs.Float && v.Type() == scgs.Invalid && isWhole(d.Text) && !slices.Contains(c.rounded, f.Name) {
			c.rounded = append(c.rounded, f.Name)
		}
		return v
	case (d.Kind == True || d.Kind == False) && f.Type == scgs.Bool:
		return scgs.BoolValue(d.Kind == True)
	}
	return scgs.Value{}
}

// listValue reads an array that the Scanner has passed over.
func (c *Columns) listValue(elem scgs.Field, array []byte) scgs.Value {
	c.list.begin(array)
	c.elements = c.elements[:0]
	for err := c.list.token(); c.list.decoder.PeekKind() != ']'; {
		var d Datum
		if err == nil {
			d, err = c.list.value()
		}
		if err != nil || len(c.elements) == scgs.MaxElements {
			return scgs.Value{}
		}
		c.elements = append(c.elements, c.value(&elem, &d))
	}
	v := scgs.ListValue(elem.Type, c.elements...)
	if f := (scgs.Field{Type: v.Type(), Words: elem.Words}); !f.Accepts(v) {
		return scgs.Value{} // Its texts are too long.
	}
	return v
}

func (c *Columns) textValue(f *scgs.Field, text []byte) scgs.Value {
	switch f.Type {
	case scgs.String:
		return scgs.StringValue(c.intern(text))
	case scgs.Enum:
		for _, word := range f.Words {
			if word == string(text) {
				return scgs.EnumValue(word)
			}
		}
	case scgs.Duration:
		if d, err := time.ParseDuration(c.intern(text)); err == nil {
			return scgs.DurationValue(d)
		}
	default:
	}
	return scgs.Value{}
}

// numberValue reads a number. Most are short and whole, and need no conversion
// to a string.
func numberValue(t scgs.Type, text []byte) scgs.Value {
	n, whole := small(text)
	switch {
	case t == scgs.Int && whole:
		return scgs.IntValue(n)
	case t == scgs.Float && whole:
		return scgs.FloatValue(float64(n))
	case t == scgs.Int:
		if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
			return scgs.IntValue(n)
		}
	case t == scgs.Float:
		if x, err := strconv.ParseFloat(string(text), 64); err == nil && (!isWhole(text) || isExactly(x, text)) {
			return scgs.FloatValue(x)
		}
	}
	return scgs.Value{}
}

// isWhole is whether a number has neither a fraction nor an exponent.
func isWhole(number []byte) bool { return !bytes.ContainsAny(number, ".eE") }

// isExactly is whether x is the whole number, and not only the float nearest to it.
func isExactly(x float64, number []byte) bool {
	var digits [310]byte // The largest float has 309, and a sign.
	return bytes.Equal(strconv.AppendFloat(digits[:0], x, 'f', 0, 64), number)
}

// small reads a whole number that a float64 holds exactly.
func small(text []byte) (n int64, ok bool) {
	digits := text
	if text[0] == '-' {
		digits = text[1:]
	}
	if len(digits) > 15 || text[0] == '-' && digits[0] == '0' { // -0 is a float of its own.
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	if text[0] == '-' {
		n = -n
	}
	return n, true
}

// The texts that Columns keeps, so that equal ones share their memory.
const (
	maxTexts    = 1 << 12
	maxTextSize = 256
)

func (c *Columns) intern(text []byte) string {
	if s, ok := c.texts[string(text)]; ok {
		return s
	}
	s := string(text)
	if len(c.texts) == maxTexts {
		clear(c.texts)
	}
	if len(s) <= maxTextSize {
		c.texts[s] = s
	}
	return s
}
