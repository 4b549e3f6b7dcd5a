package tracecore

import (
	"fmt"
	"strings"

	"github.com/gopegasus/pegasus/scgs"
)

// ParseSchema reads the fields of states and their types, written as in
//
//	role:string,load:float,phase:enum(idle|busy)
func ParseSchema(text string) (scgs.Schema, error) {
	schema := scgs.Schema{}
	for part := range strings.SplitSeq(text, ",") {
		name, word, ok := strings.Cut(strings.TrimSpace(part), ":")
		f := scgs.Field{Name: strings.TrimSpace(name)}
		word = strings.TrimSpace(word)
		if words, enum := strings.CutPrefix(word, "enum("); enum && strings.HasSuffix(words, ")") {
			f.Type, f.Words = scgs.Enum, strings.Split(strings.TrimSuffix(words, ")"), "|")
		} else if f.Type, _ = scgs.ParseType(word); f.Type == scgs.Invalid || f.Type == scgs.Enum {
			ok = false
		}
		if !ok {
			return nil, fmt.Errorf("schema: %q is not NAME:TYPE, such as load:float; the types are bool, int, float, string, duration and enum(WORD|WORD)", part)
		}
		schema = append(schema, f)
	}
	if err := schema.Validate(); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return schema, nil
}
