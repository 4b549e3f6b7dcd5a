package predicates_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/expr-lang/expr/builtin"

	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

func exprFunctions(t *testing.T) []string {
	t.Helper()
	if len(builtin.Names) == 0 {
		t.Fatal("expr lists no functions")
	}
	return builtin.Names
}

func Example() {
	env := &predicates.Env{
		State:  scgs.Schema{{Name: "phase", Type: scgs.Enum, Words: []string{"idle", "search"}}, {Name: "load", Type: scgs.Float}},
		Memory: scgs.Schema{{Name: "best", Type: scgs.Float}},
	}
	allIdle, err := env.Bool(`all(members, .phase == "idle")`)
	if err != nil {
		fmt.Println(err)
		return
	}
	busy, err := env.Members(`let m = mean(map(members, .load)); filter(members, .load > m)`)
	if err != nil {
		fmt.Println(err)
		return
	}

	scope := predicates.NewScope(env)
	scope.Reset([]predicates.Member{{Name: "w1"}, {Name: "w2"}})
	scope.Set(0, []scgs.Value{scgs.EnumValue("idle"), scgs.FloatValue(0.5)})
	fmt.Println(allIdle.Eval(scope).Truth, "because", allIdle.Eval(scope).Reason)

	scope.Set(1, []scgs.Value{scgs.EnumValue("search"), scgs.FloatValue(2)})
	receivers, _ := busy.EvalMembers(nil, scope)
	fmt.Println(allIdle.Eval(scope).Truth, receivers)

	_, err = env.Bool(`all(members, .phase == "idel")`)
	fmt.Println(err)
	// Output:
	// unknown because the state of member w2 is unknown
	// false [1]
	// 1:24: "idel" is not a word of this enum
	//   all(members, .phase == "idel")
	//                          ^
	//   did you mean "idle"? declared words: idle, search
}

// TestSharedExpression evaluates one expression on many scopes at once.
func TestSharedExpression(t *testing.T) {
	e := testEnv()
	p, err := e.Bool("let m = mean(map(members, .n)); count(members, .n > m) == 2")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			s := predicates.NewScope(e)
			s.Reset(make([]predicates.Member, 4))
			for round := range 100 {
				for i := range 4 {
					row := make([]scgs.Value, len(e.State))
					row[1] = scgs.IntValue(int64(i * (g + round + 1)))
					s.Set(i, row)
				}
				if v := p.Eval(s); v.Truth != predicates.True {
					t.Errorf("got %v", v)
					return
				}
			}
		})
	}
	wg.Wait()
}

// TestScope follows a scope through updates and epochs.
func TestScope(t *testing.T) {
	e := testEnv()
	s := predicates.NewScope(e)
	row := make([]scgs.Value, len(e.State))
	row[0], row[1] = scgs.BoolValue(true), scgs.IntValue(3)
	step := func(name string, do func(), src, want string) {
		t.Helper()
		do()
		v := judge(t, e, s, src)
		if got := strings.TrimSpace(v.Truth.String() + " " + v.Reason); got != want {
			t.Errorf("%s: %s is %q, want %q", name, src, got, want)
		}
	}
	step("new", func() {}, "len(members) == 0", "true")
	step("reset", func() { s.Reset([]predicates.Member{{Name: "a"}, {Name: "b"}}) }, "any(members, .ready)", "unknown the state of member a is unknown")
	step("set", func() { s.Set(0, row) }, "any(members, .ready)", "true")
	step("copied", func() { row[0] = scgs.BoolValue(false) }, "any(members, .ready)", "true")
	step("lost", func() { s.SetUnknown(0) }, "any(members, .ready)", "unknown the state of member a is unknown")
	step("offline", func() {}, "none(members, .online)", "true")
	step("missing", func() { s.Set(1, make([]scgs.Value, len(row))) }, `any(filter(members, .name == "b"), .ready)`, "unknown member b has no value for ready")
	step("wrong type", func() {
		row[0] = scgs.IntValue(1)
		s.Set(1, row)
	}, `any(filter(members, .name == "b"), .ready)`, "unknown member b has no value for ready")
	step("memory", func() { s.SetMemory(1, scgs.IntValue(4)) }, "memory.k == 4", "true")
	step("parent", func() { s.SetParent("go", []scgs.Value{scgs.IntValue(5)}) }, "from_parent.go.limit == 5", "true")
	step("parent without value", func() { s.SetParent("go", make([]scgs.Value, 1)) }, "from_parent.go.limit == 5", "unknown the parent's last signal go has no value for limit")
	step("other signal", func() { s.SetParent("other", nil) }, "memory.k == 4", "true")
	step("epoch", func() {
		s.Set(0, row)
		s.Reset([]predicates.Member{{Name: "c"}})
	}, "any(members, .online and .ready)", "false")
	step("epoch unknown", func() {}, "any(members, .ready)", "unknown the state of member c is unknown")
	step("memory stays", func() {}, "memory.k == 4", "true")
	if s.Len() != 1 {
		t.Errorf("%d members", s.Len())
	}
}

// TestScopePanics pins the texts of our own broken invariants.
func TestScopePanics(t *testing.T) {
	e := testEnv()
	p, err := e.Bool("true")
	if err != nil {
		t.Fatal(err)
	}
	s := predicates.NewScope(e)
	s.Reset([]predicates.Member{{Name: "a"}})
	for name, test := range map[string]struct {
		do   func()
		want string
	}{
		"row":    {func() { s.Set(0, nil) }, "member a: 0 values for 6 fields"},
		"signal": {func() { s.SetParent("go", make([]scgs.Value, 2)) }, "signal go: 2 values for 1 fields"},
		"env":    {func() { p.Eval(predicates.NewScope(testEnv())) }, "compiled for another Env"},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if r := recover(); !strings.Contains(fmt.Sprint(r), test.want) {
					t.Errorf("got %v, want %s", r, test.want)
				}
			}()
			test.do()
		})
	}
}

// TestMembersKeepsDst appends behind what is there.
func TestMembersKeepsDst(t *testing.T) {
	e := testEnv()
	p, err := e.Members(" all ")
	if err != nil {
		t.Fatal(err)
	}
	s := predicates.NewScope(e)
	s.Reset(make([]predicates.Member, 2))
	if got, reason := p.EvalMembers([]int{7}, s); !slices.Equal(got, []int{7, 0, 1}) || reason != "" || p.Source() != " all " {
		t.Errorf("got %v %q of %q", got, reason, p.Source())
	}
}

// benchScope has n members that are all known and idle.
func benchScope(e *predicates.Env, n int) *predicates.Scope {
	s := predicates.NewScope(e)
	s.Reset(make([]predicates.Member, n))
	for i := range n {
		s.Set(i, []scgs.Value{
			scgs.BoolValue(true), scgs.IntValue(int64(i)), scgs.FloatValue(0.5),
			scgs.EnumValue("idle"), scgs.StringValue("p"), scgs.DurationValue(1),
		})
	}
	return s
}

var benchSources = map[string]string{
	"all":  `all(members, .phase == "idle")`,
	"mean": `sum(members, .x) / len(members) > 0.8`,
	"two":  `all(members, .ready and .x > .4) and count(members, .n > 3) > 2`,
	"let":  `let m = mean(map(members, .x)); any(members, .x > 2 * m)`,
}

// TestEvalAllocatesNothing holds on known states; a reason is a new text.
func TestEvalAllocatesNothing(t *testing.T) {
	e := testEnv()
	s := benchScope(e, 100)
	for name, src := range benchSources {
		p, err := e.Bool(src)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(10, func() { p.Eval(s) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkEval(b *testing.B) {
	for _, name := range []string{"all", "mean", "two", "let"} {
		for _, n := range []int{10, 1000} {
			b.Run(fmt.Sprintf("text=%s/members=%d", name, n), func(b *testing.B) {
				e := testEnv()
				e.MaxMembers = n
				s := benchScope(e, n)
				p, err := e.Bool(benchSources[name])
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				for b.Loop() {
					p.Eval(s)
				}
			})
		}
	}
}

// BenchmarkExpr is the control: the same text run by expr itself.
func BenchmarkExpr(b *testing.B) {
	for _, name := range []string{"all", "mean", "two", "let"} {
		for _, n := range []int{10, 1000} {
			b.Run(fmt.Sprintf("text=%s/members=%d", name, n), func(b *testing.B) {
				e := testEnv()
				run := exprRunner(b, e, benchSources[name], n)
				b.ReportAllocs()
				for b.Loop() {
					run()
				}
			})
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	e := testEnv()
	e.MaxMembers = 1000
	for b.Loop() {
		if _, err := e.Bool(benchSources["two"]); err != nil {
			b.Fatal(err)
		}
	}
}
