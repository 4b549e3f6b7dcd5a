package predicates_test

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// Numbers around those that a float64 rounds, and at the ends of int64.
var (
	edgeInts = []int64{
		0, 1, -1, 1<<53 - 1, 1 << 53, 1<<53 + 1, 1<<53 + 2, -1 << 53, -1<<53 - 1, 1<<62 + 1,
		math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64 - 512, math.MaxInt64 - 1023, math.MinInt64, math.MinInt64 + 1, math.MinInt64 + 1024,
	}
	edgeFloats = []float64{
		0, math.Copysign(0, -1), 0.5, -0.5, 1, -1, 1 << 53, 1<<53 + 2, -1 << 53, -1<<53 - 2, 1 << 62, 1<<63 - 1024, 1 << 63, 1<<63 + 2048, 1 << 64,
		-1 << 63, -1<<63 + 1024, -1<<63 - 2048, 1e300, -1e300, math.SmallestNonzeroFloat64, math.Inf(1), math.Inf(-1),
	}
)

// mixedEnv has an int and a float in the state, in memory, and in a list of each.
func mixedEnv() *predicates.Env {
	fields := scgs.Schema{{Name: "n", Type: scgs.Int}, {Name: "x", Type: scgs.Float}}
	lists := scgs.Schema{{Name: "ns", Type: scgs.ListOf(scgs.Int)}, {Name: "xs", Type: scgs.ListOf(scgs.Float)}}
	return &predicates.Env{State: append(fields, lists...), Memory: fields, MaxMembers: 5}
}

func mixedScope(e *predicates.Env, n int64, x float64) *predicates.Scope {
	s := predicates.NewScope(e)
	s.Reset([]predicates.Member{{Name: "m"}})
	i, f := scgs.IntValue(n), scgs.FloatValue(x)
	s.Set(0, []scgs.Value{i, f, scgs.ListValue(scgs.Int, i), scgs.ListValue(scgs.Float, f)})
	s.SetMemory(0, i)
	s.SetMemory(1, f)
	return s
}

// ints and floats are the ways to write the int and the float of mixedEnv inside a function
// over members: as fields, computed, and by folds.
var (
	mixedInts   = []string{".n", "memory.n", "+memory.n", "(.n + 0)", "(memory.n == 0 ? .n : .n)", "sum(members, .n)", "max(map(members, .n))"}
	mixedFloats = []string{".x", "memory.x", "+memory.x", "(.x + 0.0)", "(memory.n == 0 ? .x : .x)", "sum(members, .x)", "min(map(members, .x))"}
)

// TestMixedNumbers compares ints with floats in all ways there are to write that, and
// wants what math/big says.
func TestMixedNumbers(t *testing.T) {
	e := mixedEnv()
	type expected struct {
		p    *predicates.Expression
		when func(order int) bool
	}
	var all []expected
	add := func(src string, when func(order int) bool) {
		p, err := e.Bool("any(members, " + src + ")")
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		all = append(all, expected{p, when})
	}
	for i, n := range mixedInts {
		x := mixedFloats[i]
		for _, pair := range [][2]string{{n, mixedFloats[0]}, {mixedInts[0], x}, {n, x}} {
			for op, when := range map[string]func(int) bool{
				"==": func(o int) bool { return o == 0 }, "!=": func(o int) bool { return o != 0 },
				"<": func(o int) bool { return o < 0 }, "<=": func(o int) bool { return o <= 0 },
				">": func(o int) bool { return o > 0 }, ">=": func(o int) bool { return o >= 0 },
			} {
				add(pair[0]+" "+op+" "+pair[1], when)
				add(pair[1]+" "+op+" "+pair[0], func(o int) bool { return when(-o) })
			}
		}
	}
	for _, src := range []string{".n in [.x]", ".x in [.n]", ".n in .xs", ".x in .ns", "any(.xs, # == memory.n)", "not (.n not in [.x])"} {
		add(src, func(o int) bool { return o == 0 })
	}
	check := func(t interface{ Fatalf(string, ...any) }, n int64, x float64) {
		order := new(big.Float).SetInt64(n).Cmp(big.NewFloat(x))
		s := mixedScope(e, n, x)
		for _, c := range all {
			want := predicates.False
			if c.when(order) {
				want = predicates.True
			}
			if v := c.p.Eval(s); v.Truth != want {
				t.Fatalf("%s with n = %d and x = %v: %v %s, want %v", c.p.Source(), n, x, v.Truth, v.Reason, want)
			}
		}
	}
	for _, n := range edgeInts {
		for _, x := range edgeFloats {
			check(t, n, x)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64().Draw(t, "n")
		x := float64(n)
		for range rapid.IntRange(0, 2).Draw(t, "steps") {
			x = math.Nextafter(x, rapid.SampledFrom([]float64{math.Inf(1), math.Inf(-1)}).Draw(t, "to"))
		}
		check(t, n, x)
	})
}

// TestMixedLiterals: a number that is written out is compared exactly too.
func TestMixedLiterals(t *testing.T) {
	e := mixedEnv()
	for src, want := range map[string]predicates.Truth{
		"9007199254740993 == 9007199254740992.0":                   predicates.False,
		"9007199254740993 > 9007199254740992.0":                    predicates.True,
		"9007199254740992.0 in [9007199254740993]":                 predicates.False,
		"9223372036854775807 == 9223372036854775808.0":             predicates.False,
		"9223372036854775807 < 9223372036854775808.0":              predicates.True,
		"9223372036854775807 < 1e308 * 10":                         predicates.True,
		"-9223372036854775807 - 1 == -9223372036854775808.0":       predicates.True,
		"9007199254740992.0 < 9007199254740993 < 9007199254740994": predicates.True,
		"9007199254740993 == 1e308 * 10 - 1e308 * 10":              predicates.Unknown,
	} {
		if v := judge(t, e, mixedScope(e, 0, 0), src); v.Truth != want {
			t.Errorf("%s: %v, want %v", src, v.Truth, want)
		}
	}
}

// TestMixedBounds compares a number of which only bounds are known with one of the other
// type.
func TestMixedBounds(t *testing.T) {
	e := mixedEnv()
	s := predicates.NewScope(e)
	s.Reset([]predicates.Member{{Name: "m"}, {Name: "u"}})
	s.Set(0, []scgs.Value{scgs.IntValue(1), scgs.FloatValue(1), scgs.ListValue(scgs.Int), scgs.ListValue(scgs.Float)})
	for src, want := range map[string]predicates.Truth{
		"%s + 9007199254740992 > 9007199254740992.0":  predicates.True, // 2^53 + 1 .. 2^53 + 2
		"%s + 9007199254740992 < 9007199254740994.0":  predicates.Unknown,
		"%s + 9007199254740992 > 9007199254740994.0":  predicates.False,
		"%s + 9007199254740992 == 9007199254740992.0": predicates.False,
		"%s == 1.0": predicates.Unknown,
		"2.5 > %s":  predicates.True,
	} {
		src = fmt.Sprintf(src, "count(members, .n == 1)")
		if v := judge(t, e, s, src); v.Truth != want {
			t.Errorf("%s: %v, want %v", src, v.Truth, want)
		}
	}
}

// TestMixedAllocates nothing.
func TestMixedAllocates(t *testing.T) {
	e := mixedEnv()
	for _, src := range []string{"any(members, .n == .x)", "sum(members, .n) > sum(members, .x)", "any(members, .n in .xs)", "memory.n in [memory.x]"} {
		p, err := e.Bool(src)
		if err != nil {
			t.Fatal(err)
		}
		s := mixedScope(e, 1<<53+1, 1<<53)
		p.Eval(s)
		if n := testing.AllocsPerRun(100, func() { p.Eval(s) }); n != 0 {
			t.Errorf("%s allocates %v times", src, n)
		}
	}
}
