package configfile_test

import (
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/internal/configfile"
)

// programHeader is what the programs of these tests refer to.
const programHeader = `synchronizers:
  s:
    members: {group: g}
    predicates:
      p: {when: len(members) > 1, signal: {kind: activate, region: r}}
      q: {when: len(members) > 2}
      always: {when: "true"}
      never: {when: " false "}
  u:
    members: {group: h}
    predicates:
      q: {when: len(members) > 1}
  threads:
    parent: s
    members: {threads: {min: 2, max: 4}}
    predicates:
      t: {when: len(members) > 1}
`

// readProgram shows every fault of a program file, below the header unless it is
// "bare". The lines of the file count from the first of the header.
func readProgram(d *datadriven.TestData) string {
	src := programHeader + d.Input + "\n"
	if d.HasArg("bare") {
		src = d.Input + "\n"
	}
	file, err := configfile.ParseProgram("test.yaml", []byte(src))
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("ok: %d blocks\n", file.Plan.Blocks())
}

// TestProgramFaults compares the faults of program files with testdata/program.
func TestProgramFaults(t *testing.T) {
	datadriven.RunTest(t, "testdata/program", func(t *testing.T, d *datadriven.TestData) string {
		t.Helper()
		return readProgram(d)
	})
}

func TestProgramLimits(t *testing.T) {
	deep := strings.Repeat("{seq: [", 20) + "a" + strings.Repeat("]}", 20)
	lines := func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.Repeat("  ", i+2) + "- seq:\n")
		}
		return "  body:\n    seq:\n" + b.String() + strings.Repeat("  ", n+2) + "- a\n"
	}
	for src, want := range map[string]string{
		"  body: {par: {par: {par: a, times: 100}, times: 100}, times: 100}\n": "1000000 block instances or more",
		"  body: {par: a, times: 1000000}\n":                                   "1000000 times",
		"  body: {par: a, times: 99999999999999999999}\n":                      "out of range",
		"  body: " + deep + "\n":                                               "more than 32 brackets inside each other",
		lines(80):                                                              "a value nested deeper than column 128",
	} {
		_, err := configfile.ParseProgram("test.yaml", []byte(programHeader+"program:\n  name: large\n  blocks: {a: {}}\n"+src))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", src, err, want)
		}
	}
	if file, err := configfile.ParseProgram("test.yaml", []byte(programHeader+"program:\n  name: deep\n  blocks: {a: {}}\n"+lines(58))); err != nil || file.Plan.Constructs() != 60 {
		t.Errorf("a program of 60 levels: %v", err)
	}
	// As a value a program may be deeper than a file can hold.
	var x program.Construct = program.Do{Block: "a"}
	for range 100 {
		x = program.Seq{Of: []program.Construct{x}}
	}
	plan, err := program.Compile(&program.Program{Name: "deep", Blocks: []program.Block{{Name: "a"}}, Body: x}, &program.Env{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := configfile.FormatProgram(plan); err == nil || !strings.Contains(err.Error(), "program deep does not fit a file") {
		t.Errorf("a deep program: %v", err)
	}
}

// TestHosted: a program runs on the processes of one synchronizer, and stands under
// the predicates of that one.
func TestHosted(t *testing.T) {
	const rest = "program: {name: x, blocks: {a: {}}, body: a}\n"
	const threads = "synchronizers:\n  s: {members: {group: g}}\n  t: {parent: s, members: {threads: 2}, predicates: {p: {when: len(members) > 1, signal: {kind: cancel, region: a}}}}\n"
	for src, want := range map[string]string{
		rest: "",
		"synchronizers: {s: {members: {group: g}}}\n" + rest: "",
		threads + rest: "",
		"synchronizers: {s: {members: {group: g}}, u: {members: {group: h}, predicates: {p: {when: len(members) > 1}}}}\n" +
			"program: {name: x, blocks: {a: {}}, body: {if: u.p, then: a}}\n": "test.yaml:1:56: synchronizers.u.members: the members of s and of u are processes: a program has one synchronizer of processes, which runs its blocks and judges the predicates of its switches: leave one, and run the others from a file of their own",
		threads + "program: {name: x, blocks: {a: {threads: 2, synchronizer: t}}, body: {do: a, async: [p]}}\n": "test.yaml:4:86: program.body.async[0]: t.p is judged inside each process, and its signals go to threads there",
	} {
		file, err := configfile.ParseToRun("test.yaml", []byte(src))
		switch {
		case want == "" && err != nil:
			t.Errorf("%v\n%s", err, src)
		case want == "" && (file.Host == nil || file.Host.Program == nil):
			t.Errorf("nothing runs the program\n%s", src)
		case want != "" && (err == nil || !strings.HasPrefix(err.Error(), want+"\n")):
			t.Errorf("%v\nwant %s\n%s", err, want, src)
		}
	}
}

// drawType draws the type of a value.
func drawType(t *rapid.T, depth int) program.Type {
	base := program.Base(rapid.IntRange(int(program.Any), int(program.Record)).Draw(t, "base"))
	if depth == 0 {
		base = min(base, program.Duration)
	}
	switch base {
	case program.List:
		elem := drawType(t, depth-1)
		return program.Type{Base: base, Elem: &elem}
	case program.Record:
		var fields []program.Field
		for i := range rapid.IntRange(0, 3).Draw(t, "fields") {
			name := []string{"x", "12", "true"}[i]
			fields = append(fields, program.Field{Name: name, Type: drawType(t, depth-1)})
		}
		return program.Type{Base: base, Fields: fields}
	}
	return program.Type{Base: base}
}

// author draws programs that compile: what it needs it declares.
type author struct {
	t     *rapid.T
	names int
	p     *program.Program
}

func (a *author) pick(list ...string) string { return rapid.SampledFrom(list).Draw(a.t, "word") }

func (a *author) name() string {
	a.names++
	return a.pick("", fmt.Sprintf("c%d", a.names), strconv.Itoa(a.names), fmt.Sprintf("-%d", a.names))
}

func (a *author) limit() time.Duration {
	return time.Duration(rapid.SampledFrom([]int64{0, 1, 1500, 2e9, 90e9}).Draw(a.t, "limit"))
}

func (a *author) block(input program.Type) program.Do {
	b := program.Block{
		Name: fmt.Sprintf("b%d", len(a.p.Blocks)), Group: a.pick("", "g", "h"), Input: input, Threads: rapid.IntRange(0, 2).Draw(a.t, "threads") * 2,
	}
	if rapid.Bool().Draw(a.t, "results") {
		b.Output = drawType(a.t, 2)
	}
	if b.Threads > 0 {
		b.Synchronizer = a.pick("", "threads")
	}
	a.p.Blocks = append(a.p.Blocks, b)
	d := program.Do{Name: a.name(), Block: b.Name, Retry: rapid.IntRange(0, 2).Draw(a.t, "retry"), Deadline: a.limit()}
	if rapid.Bool().Draw(a.t, "under") {
		d.Async = []string{"p", "s.p"}[:rapid.IntRange(1, 2).Draw(a.t, "async")]
	}
	if rapid.Bool().Draw(a.t, "placed") {
		name := fmt.Sprintf("n%d", len(a.p.Processors))
		q := program.Processor{Name: name, Count: rapid.IntRange(0, 3).Draw(a.t, "count"), Cores: rapid.IntRange(0, 3).Draw(a.t, "cores")}
		if rapid.Bool().Draw(a.t, "labelled") {
			q.Labels = []string{"true", "x-1"}
		}
		a.p.Processors = append(a.p.Processors, q)
		d.On = name
	}
	return d
}

func (a *author) construct(depth int) program.Construct {
	kind := rapid.IntRange(0, 8).Draw(a.t, "kind")
	if depth == 0 {
		kind = 8
	}
	var els program.Construct
	if depth > 0 && rapid.IntRange(0, 3).Draw(a.t, "else") == 0 {
		els = a.construct(depth - 1)
	}
	some := func() (list []program.Construct) {
		for range rapid.IntRange(1, 3).Draw(a.t, "of") {
			list = append(list, a.construct(depth-1))
		}
		return list
	}
	input := a.pick("", `{"a":[1,2.50,-1e-3,null,true],"b":{"c":"x: \"y\", #1"}}`, `"1"`, `[]`, `"<é\n>"`)
	switch kind {
	case 0:
		return program.Seq{Name: a.name(), Of: some(), Deadline: a.limit(), Else: els}
	case 1:
		return program.Par{Name: a.name(), Of: some(), Join: a.pick("", "p", "s.q"), Deadline: a.limit(), Else: els}
	case 2:
		return program.Par{Name: a.name(), Of: []program.Construct{a.construct(depth - 1)}, Times: rapid.IntRange(1, 9).Draw(a.t, "times"), Join: a.pick("", "u.q"), Else: els}
	case 3:
		return program.If{Name: a.name(), When: a.pick("p", "s.q"), Then: a.construct(depth - 1), Else: els, Deadline: a.limit()}
	case 4:
		return program.Case{Name: a.name(), Of: []program.When{{When: "u.q", Then: a.construct(depth - 1)}, {When: "p", Then: a.construct(depth - 1)}}, Else: els}
	case 5:
		return program.While{Name: a.name(), When: "p", Do: a.construct(depth - 1), Input: input, Deadline: a.limit(), Else: els}
	case 6:
		return program.DoUntil{Name: a.name(), Until: "p", Do: a.construct(depth - 1), Input: input, Else: els}
	case 7:
		first := a.block(program.Type{})
		a.names++
		first.Name, a.p.Blocks[len(a.p.Blocks)-1].Output = fmt.Sprintf("first%d", a.names), drawType(a.t, 2)
		second := a.block(program.Type{Base: program.Any})
		second.From = first.Name + ".result"
		return program.Seq{Of: []program.Construct{first, second}, Else: els}
	}
	d := a.block(program.Type{Base: program.Any})
	d.Input, d.Else = input, els
	return d
}

// TestProgramsAreKept writes random programs and reads the same from it.
func TestProgramsAreKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := &author{t: t, p: &program.Program{Name: "p"}}
		a.p.Body = a.construct(3)
		plan, err := program.Compile(a.p, &program.Env{
			Predicates: []program.Predicate{
				{Synchronizer: "s", Name: "p", Signals: true}, {Synchronizer: "s", Name: "q"}, {Synchronizer: "u", Name: "q"},
			},
			Groups: []string{"g", "h"}, ThreadLevels: []program.ThreadLevel{{Name: "threads", Min: 2, Max: 4}},
		})
		if err != nil {
			t.Fatal(err)
		}
		text, err := configfile.FormatProgram(plan)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		file, err := configfile.ParseProgram("kept", append([]byte(programHeader), text...))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if diff := cmp.Diff(a.p, file.Program); diff != "" {
			t.Fatalf("-written +read:\n%s\n%s", diff, text)
		}
	})
}

// TestFormatFile writes a Go value with synchronizers, and with none, and refuses what
// is wrong in either.
func TestFormatFile(t *testing.T) {
	p := &program.Program{Name: "x", Blocks: []program.Block{{Name: "a", Group: "processors"}}, Body: program.Do{Block: "a"}}
	for _, head := range []string{"", "\n", "synchronizers: {s: {members: {group: processors}}}", "synchronizers: {s: {members: {group: processors}}}\r\n\n"} {
		text, err := configfile.FormatFile("x.yaml", []byte(head), p)
		if err != nil {
			t.Fatalf("%q: %v", head, err)
		}
		file, err := configfile.ParseProgram("x.yaml", text)
		if err != nil || !cmp.Equal(p, file.Program) {
			t.Errorf("%q: %v\n%s", head, err, text)
		}
	}
	for head, want := range map[string]string{
		"synchronizers: {s: {members: {group: g}}}":              "x.yaml: program x:\nblocks.a.group: no synchronizer has the members of group \"processors\"",
		"synchronizers: {s: {member: 1}}":                        "x.yaml:1:17: synchronizers.s: missing key \"members\"",
		"synchronizers: {}\nprogram: {}":                         "x.yaml:2:1: program: unknown key",
		"{synchronizers: {s: {members: {group: processors}}}}\n": "x.yaml:2:1: not valid YAML",
	} {
		if _, err := configfile.FormatFile("x.yaml", []byte(head), p); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", head, err, want)
		}
	}
	if _, err := configfile.FormatFile("x.yaml", nil, &program.Program{Name: "x", Body: &program.Do{Block: "a"}}); err == nil || !strings.Contains(err.Error(), "body: *program.Do is no construct of a program: hand in the value, not a pointer to it") {
		t.Errorf("a pointer: %v", err)
	}
}

// FuzzProgram reads any text; a program that is accepted can be drawn, and
// written and read again.
func FuzzProgram(f *testing.F) {
	for _, name := range []string{"integrate", "images", "search"} {
		src, err := os.ReadFile("../../configs/programs/" + name + ".yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(src))
	}
	f.Add(programHeader + "program:\n  name: x\n  blocks: {a: {}}\n  body: {while: s.p, do: {par: a, times: 3, join: u.q}}\n")
	f.Fuzz(func(t *testing.T, src string) {
		file, err := configfile.ParseProgram("fuzz", []byte(src))
		if err != nil {
			return
		}
		if file.Plan.Constructs() > 0 && len(file.Plan.Draw().SVG()) == 0 {
			t.Error("nothing drawn")
		}
		text, err := configfile.FormatProgram(file.Plan)
		if err != nil {
			return // It may be longer as it is written than it was.
		}
		var head string
		for _, section := range strings.SplitAfter(src, "\nprogram:")[:1] {
			head = strings.TrimSuffix(section, "program:")
		}
		again, err := configfile.ParseProgram("again", append([]byte(head), text...))
		if err != nil {
			return // The sections stood in another order.
		}
		if diff := cmp.Diff(file.Program, again.Program); diff != "" {
			t.Errorf("-first +second:\n%s", diff)
		}
	})
}

// TestInputsGoRound: what an input may say, a file can be written with.
func TestInputsGoRound(t *testing.T) {
	for _, text := range []string{`x\u2028y`, `\u2029`, `\x7f`, `\u0085`, `\u009f\u0080`, `\ufeff`, `a\nb\tc`, `\U0001F600`} {
		src := "program:\n  name: p\n  blocks: {a: {input: any, output: any}}\n  body: {do: a, input: [\"" + text + "\", {\"" + text + "\": 1}]}\n"
		file, err := configfile.ParseProgram("p.yaml", []byte(src))
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		again, err := configfile.FormatProgram(file.Plan)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		other, err := configfile.ParseProgram("p.yaml", again)
		if err != nil || !reflect.DeepEqual(other.Plan, file.Plan) {
			t.Errorf("%q: %v\n%s", text, err, again)
		}
	}
}
