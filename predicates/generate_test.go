package predicates_test

import (
	"fmt"
	"math"
	"regexp"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// testEnv declares a field of each type; its member limit affords two loops.
func testEnv() *predicates.Env {
	words := []string{"idle", "search", "stop"}
	return &predicates.Env{
		State: scgs.Schema{
			{Name: "ready", Type: scgs.Bool},
			{Name: "n", Type: scgs.Int},
			{Name: "x", Type: scgs.Float},
			{Name: "phase", Type: scgs.Enum, Words: words},
			{Name: "tag", Type: scgs.String},
			{Name: "wait", Type: scgs.Duration},
		},
		Memory:     scgs.Schema{{Name: "b", Type: scgs.Bool}, {Name: "k", Type: scgs.Int}, {Name: "y", Type: scgs.Float}},
		Parent:     []predicates.ParentSignal{{Name: "go", Fields: scgs.Schema{{Name: "limit", Type: scgs.Int}}}},
		MaxMembers: 5,
	}
}

// listEnv is testEnv with lists.
func listEnv() *predicates.Env {
	e := testEnv()
	e.State = append(e.State, scgs.Field{Name: "tags", Type: scgs.ListOf(scgs.String)}, scgs.Field{Name: "xs", Type: scgs.ListOf(scgs.Float)})
	return e
}

// source draws texts. Each rule gives an operand in brackets where it needs
// them, so precedence is not at stake here.
type source struct {
	t     *rapid.T
	loops int
	lists bool // the state has those of listEnv
}

func (g *source) pick(options ...func() string) string {
	return options[rapid.IntRange(0, len(options)-1).Draw(g.t, "rule")]()
}

func (g *source) word(words ...string) string { return rapid.SampledFrom(words).Draw(g.t, "word") }

func (g *source) boolean(depth int) string {
	leaves := []func() string{
		func() string { return g.word("true", "false", "memory.b") },
		func() string {
			return "(" + g.number(0) + g.word(" < ", " <= ", " == ", " != ", " > ", " >= ") + g.number(0) + ")"
		},
	}
	if g.loops > 0 {
		leaves = append(leaves,
			func() string { return g.word(".ready", `(.tag == "p")`, `(.name != "m1")`, `(.host == "h1")`) },
			func() string { return "(.phase" + g.word(" == ", " != ") + g.word(`"idle"`, `"search"`) + ")" },
			func() string {
				return "(.wait" + g.word(" < ", " >= ", " == ") + g.word(`duration("1s")`, `duration("2s")`) + ")"
			},
			func() string {
				return "(.phase" + g.word(" in ", " not in ") + g.word(`["idle"]`, `["stop", "search"]`, "[]") + ")"
			},
		)
	}
	if g.loops > 0 && g.lists {
		leaves = append(leaves,
			func() string { return "(" + g.word(`"p"`, ".tag", ".name") + g.word(" in ", " not in ") + ".tags)" },
			func() string { return "(0.5 in .xs)" },
			func() string { return g.list("tags", `# == "p"`, `# != "q"`) },
			func() string { return g.list("xs", "# > 0.5", "# == 1.0") },
		)
	}
	if depth == 0 {
		return g.pick(leaves...)
	}
	d := depth - 1
	inner := []func() string{
		func() string {
			return "(" + g.boolean(d) + g.word(" && ", " || ", " and ", " or ", " == ") + g.boolean(d) + ")"
		},
		func() string { return g.word("!", "not ") + "(" + g.boolean(d) + ")" },
		func() string { return "(" + g.boolean(d) + " ? " + g.boolean(d) + " : " + g.boolean(d) + ")" },
		func() string {
			return "(" + g.number(d) + g.word(" < ", " <= ", " == ", " != ", " > ", " >= ") + g.number(d) + ")"
		},
		func() string { return "(" + g.number(d) + " in [" + g.number(0) + ", 1, 2.5])" },
		func() string { return "(0 < " + g.number(d) + " <= 2)" },
	}
	if g.loops < predicates.MaxLoops {
		inner = append(inner,
			func() string { return g.over(g.word("all", "any", "none", "one"), d) },
			func() string { return g.let(d) },
		)
	}
	return g.pick(inner...)
}

func (g *source) number(depth int) string {
	leaves := []func() string{
		func() string { return g.word("0", "1", "-2", "3", "0.5", "2.5") },
		func() string { return g.word("memory.k", "memory.y", "from_parent.go.limit") },
	}
	if g.loops > 0 {
		leaves = append(leaves, func() string { return g.word(".n", ".x") })
	}
	if g.loops > 0 && g.lists {
		leaves = append(leaves, func() string { return g.word("len(.tags)", ".xs[0]", ".xs[2]") })
	}
	if g.loops == 1 && g.lists {
		leaves = append(leaves, func() string {
			return g.word("sum(.xs)", "sum(.xs, # * 2)", "mean(.xs)", "min(.xs)", "max(map(.xs, -#))", "count(.xs, # > 0.5)", "len(filter(.xs, # < 1))")
		})
	}
	if depth == 0 {
		return g.pick(leaves...)
	}
	d := depth - 1
	inner := []func() string{
		func() string { return "(" + g.number(d) + g.word(" + ", " - ", " * ", " / ") + g.number(d) + ")" },
		func() string {
			return g.word("abs", "floor", "ceil", "round", "int", "float") + "(" + g.number(d) + ")"
		},
		func() string { return "(int(" + g.number(d) + ") % int(" + g.number(d) + "))" },
		func() string { return g.word("min", "max") + "(" + g.number(d) + ", " + g.number(d) + ")" },
		func() string { return "(" + g.boolean(d) + " ? " + g.number(d) + " : " + g.number(d) + ")" },
		func() string { return "-(" + g.number(d) + ")" },
	}
	if g.loops < predicates.MaxLoops {
		inner = append(inner,
			func() string { return g.over("count", d) },
			func() string { return "len(" + g.group(d) + ")" },
			func() string { return g.word("min", "max", "mean", "sum") + "(" + g.mapped(d) + ")" },
			func() string { return g.over("find", d) + g.word(".n", ".x") },
		)
	}
	return g.pick(inner...)
}

// list draws a quantifier over a list, where one more loop may stand.
func (g *source) list(field string, conditions ...string) string {
	if g.loops == predicates.MaxLoops {
		return "(len(." + field + ") > 1)"
	}
	return g.word("all", "any", "none", "one") + "(." + field + ", " + g.word(conditions...) + ")"
}

// let draws a named number; the name is unlike those around it.
func (g *source) let(d int) string {
	name := fmt.Sprintf("v%d_%d", g.loops, d)
	return fmt.Sprintf("(let %s = %s; %s > 0)", name, g.number(d), name)
}

// over draws a function over a group with a condition.
func (g *source) over(name string, d int) string {
	group := g.group(d)
	return name + "(" + group + ", " + g.inside(func() string { return g.boolean(d) }) + ")"
}

func (g *source) mapped(d int) string {
	group := g.group(d)
	return "map(" + group + ", " + g.inside(func() string { return g.number(d) }) + ")"
}

func (g *source) group(d int) string {
	if d == 0 || rapid.IntRange(0, 2).Draw(g.t, "filtered") > 0 {
		return "members"
	}
	return "filter(members, " + g.inside(func() string { return g.boolean(d - 1) }) + ")"
}

func (g *source) inside(draw func() string) string {
	g.loops++
	defer func() { g.loops-- }()
	return draw()
}

// drawExpression draws a condition that compiles: the cost bound may refuse one.
func drawExpression(t *rapid.T, e *predicates.Env) *predicates.Expression {
	src := (&source{t: t, lists: e.State.Index("tags") >= 0}).boolean(rapid.IntRange(1, 3).Draw(t, "depth"))
	p, err := e.Bool(src)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return p
}

// drawValue draws a value from few, so that equalities happen; sums of the
// floats are exact.
func drawValue(t *rapid.T, f scgs.Field, infinite bool) scgs.Value {
	if f.Type.IsList() {
		elements := make([]scgs.Value, rapid.IntRange(0, 3).Draw(t, "length"))
		for i := range elements {
			elements[i] = drawValue(t, f.Element(), infinite)
		}
		return scgs.ListValue(f.Type.Elem(), elements...)
	}
	switch f.Type {
	case scgs.Bool:
		return scgs.BoolValue(rapid.Bool().Draw(t, "bool"))
	case scgs.Int:
		return scgs.IntValue(rapid.Int64Range(-3, 3).Draw(t, "int"))
	case scgs.Float:
		floats := []float64{-1.5, 0, 0.5, 1, 2.5}
		if infinite {
			floats = append(floats, math.Inf(1), math.Inf(-1))
		}
		return scgs.FloatValue(rapid.SampledFrom(floats).Draw(t, "float"))
	case scgs.Duration:
		return scgs.DurationValue(rapid.SampledFrom([]time.Duration{0, time.Second, 2 * time.Second}).Draw(t, "duration"))
	case scgs.String:
		return scgs.StringValue(rapid.SampledFrom([]string{"p", "q", ""}).Draw(t, "string"))
	case scgs.Enum:
		return scgs.EnumValue(rapid.SampledFrom(f.Words).Draw(t, "enum"))
	case scgs.Invalid:
	}
	panic("no such type")
}

func drawRow(t *rapid.T, s scgs.Schema, infinite bool) []scgs.Value {
	row := make([]scgs.Value, len(s))
	for i, f := range s {
		row[i] = drawValue(t, f, infinite)
	}
	return row
}

// known is a global state without anything unknown.
type known struct {
	members []predicates.Member
	rows    [][]scgs.Value
	memory  []scgs.Value
	parent  []scgs.Value
}

func drawKnown(t *rapid.T, e *predicates.Env, infinite bool) known {
	var k known
	for i := range rapid.IntRange(1, e.MaxMembers).Draw(t, "members") {
		k.members = append(k.members, predicates.Member{Name: fmt.Sprintf("m%d", i), Host: fmt.Sprintf("h%d", i%2)})
		k.rows = append(k.rows, drawRow(t, e.State, infinite))
	}
	k.memory = drawRow(t, e.Memory, infinite)
	k.parent = drawRow(t, e.Parent[0].Fields, infinite)
	return k
}

func (k known) scope(e *predicates.Env) *predicates.Scope {
	s := predicates.NewScope(e)
	s.Reset(k.members)
	for i, row := range k.rows {
		s.Set(i, row)
	}
	for i, v := range k.memory {
		s.SetMemory(i, v)
	}
	s.SetParent(e.Parent[0].Name, k.parent)
	return s
}

// TestEveryFunctionIsDrawn wants each function in some of the texts that the properties
// are tried with.
func TestEveryFunctionIsDrawn(t *testing.T) {
	drawn := map[string]bool{}
	texts := rapid.Custom(func(t *rapid.T) string { return (&source{t: t, lists: true}).boolean(3) })
	for seed := range 500 {
		for _, call := range calls.FindAllStringSubmatch(texts.Example(seed), -1) {
			drawn[call[1]] = true
		}
	}
	for _, name := range predicates.Functions() {
		if !drawn[name] {
			t.Errorf("no rule of the generator draws %s", name)
		}
	}
}

var calls = regexp.MustCompile(`(\w+)\(`)
