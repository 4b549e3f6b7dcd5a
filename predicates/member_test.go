package predicates_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

func memberEnv() *predicates.Env {
	return &predicates.Env{
		State: scgs.Schema{
			{Name: "power", Type: scgs.Float},
			{Name: "tasks", Type: scgs.ListOf(scgs.Int)},
			{Name: "tags", Type: scgs.ListOf(scgs.String)},
			{Name: "on", Type: scgs.Bool},
		},
		Memory: scgs.Schema{{Name: "least", Type: scgs.Float}},
	}
}

func TestMemberExpressions(t *testing.T) {
	env := memberEnv()
	s := predicates.NewScope(env)
	s.Reset([]predicates.Member{{Name: "a"}, {Name: "b"}, {Name: "c"}})
	ints := func(of ...int64) scgs.Value {
		list := make([]scgs.Value, len(of))
		for i, n := range of {
			list[i] = scgs.IntValue(n)
		}
		return scgs.ListValue(scgs.Int, list...)
	}
	tags := scgs.ListValue(scgs.String, scgs.StringValue("x"), scgs.StringValue("y"))
	s.Set(0, []scgs.Value{scgs.FloatValue(2), ints(3, 4, 5), tags, scgs.BoolValue(true)})
	s.Set(1, []scgs.Value{scgs.FloatValue(5), ints(), tags, scgs.BoolValue(false)})
	for _, test := range []struct {
		text           string
		numbers, lists bool
		member         int
		want           string
	}{
		{".power", true, false, 0, "2"},
		{".power * 2", true, false, 1, "10"},
		{"7", true, false, 1, "7"},
		{"sum(.tasks)", true, false, 0, "12"},
		{"len(.tasks)", true, false, 1, "0"},
		{".on ? .power : 1", true, false, 1, "1"},
		{"let p = .power; p / 4", true, false, 0, "0.5"},
		{".tasks", false, true, 0, "3 4 5"},
		{".tasks", true, true, 0, "3 4 5"},
		{".tags", false, true, 1, `"x" "y"`},
		{"filter(.tasks, # > 3)", false, true, 0, "4 5"},
		{"map(.tasks, # * 1.5)", true, true, 0, "4.5 6 7.5"},
		{".name", false, false, 1, `"b"`},
		{".tasks", false, true, 1, ""},
		{".tasks", true, true, 2, "unknown: the state of member c is unknown"},
		{".power", true, false, 2, "unknown: the state of member c is unknown"},
		{"1 / len(.tasks)", true, false, 1, "unknown: division by zero at 1:3"},
	} {
		p, err := env.Member(test.text, test.numbers, test.lists)
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		values, reason := p.Eval(nil, s, test.member)
		texts := make([]string, len(values))
		for i, v := range values {
			texts[i] = v.String()
		}
		got := strings.Join(texts, " ")
		if reason != "" {
			got = "unknown: " + reason
		}
		if got != test.want {
			t.Errorf("%s of member %d: %s, want %s", test.text, test.member, got, test.want)
		}
	}
	p, err := env.Member(".power * len(.tasks)", true, false)
	if err != nil {
		t.Fatal(err)
	}
	if u := p.Expression().Uses(); u.Fields != 3 || p.Expression().Cost() > 20 {
		t.Errorf("uses %+v, cost %d", u, p.Expression().Cost())
	}
}

func TestMemberExpressionFaults(t *testing.T) {
	env := memberEnv()
	for text, want := range map[string]string{
		".powr":                "1:2: ",
		"":                     "1:1: ",
		".power + ":            "1:",
		".on":                  "1:2: a number is wanted, this is a bool",
		"memory.least":         "1:1: the expression must read one member alone, and this part does not",
		"sum(members, .power)": "1:5: the expression must read one member alone, and this part does not",
		".prev.power":          "1:2: ",
		".power) + sum(.tasks": "1:15: unexpected",
		".power) + (1":         "1:",
		".power), sum((.tasks": "1:8: ",
		".power\n+ .nix":       "2:4: ",
	} {
		_, err := env.Member(text, true, false)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	_, err := env.Member(".power", true, true)
	const want = "1:2: a list, each element of which is a number, is wanted, this is a float\n  .power\n   ^\n  use a field of that type"
	if err == nil || cmp.Diff(want, err.Error()) != "" {
		t.Errorf("%v", err)
	}
	if _, err := env.Member(".tags", true, true); err == nil {
		t.Error("texts are taken for numbers")
	}
	if _, err := env.Member(".power", false, false); err == nil {
		t.Error("a float is taken for a name")
	}
}
