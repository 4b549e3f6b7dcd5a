package tracedetect

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gopegasus/pegasus/scgs"
)

// ParseSchema reads the fields of states, their types and their defaults, if they
// have one, written as in
//
//	role:string,load:float=0.5,phase:enum(idle|busy),tags:list(string)=[a|b]
func ParseSchema(text string) (scgs.Schema, error) {
	schema := scgs.Schema{}
	for part := range strings.SplitSeq(text, ",") {
		name, rest, ok := strings.Cut(part, ":")
		f := scgs.Field{Name: strings.TrimSpace(name)}
		word, value, given := splitDefault(strings.TrimSpace(rest))
		if !ok || !parseType(&f, word) {
			return nil, fmt.Errorf("schema: %q is not NAME:TYPE, such as load:float, or NAME:TYPE=DEFAULT; the types are bool, int, float, string, duration, enum(WORD|WORD) and list(TYPE)", part)
		}
		if given {
			var err error
			if f.Default, err = parseDefault(f, value); err != nil {
				return nil, fmt.Errorf("schema: %q: %w", part, err)
			}
		}
		schema = append(schema, f)
	}
	if err := schema.Validate(); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return schema, nil
}

// splitDefault splits a default off a type.
func splitDefault(text string) (word, value string, given bool) {
	if word, value, given = strings.Cut(text, ")="); given {
		return word + ")", value, true
	}
	if strings.HasSuffix(text, ")") {
		return text, "", false
	}
	return strings.Cut(text, "=")
}

func parseType(f *scgs.Field, word string) bool {
	if words, ok := inside("enum(", word, ")"); ok {
		f.Type, f.Words = scgs.Enum, strings.Split(words, "|")
		return true
	}
	if elem, ok := inside("list(", word, ")"); ok && parseType(f, elem) {
		f.Type = scgs.ListOf(f.Type)
		return f.Type != scgs.Invalid
	}
	f.Type, _ = scgs.ParseType(word)
	return f.Type != scgs.Invalid && f.Type != scgs.Enum
}

func inside(open, text, end string) (string, bool) {
	text, opened := strings.CutPrefix(text, open)
	text, ended := strings.CutSuffix(text, end)
	return text, opened && ended
}

// parseDefault reads a value, and of a list [a|b].
func parseDefault(f scgs.Field, text string) (scgs.Value, error) {
	if !f.Type.IsList() {
		return f.Parse(text)
	}
	text, ok := inside("[", text, "]")
	if !ok {
		return scgs.Value{}, errors.New("a default of a list is [], or its elements as in [a|b]")
	}
	var elements []scgs.Value
	for part := range strings.SplitSeq(text, "|") {
		if text == "" {
			break
		}
		v, err := f.Element().Parse(part)
		if err != nil {
			return v, err
		}
		elements = append(elements, v)
	}
	return scgs.ListValue(f.Type.Elem(), elements...), nil
}
