package predicates_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// judge compiles and evaluates a condition.
func judge(tb testing.TB, e *predicates.Env, s *predicates.Scope, src string) predicates.Verdict {
	tb.Helper()
	p, err := e.Bool(src)
	if err != nil {
		tb.Fatalf("%s\n%v", src, err)
	}
	v := p.Eval(s)
	if (v.Truth == predicates.Unknown) != (v.Reason != "") {
		tb.Fatalf("%s: verdict %s with the reason %q", src, v.Truth, v.Reason)
	}
	return v
}

func truthValue(x predicates.Truth) scgs.Value {
	if x == predicates.Unknown {
		return scgs.Value{}
	}
	return scgs.BoolValue(x == predicates.True)
}

// TestKleene pins the truth tables of strong Kleene logic, on operands that are
// variables and on conditions of one member.
func TestKleene(t *testing.T) {
	const u, no, ok = predicates.Unknown, predicates.False, predicates.True
	tables := []struct {
		src  string
		want [9]predicates.Truth // a, b = ff, fu, ft, uf, uu, ut, tf, tu, tt
	}{
		{"%a && %b", [9]predicates.Truth{no, no, no, no, u, u, no, u, ok}},
		{"%a and %b", [9]predicates.Truth{no, no, no, no, u, u, no, u, ok}},
		{"%a || %b", [9]predicates.Truth{no, u, ok, u, u, ok, ok, ok, ok}},
		{"%a or %b", [9]predicates.Truth{no, u, ok, u, u, ok, ok, ok, ok}},
		{"!%a", [9]predicates.Truth{ok, ok, ok, u, u, u, no, no, no}},
		{"not %b", [9]predicates.Truth{ok, u, no, ok, u, no, ok, u, no}},
		{"%a == %b", [9]predicates.Truth{ok, u, no, u, u, u, no, u, ok}},
		{"%a != %b", [9]predicates.Truth{no, u, ok, u, u, u, ok, u, no}},
		{"%a ? %b : %b", [9]predicates.Truth{no, u, ok, no, u, ok, no, u, ok}},
		{"%a ? %b : true", [9]predicates.Truth{ok, ok, ok, u, u, ok, no, u, ok}},
		{"%a ? 1 < 2 : %b", [9]predicates.Truth{no, u, ok, u, u, ok, ok, ok, ok}},
		{"(%a ? 1 : 2) < (%b ? 2 : 3)", [9]predicates.Truth{ok, u, no, ok, u, u, ok, ok, ok}},
		{"%a or not %a", [9]predicates.Truth{ok, ok, ok, u, u, u, ok, ok, ok}},
	}
	fields := scgs.Schema{{Name: "a", Type: scgs.Bool}, {Name: "b", Type: scgs.Bool}}
	e := &predicates.Env{State: fields, Memory: fields}
	s := predicates.NewScope(e)
	s.Reset([]predicates.Member{{Name: "m"}})
	for _, table := range tables {
		for i, want := range table.want {
			a, b := []predicates.Truth{no, u, ok}[i/3], []predicates.Truth{no, u, ok}[i%3]
			s.SetMemory(0, truthValue(a))
			s.SetMemory(1, truthValue(b))
			s.Set(0, []scgs.Value{truthValue(a), truthValue(b)})
			inMemory := strings.NewReplacer("%a", "memory.a", "%b", "memory.b").Replace(table.src)
			ofMember := "any(members, " + strings.NewReplacer("%a", ".a", "%b", ".b").Replace(table.src) + ")"
			for _, src := range []string{inMemory, ofMember} {
				if got := judge(t, e, s, src); got.Truth != want {
					t.Errorf("%s with a=%s b=%s: got %s, want %s", src, a, b, got.Truth, want)
				}
			}
		}
	}
}

// TestAggregatesAreTight compares the aggregates with a reference that tries
// every way the unknown members could be: the verdict is known exactly where
// all ways agree. The group is filtered by a field that can be unknown too.
func TestAggregatesAreTight(t *testing.T) {
	e := &predicates.Env{State: scgs.Schema{{Name: "ready", Type: scgs.Bool}, {Name: "in", Type: scgs.Bool}}}
	s := predicates.NewScope(e)
	for _, test := range quantifiers() {
		p, err := e.Bool(test.src)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 4 {
			s.Reset(make([]predicates.Member, n))
			forStates(n, func(states []state) {
				for i, m := range states {
					s.Set(i, []scgs.Value{truthValue(m.ready), truthValue(m.in)})
				}
				if got, want := p.Eval(s).Truth, allWays(states, test.of); got != want {
					t.Errorf("%s on %v: got %s, want %s", test.src, states, got, want)
				}
			})
		}
	}
}

// state is a member of the reference.
type state struct{ ready, in predicates.Truth }

type quantifier struct {
	src string
	of  func(yes, size int) predicates.Truth
}

// quantifiers are the aggregates with their meaning on known members.
func quantifiers() []quantifier {
	over := func(name string, of func(yes, size int) bool) quantifier {
		return quantifier{name + "(filter(members, .in), .ready)", func(yes, size int) predicates.Truth {
			if size == 0 {
				return predicates.Unknown
			}
			return truthOf(of(yes, size))
		}}
	}
	list := []quantifier{
		over("all", func(yes, size int) bool { return yes == size }),
		over("any", func(yes, _ int) bool { return yes > 0 }),
		over("none", func(yes, _ int) bool { return yes == 0 }),
		over("one", func(yes, _ int) bool { return yes == 1 }),
	}
	for k := range 4 {
		for op, of := range map[string]func(yes int) bool{
			">=": func(yes int) bool { return yes >= k },
			"<":  func(yes int) bool { return yes < k },
		} {
			list = append(list, quantifier{fmt.Sprintf("count(filter(members, .in), .ready) %s %d", op, k), func(yes, _ int) predicates.Truth { return truthOf(of(yes)) }})
		}
	}
	return list
}

func truthOf(b bool) predicates.Truth {
	if b {
		return predicates.True
	}
	return predicates.False
}

// forStates calls do with every combination of known and unknown fields.
func forStates(n int, do func([]state)) {
	states := make([]state, n)
	var fill func(i int)
	fill = func(i int) {
		if i == n {
			do(states)
			return
		}
		for _, ready := range []predicates.Truth{predicates.Unknown, predicates.False, predicates.True} {
			for _, in := range []predicates.Truth{predicates.Unknown, predicates.False, predicates.True} {
				states[i] = state{ready, in}
				fill(i + 1)
			}
		}
	}
	fill(0)
}

// allWays is what every completion of the states agrees on.
func allWays(states []state, of func(yes, size int) predicates.Truth) predicates.Truth {
	seen := map[predicates.Truth]bool{}
	var try func(i, yes, size int)
	try = func(i, yes, size int) {
		if i == len(states) {
			seen[of(yes, size)] = true
			return
		}
		m := states[i]
		if m.in != predicates.True {
			try(i+1, yes, size)
		}
		if m.in == predicates.False {
			return
		}
		if m.ready != predicates.False {
			try(i+1, yes+1, size+1)
		}
		if m.ready != predicates.True {
			try(i+1, yes, size+1)
		}
	}
	try(0, 0, 0)
	if len(seen) != 1 {
		return predicates.Unknown
	}
	for v := range seen {
		return v
	}
	return predicates.Unknown
}
