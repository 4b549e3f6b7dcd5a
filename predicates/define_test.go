package predicates_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

func namedEnv() *predicates.Env {
	return &predicates.Env{
		State: scgs.Schema{
			{Name: "load", Type: scgs.Float},
			{Name: "on", Type: scgs.Bool},
			{Name: "zone", Type: scgs.Enum, Words: []string{"east", "west"}},
			{Name: "wait", Type: scgs.Duration},
			{Name: "tags", Type: scgs.ListOf(scgs.String)},
		},
		Memory: scgs.Schema{{Name: "best", Type: scgs.Float}},
		Prev:   true,
		Params: []predicates.Param{
			{Field: scgs.Field{Name: "limit", Type: scgs.Float}, Value: scgs.FloatValue(2)},
			{Field: scgs.Field{Name: "k", Type: scgs.Int}, Value: scgs.IntValue(2)},
			{Field: scgs.Field{Name: "home", Type: scgs.Enum, Words: []string{"east", "west"}}, Value: scgs.EnumValue("east")},
			{Field: scgs.Field{Name: "long", Type: scgs.Duration}, Value: scgs.DurationValue(3e9)},
			{Field: scgs.Field{Name: "on", Type: scgs.Bool}, Value: scgs.BoolValue(true)},
		},
	}
}

func named(t *testing.T, e *predicates.Env, names ...string) *predicates.Env {
	t.Helper()
	for i := 0; i < len(names); i += 2 {
		more, err := e.Let(names[i], names[i+1])
		if err != nil {
			t.Fatal(err)
		}
		e = more
	}
	return e
}

// zones has two members in the east, one of which is unknown, and one in the west.
func zones(e *predicates.Env) *predicates.Scope {
	s := predicates.NewScope(e)
	s.Reset([]predicates.Member{{Name: "a"}, {Name: "b"}, {Name: "c"}})
	row := func(load float64, on bool, zone string) []scgs.Value {
		return []scgs.Value{scgs.FloatValue(load), scgs.BoolValue(on), scgs.EnumValue(zone), scgs.DurationValue(1e9), scgs.ListValue(scgs.String)}
	}
	s.Set(0, row(1, true, "east"))
	s.Set(2, row(5, false, "west"))
	return s
}

// What a name stands for means the same as its text in its place, also where a member is
// unknown.
func TestNames(t *testing.T) {
	base := namedEnv()
	e := named(t, base, "total", "sum(members, .load)", "hot", ".load > params.limit", "hots", "count(members, hot)", "busy", "filter(members, hot and .on)", "far", "not (.zone == params.home)")
	for _, c := range []struct{ with, without string }{
		{"total > 3", "sum(members, .load) > 3"},
		{"hots >= params.k", "count(members, .load > 2.0) >= 2"},
		{"hots >= 1", "count(members, .load > 2.0) >= 1"},
		{"any(members, hot) and not all(members, far)", `any(members, .load > 2.0) and not all(members, not (.zone == "east"))`},
		{"len(busy) == 0", "len(filter(members, .load > 2.0 and .on)) == 0"},
		{"let n = hots; n + n > 2", "let n = count(members, .load > 2.0); n + n > 2"},
		{"any(members, .wait < params.long) == params.on", `any(members, .wait < duration("3s")) == true`},
		{"none(filter(members, far), hot)", `none(filter(members, not (.zone == "east")), .load > 2.0)`},
		{"total > params.limit ? total < 9 : hots > 1", "sum(members, .load) > 2.0 ? sum(members, .load) < 9 : count(members, .load > 2.0) > 1"},
	} {
		a, err := e.Bool(c.with)
		if err != nil {
			t.Errorf("%s: %v", c.with, err)
			continue
		}
		b, err := base.Bool(c.without)
		if err != nil {
			t.Fatal(err)
		}
		s := zones(base)
		if x, y := a.Eval(s), b.Eval(s); x.Truth != y.Truth {
			t.Errorf("%s is %v, and %s is %v", c.with, x, c.without, y)
		}
		for i := range 3 {
			if i != 1 {
				s.SetUnknown(i)
			}
			if x, y := a.Eval(s), b.Eval(s); x.Truth != y.Truth {
				t.Errorf("later %s is %v, and %s is %v", c.with, x, c.without, y)
			}
		}
		parts := a.Explain(s)
		if len(parts) == 0 {
			t.Errorf("%s is not explained", c.with)
		}
	}
	local, k, err := must(t, e, "hots >= params.k").Threshold()
	if err != nil || k != 2 || local == nil {
		t.Errorf("the threshold of a name and a parameter: %d, %v", k, err)
	}
	if text, more := must(t, e, "total > 3").Expanded(); !more || text != "sum(members, .load) > 3" {
		t.Errorf("expanded %q, %v", text, more)
	}
}

func must(t *testing.T, e *predicates.Env, src string) *predicates.Expression {
	t.Helper()
	p, err := e.Bool(src)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A group has the members with its value; one that is unknown may be of any.
func TestGroupAndEach(t *testing.T) {
	base := namedEnv()
	s := zones(base)
	for group, want := range map[string]string{
		"east": "unknown unknown true", "west": "unknown true true",
	} {
		e := base.Group("zone", group)
		var got []string
		for _, src := range []string{"sum(members, .load) > 1.5", "any(members, .load > 1.5)", fmt.Sprintf("group == %q", group)} {
			got = append(got, must(t, e, src).Eval(s).Truth.String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %s", group, got, want)
		}
	}
	anyOf, local, err := named(t, base, "hot", ".load > params.limit").Each("hot and .name != \"b\"")
	if err != nil {
		t.Fatal(err)
	}
	one := predicates.NewScope(base)
	one.Reset([]predicates.Member{{Name: "c"}})
	if is := local.Eval(one).Truth; is != predicates.Unknown {
		t.Errorf("of an unknown member it is %v", is)
	}
	one.Set(0, []scgs.Value{scgs.FloatValue(5), scgs.BoolValue(true), scgs.EnumValue("east"), scgs.DurationValue(1), scgs.ListValue(scgs.String)})
	if is := local.Eval(one).Truth; is != predicates.True {
		t.Errorf("of the member it is %v", is)
	}
	if is := anyOf.Eval(s).Truth; is != predicates.True {
		t.Errorf("of some member it is %v", is)
	}
	where := must(t, base.One(), "member.load > 4")
	if is := where.Eval(one).Truth; is != predicates.True {
		t.Errorf("member.load > 4 is %v", is)
	}
}

// Texts that are wrong, or are meant to break something, are refused with their place.
func TestHostileNames(t *testing.T) {
	base := named(t, namedEnv(), "total", "sum(members, .load)", "hot", ".load > 2")
	blow := base
	for i := range 20 { // Each is twice the one before.
		before := fmt.Sprintf("x%d", i-1)
		if i == 0 {
			before = "total"
		}
		more, err := blow.Let(fmt.Sprintf("x%d", i), before+" + "+before)
		if err != nil {
			if want := "more than 500 parts"; !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
			break
		}
		blow = more
		if i == 19 {
			t.Error("a name may stand for a million parts")
		}
	}
	for _, c := range []struct{ name, text, want string }{
		{"", "1", `"" is no name`},
		{"a b", "1", `"a b" is no name`},
		{"9x", "1", `"9x" is no name`},
		{"größe", "1", "is no name"},
		{strings.Repeat("x", 65), "1", "is no name"},
		{"members", "1", "has a meaning already"},
		{"params", "1", "has a meaning already"},
		{"total", "1", "has a meaning already"},
		{"sum", "1", "has a meaning already"},
		{"now", "1", "has a meaning already"},
		{"not", "1", "has a meaning already"},
		{"true", "1", "has a meaning already"},
		{"group", "1", "has a meaning already"},
		{"member", "1", "has a meaning already"},
		{"duration", "1", "has a meaning already"},
		{"x", "", "the text is empty"},
		{"x", "x > 1", `unknown name "x"`},
		{"x", "later > 1", `unknown name "later"`},
		{"x", "sum(members, .lode)", `1:15: unknown field "lode"`},
		{"x", ".lode > 1", `1:2: unknown field "lode"`},
		{"x", ".load > params.limt", `1:16: unknown parameter params.limt`},
		{"x", ".load > 1), any(members, .on", "unexpected"},
		{"x", ".on) or any(members, .on", "unexpected"},
		{"x", "now() > 1", `the function "now"`},
		{"x", strings.Repeat("(", 100) + "1" + strings.Repeat(")", 100), "nested deeper"},
		{"x", strings.Repeat("1 + ", 2000) + "1", "4096"},
		{"x", "params", "params is not a value"},
		{"x", "params.limit.x", "only members have fields"},
	} {
		_, err := base.Let(c.name, c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("let %.20s: %.40s: %v, want %s", c.name, c.text, err, c.want)
		}
		if fault := new(predicates.Error); err != nil && !errors.As(err, &fault) {
			t.Errorf("%T", err)
		}
	}
	for _, c := range []struct{ text, want string }{
		{"hot", "the expression of this name is about one member"},
		{"any(members, total)", "any needs a condition"},
		{"total.x > 1", "only members have fields"},
		{"params.k > \"a\"", "does not"},
		{"let total = 1; total > 0", `the name "total" has a meaning already`},
		{"let params = 1; params > 0", `the name "params" has a meaning already`},
		{"params.home == \"north\"", `"north" is not a word of this enum`},
		{"hoot > 1", `did you mean "hot"?`},
		{"group == \"a\"", `unknown name "group"`},
		{"limit > 1", "write params.limit"},
	} {
		if _, err := base.Bool(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.text, err, c.want)
		}
	}
	for _, c := range []struct{ text, want string }{
		{"", "the text is empty"},
		{".load", "1:1: any needs a condition"},
		{"total > 1", "has to be a local one"},
		{"memory.best > .load", "1:1: the condition has to be a local one"},
		{".load > prev", "1:7: > does not join"},
		{"any(members, .on)", "has to be a local one"},
		{".on) or any(members, .on", "the text is no condition on one member"},
		{".on, .on", "1:6: unexpected"},
		{"true", ""},
	} {
		_, _, err := base.Each(c.text)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("each %s: %v, want %s", c.text, err, c.want)
		}
	}
	// A parameter that no arithmetic survives makes nothing true.
	nan := namedEnv()
	nan.Params[0].Value = scgs.FloatValue(math.Inf(1))
	if is := must(t, nan, "params.limit - params.limit > 0").Eval(zones(nan)).Truth; is != predicates.Unknown {
		t.Errorf("inf - inf > 0 is %v", is)
	}
}
