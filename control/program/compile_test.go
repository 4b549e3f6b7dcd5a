package program_test

import (
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/control/program"
)

// TestCompileRefuses what only a value in Go can be; the faults of files are in
// the tests of the file format.
func TestCompileRefuses(t *testing.T) {
	blocks := []program.Block{{Name: "a"}}
	cyclic := make([]program.Construct, 1)
	cyclic[0] = program.Seq{Of: cyclic}
	wide := make([]program.Construct, 2)
	wide[0], wide[1] = program.Par{Of: wide}, program.Par{Of: wide}
	for name, test := range map[string]struct {
		p    program.Program
		want string
	}{
		"no body":       {program.Program{Name: "x"}, "body: the program has no body: give it a construct: seq, par, if, case, while, until or do"},
		"a pointer":     {program.Program{Name: "x", Blocks: blocks, Body: &program.Do{Block: "a"}}, "body: *program.Do is no construct of a program: hand in the value, not a pointer to it"},
		"nothing":       {program.Program{Name: "x", Blocks: blocks, Body: program.Seq{Of: []program.Construct{nil, program.Do{Block: "a"}}}}, "body.seq[0]: nothing stands here: give it a construct"},
		"cyclic":        {program.Program{Name: "x", Blocks: blocks, Body: cyclic[0]}, "more than 500 constructs inside each other, or 1000000 in all: replicate with times, or split the program"},
		"cyclic, wide":  {program.Program{Name: "x", Blocks: blocks, Body: wide[0]}, "more than 500 constructs inside each other"},
		"not compact":   {program.Program{Name: "x", Blocks: blocks, Body: program.Do{Block: "a", Input: "{ }"}}, "body.input: the input is no compact JSON of at most 1048576 bytes"},
		"a bad type":    {program.Program{Name: "x", Blocks: []program.Block{{Name: "a", Output: program.Type{Base: program.List}}}, Body: program.Do{Block: "a"}}, "blocks.a.output: a list has an element type"},
		"nil in switch": {program.Program{Name: "x", Blocks: blocks, Body: program.If{When: "s.p", Else: program.Do{Block: "a"}}}, "body.then: nothing stands here"},
		"twice":         {program.Program{Name: "x", Blocks: []program.Block{{Name: "a"}, {Name: "a"}}, Body: program.Do{Block: "a"}}, `blocks.a: block "a" is declared twice: give one of them another name`},
	} {
		compiled, err := program.Compile(&test.p, refEnv)
		if err == nil || compiled != nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v\nwant %s", name, err, test.want)
		}
	}
}

func TestFits(t *testing.T) {
	number, anything := program.Type{Base: program.Int}, program.Type{Base: program.Any}
	list := func(t program.Type) program.Type { return program.Type{Base: program.List, Elem: &t} }
	record := func(names ...string) (t program.Type) {
		t.Base = program.Record
		for _, n := range names {
			t.Fields = append(t.Fields, program.Field{Name: n, Type: number})
		}
		return t
	}
	for _, test := range []struct {
		from, to program.Type
		want     bool
	}{
		{number, program.Type{Base: program.Float}, true},
		{program.Type{Base: program.Float}, number, false},
		{list(number), list(program.Type{Base: program.Float}), true},
		{list(number), number, false},
		{anything, number, true},
		{number, anything, true},
		{program.Type{}, anything, false},
		{number, program.Type{}, false},
		{record("x", "y"), record("y"), true},
		{record("y"), record("x", "y"), false},
		{list(record("x")), list(record("x")), true},
		{program.Type{Base: program.String}, program.Type{Base: program.Duration}, false},
	} {
		if got := test.from.Fits(test.to); got != test.want {
			t.Errorf("%s to %s: %t", test.from, test.to, got)
		}
	}
}
