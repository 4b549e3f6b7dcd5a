package program

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Base is what a [Type] is made of.
type Base uint8

// The bases of types. The zero base stands for no value.
const (
	None Base = iota
	Any       // any JSON value: it is not checked before it is there
	Bool
	Int
	Float
	String
	Duration // a text such as "1.5s"
	List
	Record
)

var baseWords = []string{"none", "any", "bool", "int", "float", "string", "duration"}

// ParseBase finds the base that a word stands for, which no list and no record
// has.
func ParseBase(word string) (Base, bool) {
	i := slices.Index(baseWords, word)
	return Base(max(i, 0)), i >= 0
}

// Type is the type of a block's input or output, a JSON value.
type Type struct {
	Base   Base    // which of the other fields count
	Elem   *Type   // of a list
	Fields []Field // of a record, each name once
}

// Field is a field of a record.
type Field struct {
	Name string // letters, digits, - and _, at most [MaxNameBytes]
	Type Type   // of the value; never None
}

// String gives the type as program files write it: [float], {x: float}.
func (t Type) String() string {
	switch t.Base {
	case List:
		return "[" + t.Elem.String() + "]"
	case Record:
		list := make([]string, len(t.Fields))
		for i, f := range t.Fields {
			list[i] = f.Name + ": " + f.Type.String()
		}
		return "{" + strings.Join(list, ", ") + "}"
	default:
		return baseWords[t.Base]
	}
}

// Fits reports whether a value of type t can stand where want is wanted: an int
// is a float, a record may have more fields than are wanted, and any fits and is
// fitted by everything but none.
func (t Type) Fits(want Type) bool {
	switch {
	case t.Base == None || want.Base == None:
		return t.Base == want.Base
	case t.Base == Any || want.Base == Any:
		return true
	case t.Base == List && want.Base == List:
		return t.Elem.Fits(*want.Elem)
	case t.Base == Record && want.Base == Record:
		return !slices.ContainsFunc(want.Fields, func(w Field) bool {
			i := slices.IndexFunc(t.Fields, func(f Field) bool { return f.Name == w.Name })
			return i < 0 || !t.Fields[i].Type.Fits(w.Type)
		})
	}
	return t.Base == want.Base || t.Base == Int && want.Base == Float
}

// checkType refuses a type that was put together wrongly.
func (t Type) checkType(depth int) error {
	switch {
	case depth > 16:
		return errors.New("a type nested more than 16 deep: use any for its inner parts")
	case t.Base > Record:
		return fmt.Errorf("base %d is no type", t.Base)
	case (t.Base == List) != (t.Elem != nil) || t.Base != Record && len(t.Fields) > 0:
		return errors.New("a list has an element type, a record has fields, and nothing else has either")
	case t.Base == List && t.Elem.Base == None:
		return errors.New("a list of nothing: use [any]")
	case t.Base == List:
		return t.Elem.checkType(depth + 1)
	}
	for i, f := range t.Fields {
		switch {
		case !isName(f.Name):
			return fmt.Errorf("field %q: %s", f.Name, nameRule)
		case slices.ContainsFunc(t.Fields[:i], func(g Field) bool { return g.Name == f.Name }):
			return fmt.Errorf("field %q is given twice", f.Name)
		case f.Type.Base == None:
			return fmt.Errorf("field %q has no value: use another type", f.Name)
		}
		if err := f.Type.checkType(depth + 1); err != nil {
			return err
		}
	}
	return nil
}

// eitherType is the type of values that have one of the two types.
func eitherType(a, b Type) Type {
	switch {
	case a.Base == None && b.Base == None:
		return a
	case a.Base == None || b.Base == None:
		return Type{} // At times there is no value.
	case a.Fits(b) && a.Base != Any:
		return b
	case b.Fits(a) && b.Base != Any:
		return a
	}
	return Type{Base: Any}
}

// findMisfit says where a value does not fit a type, and is empty if it does. With null
// allowed, null fits every type, as a missing value.
func (t Type) findMisfit(v any, null bool) string { return t.misfitAt("", v, null) }

func (t Type) misfitAt(at string, v any, null bool) string {
	fits := t.Base == Any
	switch v := v.(type) {
	case nil:
		fits = fits || null
	case bool:
		fits = fits || t.Base == Bool
	case json.Number:
		_, err := v.Int64()
		fits = fits || t.Base == Float || t.Base == Int && err == nil
	case string:
		_, err := time.ParseDuration(v)
		fits = fits || t.Base == String || t.Base == Duration && err == nil
	case []any:
		if t.Base == List {
			for i, e := range v {
				if why := t.Elem.misfitAt(at+"["+strconv.Itoa(i)+"]", e, null); why != "" {
					return why
				}
			}
			return ""
		}
	case map[string]any:
		if t.Base == Record {
			for _, f := range t.Fields {
				key, ok := keyOf(v, f.Name)
				if !ok {
					return cmp.Or(at, "it") + " has no field " + f.Name
				}
				if why := f.Type.misfitAt(at+"."+f.Name, v[key], null); why != "" {
					return why
				}
			}
			return ""
		}
	}
	if fits {
		return ""
	}
	text, _ := json.Marshal(v)
	return cmp.Or(at, "it") + " is " + clipText(string(text)) + " and should be " + t.String()
}

// isLoose reports whether part of a value of the type may be anything.
func (t Type) isLoose() bool {
	return t.Base == Any || t.Base == List && t.Elem.isLoose() ||
		t.Base == Record && slices.ContainsFunc(t.Fields, func(f Field) bool { return f.Type.isLoose() })
}

// hasRecords reports whether a value of the type has a record in it.
func (t Type) hasRecords() bool { return t.Base == Record || t.Base == List && t.Elem.hasRecords() }

// decodeJSON reads a JSON text, with all digits of its numbers.
func decodeJSON(text string) (v any, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// takeValue makes of a JSON text what a block that wants the type is given: the fields of
// records have the names that it has for them. why says where the text does not fit.
func (t Type) takeValue(text string) (given, why string) {
	v, err := decodeJSON(text)
	if err != nil {
		return "", err.Error()
	}
	if why := t.findMisfit(v, true); why != "" || !t.rename(v) {
		return text, why
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", err.Error()
	}
	return strings.TrimSuffix(b.String(), "\n"), ""
}

// rename gives the fields of a value that fits the type the names that they have there,
// and reports whether some had others.
func (t Type) rename(v any) (renamed bool) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			renamed = t.Base == List && t.Elem.rename(e) || renamed
		}
	case map[string]any:
		for _, f := range t.Fields {
			key, ok := keyOf(v, f.Name)
			if !ok {
				continue
			}
			renamed = f.Type.rename(v[key]) || renamed
			if key != f.Name {
				v[f.Name], renamed = v[key], true
				delete(v, key)
			}
		}
	}
	return renamed
}

// keyOf finds a field as Go's decoder does, which takes Sum for sum: the fields of
// structs begin with a capital.
func keyOf(record map[string]any, name string) (string, bool) {
	if _, ok := record[name]; ok {
		return name, true
	}
	for _, key := range slices.Sorted(maps.Keys(record)) { // A replay has to find the same one.
		if strings.EqualFold(key, name) {
			return key, true
		}
	}
	return "", false
}
