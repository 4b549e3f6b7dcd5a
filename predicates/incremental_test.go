package predicates_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// model is a global state with unknown parts, from which a fresh Scope can be
// made.
type model struct {
	members []predicates.Member
	rows    [][]scgs.Value // nil: unknown
	memory  []scgs.Value
	parent  []scgs.Value // nil: no signal yet
}

func (m *model) scope(e *predicates.Env) *predicates.Scope {
	s := predicates.NewScope(e)
	s.Reset(m.members)
	for i, row := range m.rows {
		if row != nil {
			s.Set(i, row)
		}
	}
	for i, v := range m.memory {
		s.SetMemory(i, v)
	}
	s.SetParent(e.Parent[0].Name, m.parent)
	return s
}

// drawAny draws a value of a field, or none; floats are of every size, so that
// their sums are rounded.
func drawAny(t *rapid.T, f scgs.Field) scgs.Value {
	switch kind := rapid.IntRange(0, 9).Draw(t, "kind"); {
	case kind == 0:
		return scgs.Value{}
	case kind < 4 && f.Type == scgs.Float:
		return scgs.FloatValue(rapid.SampledFrom([]float64{
			0.1, 0.7, -0.3, 1e16, -1e16, math.MaxFloat64, -math.MaxFloat64, 5e-324, math.Copysign(0, -1),
		}).Draw(t, "float"))
	case kind < 4 && f.Type == scgs.Int:
		return scgs.IntValue(rapid.SampledFrom([]int64{math.MaxInt64, math.MinInt64, 1 << 53, -1}).Draw(t, "int"))
	}
	return drawValue(t, f, true)
}

func drawAnyRow(t *rapid.T, s scgs.Schema) []scgs.Value {
	row := make([]scgs.Value, len(s))
	for i, f := range s {
		row[i] = drawAny(t, f)
	}
	return row
}

// change draws one change and makes it in the model and in the Scope.
func (m *model) change(t *rapid.T, e *predicates.Env, s *predicates.Scope) {
	n := len(m.members)
	switch kind := rapid.IntRange(0, 19).Draw(t, "change"); {
	case n == 0 || kind == 0:
		m.members, m.rows = nil, nil
		for i := range rapid.IntRange(0, e.MaxMembers).Draw(t, "members") {
			m.members = append(m.members, predicates.Member{
				Name: fmt.Sprintf("m%d", i+rapid.IntRange(0, 1).Draw(t, "name")), Host: fmt.Sprintf("h%d", i%2),
			})
			m.rows = append(m.rows, nil)
		}
		s.Reset(m.members)
	case kind == 1:
		i := rapid.IntRange(0, len(m.memory)-1).Draw(t, "variable")
		m.memory[i] = drawAny(t, e.Memory[i])
		s.SetMemory(i, m.memory[i])
	case kind == 2:
		m.parent = drawAnyRow(t, e.Parent[0].Fields)
		s.SetParent(e.Parent[0].Name, m.parent)
	case kind < 5:
		i := rapid.IntRange(0, n-1).Draw(t, "member")
		m.rows[i] = nil
		s.SetUnknown(i)
	case kind < 10 && m.rows[n-1] != nil: // one field
		i, f := n-1, rapid.IntRange(0, len(e.State)-1).Draw(t, "field")
		m.rows[i][f] = drawAny(t, e.State[f])
		s.Set(i, m.rows[i])
	default:
		i := rapid.IntRange(0, n-1).Draw(t, "member")
		m.rows[i] = drawAnyRow(t, e.State)
		s.Set(i, m.rows[i])
	}
}

// place is where a reason points in the text.
var place = regexp.MustCompile(` at \d+:\d+$`)

// asked is a program with what it last gave.
type asked struct {
	program *predicates.Expression
	last    string
	loose   *predicates.Expression // the same, with a memory variable in each group: nothing of it is incremental
}

func result(p *predicates.Expression, s *predicates.Scope) string {
	v, reason := p.EvalValue(s)
	if v.Type() == scgs.Float {
		return strconv.FormatUint(math.Float64bits(v.Float()), 16)
	}
	return strings.TrimSpace(v.String() + " " + reason)
}

// TestKeptIsFresh follows a Scope through a history: after each change, programs
// that are incremental where they can be, and share aggregates, give bit for bit what they give on a
// Scope that was made for this state, with the same reason; and what they give if
// nothing can be incremental. What a change does not affect stays as it was.
func TestKeptIsFresh(t *testing.T) {
	e := listEnv()
	e.Memory = append(e.Memory, scgs.Field{Name: "on", Type: scgs.Bool})
	keeping, unaffected, known := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		programs := drawAsked(t, e)
		m := &model{memory: make([]scgs.Value, len(e.Memory)-1)}
		s := predicates.NewScope(e)
		if rapid.Bool().Draw(t, "only what is read") {
			fields := uint64(0)
			for _, a := range programs {
				fields |= a.program.Uses().Fields
			}
			s.Only(fields)
		}
		s.SetMemory(len(m.memory), scgs.BoolValue(true))
		s.SetParent(e.Parent[0].Name, nil)
		for _, a := range programs {
			if a.program.Setup() > 0 {
				keeping++
			}
		}
		for range rapid.IntRange(1, 20).Draw(t, "changes") {
			m.change(t, e, s)
			if rapid.IntRange(0, 3).Draw(t, "judged") == 0 {
				continue
			}
			fresh := m.scope(e)
			fresh.SetMemory(len(m.memory), scgs.BoolValue(true))
			for _, a := range programs {
				affected := s.Affects(a.program)
				if fields, more := s.Changed(); !more && affected != (a.program.Uses().Fields&fields != 0) {
					t.Fatalf("%s is affected: %t, and the fields %b have changed alone", a.program.Source(), affected, fields)
				}
				got, want := result(a.program, s), result(a.program, fresh)
				if got != want {
					t.Fatalf("%s is %s after its history, and afresh %s", a.program.Source(), got, want)
				}
				if loose := place.ReplaceAllString(result(a.loose, s), ""); loose != place.ReplaceAllString(got, "") {
					t.Fatalf("%s is %s, and %s if nothing is incremental", a.program.Source(), got, loose)
				}
				if !affected && a.last != "" {
					unaffected++
					if got != a.last {
						t.Fatalf("%s was %s, is %s, and is told to be unaffected", a.program.Source(), a.last, got)
					}
				}
				if !strings.HasPrefix(got, "none") {
					known++
				}
				a.last = got
			}
			s.Settle()
		}
	})
	if keeping == 0 || unaffected == 0 || known == 0 {
		t.Errorf("%d expressions are incremental in something, %d results were unaffected, %d known", keeping, unaffected, known)
	}
}

func drawAsked(t *rapid.T, e *predicates.Env) []*asked {
	var programs []*asked
	for range rapid.IntRange(1, 4).Draw(t, "programs") {
		g := &source{t: t, lists: true}
		src := g.pick(func() string { return g.boolean(2) }, func() string { return g.boolean(3) }, func() string { return g.number(3) })
		p, err := e.Value(src, scgs.Field{})
		if err != nil {
			t.Fatal(err)
		}
		loose, err := e.Value(strings.ReplaceAll(src, "members", "filter(members, memory.on)"), scgs.Field{})
		if err != nil {
			t.Fatal(err)
		}
		if loose.Setup() > 0 {
			t.Fatalf("%s keeps something", loose.Source())
		}
		programs = append(programs, &asked{program: p, loose: loose})
	}
	return programs
}

// TestKeptAtAnySize follows 100 members and more, over several epochs: the first
// unknown member is found in sets of any height.
func TestKeptAtAnySize(t *testing.T) {
	e := testEnv()
	e.MaxMembers = 0
	rng := rand.New(rand.NewPCG(1, 2))
	s := predicates.NewScope(e)
	var programs []*predicates.Expression
	for _, src := range []string{
		"all(members, .ready)", "one(members, .n == 3)", "sum(members, .x) > 2 and sum(filter(members, .ready), .n) % 7 == 3",
		"max(map(filter(members, .online), .n)) - min(map(filter(members, .online), .n)) > 4", "mean(map(members, .x)) > 0.5",
	} {
		p, err := e.Bool(src)
		if err != nil {
			t.Fatal(err)
		}
		programs = append(programs, p)
	}
	for _, n := range []int{1, 64, 65, 700, 3} {
		m := &model{rows: make([][]scgs.Value, n), memory: make([]scgs.Value, len(e.Memory))}
		for i := range n {
			m.members = append(m.members, predicates.Member{Name: fmt.Sprintf("m%03d", i)})
		}
		s.Reset(m.members)
		for range 4 * n {
			i := rng.IntN(n)
			if m.rows[i] = nil; rng.IntN(3*n) > 0 {
				m.rows[i] = []scgs.Value{
					scgs.BoolValue(rng.IntN(2*n) > 0), scgs.IntValue(rng.Int64N(9)), scgs.FloatValue(rng.Float64()),
					scgs.EnumValue("idle"), scgs.StringValue(""), scgs.DurationValue(0),
				}
				s.Set(i, m.rows[i])
			} else {
				s.SetUnknown(i)
			}
			if rng.IntN(n/20+1) > 0 {
				continue
			}
			fresh := m.scope(e)
			for _, p := range programs {
				if got, want := p.Eval(s), p.Eval(fresh); got != want {
					t.Fatalf("%d members: %s is %v after its history, and afresh %v", n, p.Source(), got, want)
				}
			}
		}
	}
}

// TestIncremental says what is incremental, by the steps to build it.
func TestIncremental(t *testing.T) {
	e := testEnv()
	for src, incremental := range map[string]bool{
		"all(members, .ready)":                                                true,
		"members | filter(.ready) | map(.n) | max() > 2":                      true,
		`count(members, .name == "a" or .host == "b" or .online) > 1`:         true,
		"let busy = filter(members, .x > 1); len(busy) > 2":                   true,
		"let m = memory.y; let busy = filter(members, .x > m); len(busy) > 2": false,
		"any(members, let y = 2 * .x; y > 1 and y in [1, 2])":                 true,
		"let m = 2; any(members, .x > m)":                                     false,
		"sum(members, .x) > memory.y":                                         true,
		"any(members, .x > memory.y)":                                         false,
		"any(members, .n > from_parent.go.limit)":                             false,
		"len(members) > 0":                                                    true,
		"find(members, .ready).n > 2":                                         false,
		"any(members, find(members, .ready).n > .n)":                          false,
		"let some = find(members, .ready); any(members, some.n > .n)":         false,
		"any(members, .x > 2 * mean(map(members, .x)))":                       true, // the mean
		"count(let k = 3; filter(members, .n > k), .ready) > 0":               false,
		"min(1, 2) > 0": false,
		"max(map(filter(members, .ready), .n + 1)) > min(map(filter(members, not .ready), .n))": true,
	} {
		p, err := e.Bool(src)
		if err != nil {
			t.Fatalf("%s\n%v", src, err)
		}
		if (p.Setup() > 0) != incremental {
			t.Errorf("%s: incremental %v, want %v", src, !incremental, incremental)
		}
	}
}

// TestShared: texts that look alike but are not the same share nothing.
func TestShared(t *testing.T) {
	e := testEnv()
	s := predicates.NewScope(e)
	s.Reset([]predicates.Member{{Name: "a"}, {Name: "b"}})
	for i := range 2 {
		s.Set(i, []scgs.Value{
			scgs.BoolValue(i == 0), scgs.IntValue(1<<53 + 1), scgs.FloatValue(2),
			scgs.EnumValue("idle"), scgs.StringValue("p"), scgs.DurationValue(0),
		})
	}
	for _, src := range []string{
		"sum(members, .n * 1) == 18014398509481986", "sum(members, .n * 1.0) == 18014398509481984.0",
		"count(members, .n + 0 == 9007199254740992) == 0", "count(members, .n + 0.0 == 9007199254740992) == 2",
		"sum(members, 1) / 2 == 1", "sum(members, 1.5) == 3",
		"all(members, .x == 2)", "none(members, .x != 2)", "not any(members, .x != 2)", "count(members, .x == 2) == 2",
		"max(map(members, .x)) == 2", "min(map(members, .n)) > 2",
		"len(filter(members, .ready)) == 1", "len(filter(members, not .ready)) == 1",
		"len(filter(filter(members, .ready), .x == 2)) == 1",
		`any(members, .tag == "p") and not any(members, .tag == "p;")`,
		"any(members, (.ready ? .ready : .x == 2) ? true : false)", "all(members, .ready ? .ready : (.x == 2 ? true : false))",
		"sum(filter(map(members, .x), # > 1)) == 4", "sum(map(filter(members, .x > 1), .x)) == 4",
		"sum(map(map(members, .x), # + 1)) == 6", "sum(map(members, .x + 1)) == 6",
	} {
		if v := judge(t, e, s, src); v.Truth != predicates.True {
			t.Errorf("%s is %v", src, v)
		}
	}
}

// TestSharedLets: a state that a program shares with another is built with that
// one's variables, which are not its own.
func TestSharedLets(t *testing.T) {
	e := testEnv()
	s := predicates.NewScope(e)
	row := make([]scgs.Value, len(e.State))
	row[1] = scgs.IntValue(2)
	s.SetMemory(1, scgs.IntValue(7))
	first, err := e.Bool("count(members, .n in [1, 2]) == 1")
	if err != nil {
		t.Fatal(err)
	}
	second, err := e.Bool("let k = memory.k; count(members, .n in [1, 2]) == 1 and k == 7")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*predicates.Expression{first, second, first} { // the first one's state is built in each epoch
		s.Reset([]predicates.Member{{Name: "a"}})
		s.Set(0, row)
		if v := p.Eval(s); v.Truth != predicates.True {
			t.Errorf("%s is %v", p.Source(), v)
		}
	}
}

// keeping are conditions whose functions over members are all incremental.
var keeping = map[string]string{
	"all":  `all(members, .phase == "idle")`,
	"mean": `sum(members, .x) / len(members) > 0.8`,
	"two":  `all(members, .ready and .x > .4) and count(members, .n > 3) > 2`,
	"max":  `max(map(filter(members, .ready), .x)) > 2 * min(map(members, .n))`,
}

// changing gives a step that changes one member and judges a program: each in
// turn, or any.
func changing(tb testing.TB, src string, n int, order string) func() {
	tb.Helper()
	e := testEnv()
	e.MaxMembers = n
	p, err := e.Bool(src)
	if err != nil {
		tb.Fatal(err)
	}
	s := benchScope(e, n)
	rng := rand.New(rand.NewPCG(1, 2))
	rows := make([][]scgs.Value, 1000)
	for i := range rows {
		rows[i] = []scgs.Value{
			scgs.BoolValue(rng.IntN(10) > 0), scgs.IntValue(rng.Int64N(1000)), scgs.FloatValue(rng.Float64()),
			scgs.EnumValue([]string{"idle", "search"}[rng.IntN(2)]), scgs.StringValue("p"), scgs.DurationValue(1),
		}
	}
	turn := 0
	return func() {
		if turn++; order == "any" {
			turn = rng.IntN(n)
		}
		s.Set(turn%n, rows[rng.IntN(len(rows))])
		p.Eval(s)
	}
}

// TestKeepingAllocatesNothing holds once the first evaluation has built it.
func TestKeepingAllocatesNothing(t *testing.T) {
	for name, src := range keeping {
		step := changing(t, src, 100, "any")
		if allocs := testing.AllocsPerRun(1000, step); allocs != 0 {
			t.Errorf("%s: %v allocations", name, allocs)
		}
	}
}

// BenchmarkGlobalState is what an aggregate predicate costs a global state in
// which one member has changed; for expr, one evaluation. Where any of 100,000
// members changes, its row comes from main memory each time.
func BenchmarkGlobalState(b *testing.B) {
	for _, name := range []string{"all", "mean", "two", "max"} {
		for _, n := range []int{10, 1000, 100_000} {
			for _, order := range []string{"turn", "any"} {
				b.Run(fmt.Sprintf("text=%s/members=%d/by=us/order=%s", name, n, order), func(b *testing.B) {
					step := changing(b, keeping[name], n, order)
					step()
					b.ReportAllocs()
					for b.Loop() {
						step()
					}
				})
			}
			if n > 1000 {
				continue // expr would take some 10 ms
			}
			b.Run(fmt.Sprintf("text=%s/members=%d/by=expr", name, n), func(b *testing.B) {
				run := exprRunner(b, testEnv(), keeping[name], n)
				b.ReportAllocs()
				for b.Loop() {
					run()
				}
			})
		}
	}
}

// BenchmarkSetup is the first evaluation of an epoch.
func BenchmarkSetup(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		b.Run(fmt.Sprintf("members=%d", n), func(b *testing.B) {
			e := testEnv()
			e.MaxMembers = n
			p, err := e.Bool(keeping["mean"])
			if err != nil {
				b.Fatal(err)
			}
			s := predicates.NewScope(e)
			members := make([]predicates.Member, n)
			row := []scgs.Value{
				scgs.BoolValue(true), scgs.IntValue(1), scgs.FloatValue(0.5),
				scgs.EnumValue("idle"), scgs.StringValue("p"), scgs.DurationValue(1),
			}
			for b.Loop() {
				b.StopTimer()
				s.Reset(members)
				for i := range n {
					s.Set(i, row)
				}
				b.StartTimer()
				p.Eval(s)
			}
		})
	}
}
