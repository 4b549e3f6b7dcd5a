package predicates_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// TestPrevIsTheStateBefore compares what is kept from changes with whole copies
// of the global states, over epochs of several sizes.
func TestPrevIsTheStateBefore(t *testing.T) {
	e := &predicates.Env{
		State: scgs.Schema{{Name: "n", Type: scgs.Int}, {Name: "tags", Type: scgs.ListOf(scgs.String)}},
		Prev:  true, MaxMembers: 5,
	}
	program := func(src string) *predicates.Expression {
		p, err := e.Value(src, scgs.Field{})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	known := program("count(prev, .online)")
	total, length := program("sum(filter(prev, .online), .n)"), program("sum(members, .online && .prev.online ? len(.prev.tags) : 0)")
	rapid.Check(t, func(t *rapid.T) {
		s := predicates.NewScope(e)
		s.KeepPrev()
		for range rapid.IntRange(1, 3).Draw(t, "epochs") {
			n := rapid.IntRange(1, 5).Draw(t, "members")
			who := make([]predicates.Member, n)
			for i := range who {
				who[i].Name = fmt.Sprintf("m%d", i)
			}
			s.Reset(who)
			now := make([][]scgs.Value, n) // nil: unknown
			for k := range rapid.IntRange(1, 6).Draw(t, "states") {
				before := append([][]scgs.Value(nil), now...)
				s.Next()
				for range rapid.IntRange(0, 3).Draw(t, "changes") {
					i := rapid.IntRange(0, n-1).Draw(t, "member")
					if rapid.IntRange(0, 3).Draw(t, "unknown") == 0 {
						now[i] = nil
						s.SetUnknown(i)
						continue
					}
					now[i] = drawRow(t, e.State, false)
					s.Set(i, now[i])
				}
				wantKnown, wantSum, wantLength := 0, 0, 0
				for i, row := range before {
					if row == nil || k == 0 {
						continue
					}
					wantKnown++
					wantSum += int(row[0].Int())
					if now[i] != nil {
						wantLength += row[1].Len()
					}
				}
				for p, want := range map[*predicates.Expression]int{known: wantKnown, total: wantSum, length: wantLength} {
					if got, why := p.EvalValue(s); got != scgs.IntValue(int64(want)) {
						t.Fatalf("state %d: %s is %v %s, want %d", k, p.Source(), got, why, want)
					}
				}
			}
		}
	})
}

func TestListsAndPrevAllocateNothing(t *testing.T) {
	e := listEnv()
	e.Prev = true
	s := predicates.NewScope(e)
	s.KeepPrev()
	s.Reset([]predicates.Member{{Name: "a"}, {Name: "b"}})
	row := make([]scgs.Value, len(e.State))
	row[1] = scgs.IntValue(1)
	row[6] = scgs.ListValue(scgs.String, scgs.StringValue("p"), scgs.StringValue("gpu"))
	row[7] = scgs.ListValue(scgs.Float, scgs.FloatValue(0.5))
	s.Next()
	s.Set(0, row)
	s.Set(1, row)
	for _, src := range []string{
		`any(members, "gpu" in .tags)`, `any(members, any(.tags, # == "gpu"))`, "all(members, .xs[0] == 0.5 && len(.tags) == 2)",
		"sum(members, sum(.xs)) == 1", "sum(members, .n) == sum(prev, .n)", "all(members, .n == .prev.n)",
	} {
		p, err := e.Bool(src)
		if err != nil {
			t.Fatal(err)
		}
		allocs := testing.AllocsPerRun(100, func() {
			s.Next()
			s.Set(0, row)
			if v := p.Eval(s); v.Truth != predicates.True {
				t.Fatalf("%s is %s: %s", src, v.Truth, v.Reason)
			}
		})
		if allocs != 0 {
			t.Errorf("%s allocates %v times", src, allocs)
		}
	}
}

// BenchmarkNext is a global state in which one member has changed: its cost does
// not depend on how many there are.
func BenchmarkNext(b *testing.B) {
	for _, n := range []int{10, 1000, 100_000} {
		b.Run(fmt.Sprintf("members=%d", n), func(b *testing.B) {
			e := testEnv()
			e.Prev = true
			s := predicates.NewScope(e)
			s.KeepPrev()
			s.Reset(make([]predicates.Member, n))
			row := make([]scgs.Value, len(e.State))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				s.Next()
				s.Set(i%n, row)
			}
		})
	}
}
