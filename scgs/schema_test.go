package scgs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/scgs"
)

func TestSchemaFaults(t *testing.T) {
	long := strings.Repeat("n", scgs.MaxNameBytes+1)
	many := make(scgs.Schema, scgs.MaxFields+1)
	for i := range many {
		many[i] = scgs.Field{Name: fmt.Sprintf("f%d", i), Type: scgs.Int}
	}
	words := make([]string, scgs.MaxFields+1)
	for i := range words {
		words[i] = fmt.Sprintf("w%d", i)
	}
	tests := []struct {
		schema scgs.Schema
		want   string
	}{
		{nil, ""},
		{scgs.Schema{{Name: "load", Type: scgs.Float}, {Name: "_x9", Type: scgs.Enum, Words: []string{"a", "b c"}}}, ""},
		{many[:scgs.MaxFields], ""},
		{many, "state: 65 fields declared, at most 64 are allowed"},
		{scgs.Schema{{Name: "a", Type: scgs.Int}, {Name: "a", Type: scgs.Bool}}, `state: field "a" is declared twice`},
		{scgs.Schema{{Name: "", Type: scgs.Int}}, `state: field "": a name is a letter or _, then letters, digits or _, at most 64 bytes`},
		{scgs.Schema{{Name: "9a", Type: scgs.Int}}, `state: field "9a": a name is a letter or _`},
		{scgs.Schema{{Name: "a-b", Type: scgs.Int}}, `state: field "a-b": a name is a letter or _`},
		{scgs.Schema{{Name: "größe", Type: scgs.Int}}, `a name is a letter or _`},
		{scgs.Schema{{Name: long, Type: scgs.Int}}, `at most 64 bytes`},
		{scgs.Schema{{Name: "online", Type: scgs.Bool}}, `state: field "online" is reserved: every member has name, host, online of its own`},
		{scgs.Schema{{Name: "a"}}, `state: field "a" has no type: use bool, int, float, string, duration, {enum: [...]} or {list: TYPE}`},
		{scgs.Schema{{Name: "a", Type: 99}}, `state: field "a" has no type`},
		{scgs.Schema{{Name: "a", Type: scgs.Enum}}, `state: field "a": an enum has 1 to 64 words, this one has 0`},
		{scgs.Schema{{Name: "a", Type: scgs.Enum, Words: words}}, `state: field "a": an enum has 1 to 64 words, this one has 65`},
		{scgs.Schema{{Name: "a", Type: scgs.Int, Words: words[:1]}}, `state: field "a" of type int has enum words`},
		{scgs.Schema{{Name: "a", Type: scgs.Enum, Words: []string{"x", ""}}}, `state: field "a": enum word "" must have 1 to 64 bytes`},
		{scgs.Schema{{Name: "a", Type: scgs.Enum, Words: []string{"x", "x"}}}, `state: field "a": enum word "x" is given twice`},
	}
	for _, c := range tests {
		err := c.schema.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("Validate(%v) = %v, want %q", c.schema, err, c.want)
		}
	}
}

func TestSchemaAccepts(t *testing.T) {
	s := scgs.Schema{
		{Name: "phase", Type: scgs.Enum, Words: []string{"idle", "search"}},
		{Name: "load", Type: scgs.Float},
		{Name: "note", Type: scgs.String},
	}
	tests := []struct {
		row  []scgs.Value
		want string
	}{
		{[]scgs.Value{scgs.EnumValue("idle"), scgs.FloatValue(1), scgs.StringValue("")}, ""},
		{[]scgs.Value{{}, {}, {}}, ""},
		{[]scgs.Value{{}, {}, scgs.StringValue(strings.Repeat("x", scgs.MaxTextBytes))}, ""},
		{[]scgs.Value{{}, {}}, "state: 2 values for 3 fields"},
		{[]scgs.Value{scgs.EnumValue("done"), {}, {}}, `state: field "phase" (phase: {enum: [idle, search]}) does not take enum done`},
		{[]scgs.Value{scgs.StringValue("idle"), {}, {}}, `state: field "phase" (phase: {enum: [idle, search]}) does not take string "idle"`},
		{[]scgs.Value{{}, scgs.IntValue(1), {}}, `state: field "load" (load: float) does not take int 1`},
		{[]scgs.Value{{}, {}, scgs.StringValue(strings.Repeat("x", scgs.MaxTextBytes+1))}, `state: field "note" (note: string) does not take string`},
	}
	for _, c := range tests {
		err := s.Accepts(c.row)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("Accepts(%v) = %v, want %q", c.row, err, c.want)
		}
	}
	if (scgs.Field{Name: "x"}).Accepts(scgs.Value{}) {
		t.Error("a field without type takes no value")
	}
}

func TestSchemaIndexAndHash(t *testing.T) {
	s := scgs.Schema{{Name: "a", Type: scgs.Int}, {Name: "b", Type: scgs.Enum, Words: []string{"x", "y"}}}
	if s.Index("b") != 1 || s.Index("c") != -1 {
		t.Errorf("Index: %d, %d", s.Index("b"), s.Index("c"))
	}
	seen := map[uint64]string{s.Hash(): "itself"}
	for what, other := range map[string]scgs.Schema{
		"empty":      nil,
		"order":      {s[1], s[0]},
		"type":       {{Name: "a", Type: scgs.Float}, s[1]},
		"words":      {s[0], {Name: "b", Type: scgs.Enum, Words: []string{"y", "x"}}},
		"word split": {s[0], {Name: "b", Type: scgs.Enum, Words: []string{"xy"}}},
		"word join":  {s[0], {Name: "b", Type: scgs.Enum, Words: []string{"x\x00y"}}},
		"prefix":     s[:1],
	} {
		if twin, ok := seen[other.Hash()]; ok {
			t.Errorf("the hash of another %s equals that of %s", what, twin)
		}
		seen[other.Hash()] = what
	}
	if again := (scgs.Schema{s[0], {Name: "b", Type: scgs.Enum, Words: []string{"x", "y"}}}); again.Hash() != s.Hash() {
		t.Error("equal schemas have different hashes")
	}
}
