package predicates_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/expr-lang/expr"

	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// TestHostile refuses, in this process, texts that kill or stall a process
// which compiles or runs them with expr as it is.
func TestHostile(t *testing.T) {
	var doubling, groups strings.Builder
	for i := range 26 {
		fmt.Fprintf(&doubling, "let a%d = a%d + a%d; ", i+1, i, i)
		fmt.Fprintf(&groups, "let g%d = filter(g%d, any(g%d, true)); ", i+1, i, i)
	}
	chain := strings.Repeat("(0 < ", 60) + "1" + strings.Repeat(" < 2 ? 1 : 0)", 60)
	tests := []struct{ name, src, message string }{
		{"memory", `len(repeat(repeat("x",900000),900000)) > 0`, `the function "repeat" of expr`},
		{"replace", `len(replace(repeat("a",400000),"a",repeat("b",90000))) > 0`, `the function "replace" of expr`},
		{"brackets", strings.Repeat("(", 1_000_000) + "1", "1000001 bytes"},
		{"exclamations", strings.Repeat("!", 1_000_000) + "true", "1000004 bytes"},
		{"lists", strings.Repeat("[", 1_000_000), "1000000 bytes"},
		{"short brackets", strings.Repeat("(", 2000) + "1" + strings.Repeat(")", 2000), "nested deeper than 64"},
		{"short exclamations", strings.Repeat("!", 4000) + "true", "nested deeper than 64"},
		{"short minuses", strings.Repeat("-", 4000) + "1 > 0", "nested deeper than 64"},
		{"nots", strings.Repeat("not ", 1000) + "true", "nested deeper than 64"},
		{"mixed", strings.Repeat("!(", 1000) + "true", "nested deeper than 64"},
		{"functions", strings.Repeat("abs(", 900) + "1", "nested deeper than 64"},
		{"doubling strings", "any(members, let a0 = .tag; " + doubling.String() + "a26 == .tag)", "+ does not join"},
		{"nested loops", "all(members, all(members, all(members, .ready)))", "more than 2 loops"},
		{"two loops", "all(members, let l = .x; any(members, .x > l))", "more than 50000 steps"},
		{"loop of a filter", "any(members, let l = .x; len(filter(members, .x > l)) > 2)", "more than 50000 steps"},
		{"doubling groups", "let g0 = members; " + groups.String() + "len(g26) > 0", "more than 2 loops"},
		{"doubling comparisons", chain + " > 0", "more than 50000 steps"},
		{"ternaries", strings.Repeat("true?true:", 400) + "true", "more than 500 parts"},
		{"sums", "1" + strings.Repeat("+1", 600) + " > 0", "more than 500 parts"},
		{"dynamic pattern", "any(members, .tag matches .tag)", "operator matches"},
		{"fixed pattern", `any(members, .tag matches "a.*")`, "operator matches"},
		{"ranges", "len(map(1..1000000, map(1..1000000, #))) > 0", "operator .."},
		{"huge range", "len(1..9223372036854775807) > 0", "operator .."},
		{"sortBy", "len(map(members, sortBy(members, .x))) > 0", `the function "sortBy"`},
		{"concat", "len(concat(members, members)) > 0", `the function "concat"`},
		{"fromJSON", `fromJSON("[[[[") == 1`, `the function "fromJSON"`},
		{"flatten", "len(flatten([[[1]]])) > 0", `the function "flatten"`},
		{"clock", "now().Year() > 0", `the function "now"`},
		{"keys", "len(keys(memory)) > 0", `the function "keys"`},
		{"values", "len(values(memory)) > 0", `the function "values"`},
		{"toPairs", "len(toPairs(memory)) > 0", `the function "toPairs"`},
		{"pipe", `"x" | repeat(900000) | len() > 0`, `the function "repeat"`},
		{"root prefix", `::repeat("x", 900000) == ""`, `the function "repeat"`},
		{"environment", `$env["members"] == 1`, `unknown name "$env"`},
		{"long string", `any(members, .tag == "` + strings.Repeat("x", 300) + `")`, "at most 256 bytes"},
		{"not UTF-8", "true and \xff", "not valid UTF-8"},
		{"nothing", " // nothing", "the text is empty"},
		{"zero byte", "true \x00", "unrecognized character"},
	}
	e := testEnv()
	e.MaxMembers = 0
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, err := range compileAll(e, test.src) {
				var fault *predicates.Error
				if !errors.As(err, &fault) {
					t.Fatalf("accepted, or refused without a position: %v", err)
				}
				if !strings.Contains(fault.Message, test.message) {
					t.Errorf("got %q, want %q", fault.Message, test.message)
				}
				if n := len(err.Error()); n > 1000 {
					t.Errorf("the message has %d bytes", n)
				}
			}
		})
	}
}

func compileAll(e *predicates.Env, src string) []error {
	_, asBool := e.Bool(src)
	_, asValue := e.Value(src, scgs.Field{})
	_, asMembers := e.Members(src)
	return []error{asBool, asValue, asMembers}
}

// TestEveryFunctionOfExpr is the allow-list: what expr has and we do not is
// refused by its name.
func TestEveryFunctionOfExpr(t *testing.T) {
	e := testEnv()
	allowed := map[string]bool{}
	for _, name := range predicates.Functions() {
		allowed[name] = true
	}
	refused := 0
	for _, name := range exprFunctions(t) {
		_, err := e.Bool(name + "(members, true) == 1")
		if named := err != nil && strings.Contains(err.Error(), "of expr is not part"); named == allowed[name] {
			t.Errorf("%s: allowed %v, but: %v", name, allowed[name], err)
		}
		if !allowed[name] {
			refused++
		}
	}
	if refused < 40 {
		t.Errorf("only %d functions of expr are refused", refused)
	}
}

// TestCost holds the bounds of steps at the limit, and their growth.
func TestCost(t *testing.T) {
	for _, test := range []struct {
		limit int
		src   string
		fits  bool
	}{
		{1000, `all(members, .phase == "idle" and .x < 2.5 and .n in [1, 2, 3] and not .ready)`, true},
		{1000, `mean(map(members, .x)) > 1 and count(members, .x > 2 * memory.y) >= 2 and sum(members, .n) == 0`, true},
		{10000, `all(members, .phase == "idle")`, true},
		{100_000, `all(members, .phase == "idle" and .x < 2.5) and mean(map(members, .x)) > 1`, true},
		{10_000, `any(members, .x > memory.y)`, true},
		{20_000, `any(members, .x > memory.y)`, false},
		{1_000_000, `all(members, .phase == "idle")`, true},
		{2_000_000, `all(members, .phase == "idle")`, false},
		{1000, `any(members, .x > 2 * mean(map(members, .x)))`, true},
		{10_000, `any(members, .x > 2 * mean(map(members, .x)))`, false},
		{100, `all(members, let l = .x; any(members, .x > l))`, true},
		{200, `all(members, let l = .x; any(members, .x > l))`, false},
		{1 << 62, `all(members, all(members, .ready))`, false},
		{1 << 62, `true`, true},
	} {
		e := testEnv()
		e.MaxMembers = test.limit
		p, err := e.Bool(test.src)
		if (err == nil) != test.fits {
			t.Errorf("%s with %d members: %v", test.src, test.limit, err)
		}
		if err == nil && (p.Cost() < 1 || p.Cost() > predicates.MaxSteps || p.Setup() > predicates.MaxSetup) {
			t.Errorf("%s with %d members costs %d, and %d to set up", test.src, test.limit, p.Cost(), p.Setup())
		}
	}
}

// FuzzCompile feeds any text to the compiler: it must answer with a program or
// a placed error, a program must evaluate, and expr must accept it too.
func FuzzCompile(f *testing.F) {
	for _, src := range []string{
		"true", `all(members, .phase == "idle")`, "count(members, .ready) >= 2", "let m = mean(map(members, .x)); any(members, .x > 2 * m)",
		"members | filter(.ready) | map(.n) | sum() > 2", `from_parent.go.limit > memory.k`, "memory.b ? 1 < 2 : 3.5 > .5", "find(members, .ready).x > 2",
		`any(members, .wait > duration("1s")) // why`, `1 in [1, 2]`, "if memory.b { true } else { false }", "(((", "!-+not", "a.b[c](d){", "\"\\u{41}'`", "1..2", "#", "all(members, {.ready})",
	} {
		f.Add(src)
	}
	e := testEnv()
	env := expr.Env(exprEnv(e))
	f.Fuzz(func(t *testing.T, src string) {
		s := fuzzScope(e)
		compileAll(e, src)
		p, err := e.Bool(src)
		if err != nil {
			checkError(t, src, err)
			return
		}
		if v := p.Eval(s); (v.Truth == predicates.Unknown) != (v.Reason != "") {
			t.Fatalf("%q: %v", src, v)
		}
		// What we fold at evaluation, expr may refuse as a constant.
		if _, err := expr.Compile(src, env, expr.AsBool(), expr.Optimize(false)); err != nil {
			t.Fatalf("%q is accepted, but not by expr: %v", src, err)
		}
	})
}

func fuzzScope(e *predicates.Env) *predicates.Scope {
	s := predicates.NewScope(e)
	s.Reset([]predicates.Member{{Name: "a"}, {Name: "b"}, {Name: "c"}})
	for i := range 2 {
		s.Set(i, []scgs.Value{
			scgs.BoolValue(i == 0), scgs.IntValue(int64(i)), scgs.FloatValue(float64(i) / 2),
			scgs.EnumValue("idle"), scgs.StringValue("p"),
			{},
		})
	}
	return s
}

func checkError(t *testing.T, src string, err error) {
	t.Helper()
	var fault *predicates.Error
	if !errors.As(err, &fault) || fault.Message == "" || fault.Line < 1 || fault.Column < 1 {
		t.Fatalf("%q: an error without a place: %#v", src, err)
	}
	if len(err.Error()) > 8000 {
		t.Fatalf("%q: the message has %d bytes", src, len(err.Error()))
	}
}
