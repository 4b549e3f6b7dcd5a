package agentcore

import (
	"math"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/scgs"
)

// Plain reports whether all fields of a schema are numbers, booleans and enums: then a
// row that has a value for each may be told as words.
func Plain(s scgs.Schema) bool {
	return !slices.ContainsFunc(s, func(f scgs.Field) bool { return f.Type == scgs.String || f.Type.IsList() })
}

// Word is the value of a plain field as a word: a boolean as 0 or 1, an integer and the
// nanoseconds of a duration as in an int64, a float by its bits, and of an enum the place of
// the word in the declared list. It reports false for a value that does not fit the field, or
// must not be in a state.
func Word(f *scgs.Field, v scgs.Value) (word uint64, ok bool) {
	if v.Type() != f.Type {
		return 0, false
	}
	switch f.Type {
	case scgs.Bool:
		if v.Bool() {
			word = 1
		}
		return word, true
	case scgs.Int, scgs.Duration:
		return uint64(v.Int()), true //nolint:gosec // Its bits.
	case scgs.Float:
		x := v.Float()
		return math.Float64bits(x), math.Abs(x) <= math.MaxFloat64
	case scgs.Enum:
		place := slices.Index(f.Words, v.Text())
		return uint64(place), place >= 0 //nolint:gosec // It is not used below 0.
	default:
		return 0, false
	}
}

// valueOf is the inverse of [Word].
func valueOf(f *scgs.Field, word uint64) scgs.Value {
	switch f.Type {
	case scgs.Bool:
		return scgs.BoolValue(word != 0)
	case scgs.Int:
		return scgs.IntValue(int64(word)) //nolint:gosec // Its bits.
	case scgs.Duration:
		return scgs.DurationValue(time.Duration(word)) //nolint:gosec // Its bits.
	case scgs.Float:
		return scgs.FloatValue(math.Float64frombits(word))
	default:
		return scgs.EnumValue(f.Words[word])
	}
}

// pack is a row as words, which hold until the next call; nil if it is not plain, or
// something is wrong with it.
func (r *ring) pack(row []scgs.Value) []uint64 {
	if !r.plain || len(row) != len(r.schema) {
		return nil
	}
	for i := range row {
		var ok bool
		if r.packed[i], ok = Word(&r.schema[i], row[i]); !ok {
			return nil
		}
	}
	return r.packed
}

// unpack fills the row of words.
func (r *ring) unpack(row []scgs.Value, words []uint64) {
	for i := range row {
		row[i] = valueOf(&r.schema[i], words[i])
	}
}
