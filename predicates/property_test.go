package predicates_test

import (
	"strings"
	"testing"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/types"
	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// TestExplainAgrees: the operands that Explain tells decide as the whole does, and
// explaining changes nothing.
func TestExplainAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		env := testEnv()
		env.MaxMembers = 2 // Few texts are too dear then.
		g := &source{t: t}
		operator := rapid.SampledFrom([]string{" && ", " || "}).Draw(t, "operator")
		src := g.boolean(1) + operator + g.boolean(2)
		p, err := env.Bool(src)
		if err != nil {
			t.Fatal(err)
		}
		k := drawKnown(t, env, true)
		s := k.scope(env)
		for i := range k.members {
			if rapid.Bool().Draw(t, "unknown") {
				s.SetUnknown(i)
			}
		}
		want := p.Eval(s)
		got := predicates.True
		if operator == " || " {
			got = predicates.False
		}
		for _, part := range p.Explain(s) {
			if part.Depth > 0 {
				continue
			}
			truth := predicates.Unknown
			if part.Low.Type() == scgs.Bool {
				truth = predicates.False
				if part.Low.Bool() {
					truth = predicates.True
				}
			}
			if (truth == predicates.Unknown) != (part.Reason != "") {
				t.Fatalf("%s: %v with reason %q", part.Text, truth, part.Reason)
			}
			got = join(operator, got, truth)
		}
		if got != want.Truth {
			t.Fatalf("%s: the parts say %v, the whole %v\n%+v", src, got, want, p.Explain(s))
		}
		if again := p.Eval(s); again != want {
			t.Fatalf("%s: %v, and %v after it was explained", src, want, again)
		}
	})
}

// TestExplainOfManyMembers: what is affordable only because it is incremental can be
// explained too.
func TestExplainOfManyMembers(t *testing.T) {
	env := testEnv()
	env.MaxMembers = 100_000
	for _, src := range []string{
		"all(members, .ready)",
		"count(members, .n > 0 && .x < 2 && .phase == \"idle\") >= 2 && sum(members, .n) > 3",
		"let m = mean(map(members, .x)); m > 1 || any(filter(members, .ready), .n > 2)",
	} {
		p, err := env.Bool(src)
		if err != nil {
			t.Fatal(err)
		}
		s := predicates.NewScope(env)
		s.Reset([]predicates.Member{{Name: "m0"}, {Name: "m1"}})
		if parts := p.Explain(s); len(parts) == 0 {
			t.Errorf("%s has no parts", src)
		}
	}
}

// join is Kleene's && or ||.
func join(operator string, a, b predicates.Truth) predicates.Truth {
	decides := predicates.False
	if operator == " || " {
		decides = predicates.True
	}
	switch {
	case a == decides || b == decides:
		return decides
	case a == predicates.Unknown || b == predicates.Unknown:
		return predicates.Unknown
	}
	return a
}

// exprType is the declared type of a field for expr's checker.
func exprType(f scgs.Field) types.Type {
	if f.Type.IsList() {
		return types.Array(exprType(f.Element()))
	}
	switch f.Type {
	case scgs.Bool:
		return types.Bool
	case scgs.Int:
		return types.Int
	case scgs.Float:
		return types.Float64
	case scgs.Duration:
		return types.TypeOf(time.Duration(0))
	default:
		return types.String
	}
}

func exprMap(s scgs.Schema) types.Map {
	m := types.Map{}
	for _, f := range s {
		m[f.Name] = exprType(f)
	}
	return m
}

// exprEnv is an Env for expr itself, strict as ours is.
func exprEnv(e *predicates.Env) types.Map {
	member := exprMap(e.State)
	member["name"], member["host"], member["online"] = types.String, types.String, types.Bool
	parent := types.Map{}
	for _, p := range e.Parent {
		parent[p.Name] = exprMap(p.Fields)
	}
	return types.Map{"members": types.Array(member), "memory": exprMap(e.Memory), "from_parent": parent}
}

func exprRow(s scgs.Schema, row []scgs.Value) map[string]any {
	m := map[string]any{}
	for i, f := range s {
		m[f.Name] = row[i].Any()
		if f.Type == scgs.Int { // expr types its literals as int, and fails on mixtures
			m[f.Name] = int(row[i].Int())
		}
	}
	return m
}

// exprState is a known global state for expr.
func (k known) exprState(e *predicates.Env) map[string]any {
	var members []any
	for i, row := range k.rows {
		m := exprRow(e.State, row)
		m["name"], m["host"], m["online"] = k.members[i].Name, k.members[i].Host, true
		members = append(members, m)
	}
	return map[string]any{
		"members":     members,
		"memory":      exprRow(e.Memory, k.memory),
		"from_parent": map[string]any{e.Parent[0].Name: exprRow(e.Parent[0].Fields, k.parent)},
	}
}

// TestAgreesWithExpr compares verdicts with those of expr's own compiler and
// machine, optimised and not, on a Scope that changes, and on which everything is
// known. The differences that are meant, all described in the package's comment:
//
//   - x / 0 and x % 0 are unknown; expr gives an infinity, or fails
//   - all, any, none, one, mean, min and max over an empty group, and find without a match,
//     are unknown; expr gives true, false, 0, or fails
//   - an int that overflows is unknown; in expr it wraps (the ints here are small)
//   - an int and a float are compared exactly; expr rounds the int (the ints here are small)
//   - float sums are exact; expr rounds each addition (the floats here have few bits)
//   - min(1, 0.5) is a float; expr types it as the first argument, and fails
//
// So where ours is unknown, or expr fails, there must be a cause for it in the
// text.
func TestAgreesWithExpr(t *testing.T) {
	e := listEnv()
	env := exprEnv(e)
	agreed := 0
	rapid.Check(t, func(t *rapid.T) {
		p := drawExpression(t, e)
		k := drawKnown(t, e, false)
		s := k.scope(e)
		partial := strings.Contains(p.Source(), "/") || strings.Contains(p.Source(), "%") ||
			strings.Contains(p.Source(), "filter") || strings.Contains(p.Source(), "find") ||
			strings.Contains(p.Source(), ".tags") || strings.Contains(p.Source(), ".xs")
		for range 3 {
			v := p.Eval(s)
			if v.Truth == predicates.Unknown && !partial {
				t.Fatalf("%s is unknown: %s", p.Source(), v.Reason)
			}
			for _, optimise := range []bool{false, true} {
				got, err := runExpr(p.Source(), env, k.exprState(e), optimise)
				switch {
				case err != nil && strings.Contains(err.Error(), "interface conversion"):
				case err != nil && !partial:
					t.Fatalf("expr fails on %s: %v", p.Source(), err)
				case err != nil || v.Truth == predicates.Unknown:
				case got != (v.Truth == predicates.True):
					t.Fatalf("%s: %s, but expr (optimised %v) says %v", p.Source(), v.Truth, optimise, got)
				default:
					agreed++
				}
			}
			i := rapid.IntRange(0, len(k.rows)-1).Draw(t, "member")
			k.rows[i] = drawRow(t, e.State, false)
			s.Set(i, k.rows[i])
		}
	})
	if agreed == 0 {
		t.Error("no text was compared")
	}
}

func runExpr(src string, env types.Map, state map[string]any, optimise bool) (any, error) {
	program, err := expr.Compile(src, expr.Env(env), expr.AsBool(), expr.Optimize(optimise))
	if err != nil {
		return nil, err
	}
	return expr.Run(program, state)
}

// TestKnowledgeOnlySharpens checks that a verdict on a state with unknown parts
// stays as it is, whatever the unknown parts turn out to be.
func TestKnowledgeOnlySharpens(t *testing.T) {
	e := listEnv()
	decided := 0
	rapid.Check(t, func(t *rapid.T) {
		p := drawExpression(t, e)
		k := drawKnown(t, e, true)
		s := k.scope(e)
		hide := func(what string) bool { return rapid.IntRange(0, 3).Draw(t, what) == 0 }
		for i, row := range k.rows {
			partial := append([]scgs.Value(nil), row...)
			for j := range partial {
				if hide("field") {
					partial[j] = scgs.Value{}
				}
			}
			s.Set(i, partial)
			if hide("member") {
				s.SetUnknown(i)
			}
		}
		for i := range k.memory {
			if hide("memory") {
				s.SetMemory(i, scgs.Value{})
			}
		}
		if hide("signal") {
			s.SetParent(e.Parent[0].Name, nil)
		}
		before := p.Eval(s)
		if before.Truth == predicates.Unknown {
			return
		}
		decided++
		if after := p.Eval(k.scope(e)); after != before {
			t.Fatalf("%s was %s with parts unknown, and is %s: %s", p.Source(), before.Truth, after.Truth, after.Reason)
		}
	})
	if decided == 0 {
		t.Error("every verdict was unknown")
	}
}

// exprRunner prepares expr on n members as in benchScope.
func exprRunner(b *testing.B, e *predicates.Env, src string, n int) func() {
	b.Helper()
	program, err := expr.Compile(src, expr.Env(exprEnv(e)), expr.AsBool())
	if err != nil {
		b.Fatal(err)
	}
	members := make([]any, n)
	for i := range members {
		members[i] = map[string]any{
			"ready": true, "n": i, "x": 0.5, "phase": "idle", "tag": "p", "wait": time.Duration(1), "name": "", "host": "", "online": true,
		}
	}
	state := map[string]any{"members": members}
	return func() {
		if _, err := expr.Run(program, state); err != nil {
			b.Fatal(err)
		}
	}
}
