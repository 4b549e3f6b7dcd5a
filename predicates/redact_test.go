package predicates_test

import (
	"testing"

	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// TestExplainHidesRedactedValues wants no value of a part that reads a redacted field, and
// the values of the other parts.
func TestExplainHidesRedactedValues(t *testing.T) {
	env := &predicates.Env{
		State:  scgs.Schema{{Name: "token", Type: scgs.String, Redact: true}, {Name: "pin", Type: scgs.Int, Redact: true}, {Name: "load", Type: scgs.Int}},
		Memory: scgs.Schema{{Name: "last", Type: scgs.Int, Redact: true}},
		Parent: []predicates.ParentSignal{{Name: "go", Fields: scgs.Schema{{Name: "key", Type: scgs.Int, Redact: true}}}},
		Prev:   true,
	}
	p := must(t, env, `let best = max(map(members, .pin)); let most = max(map(members, .load));
		(best > 3 or most > 2) and sum(members, .load) > 3 and memory.last == 7 and from_parent.go.key == 7 and any(members, .token == "abc" and .load > 0)`)
	s := predicates.NewScope(env)
	s.KeepPrev()
	s.Reset([]predicates.Member{{Name: "a"}, {Name: "b"}})
	for i := range 2 {
		s.Set(i, []scgs.Value{scgs.StringValue("abc"), scgs.IntValue(8641), scgs.IntValue(4)})
	}
	s.SetMemory(0, scgs.IntValue(7))
	s.SetParent("go", []scgs.Value{scgs.IntValue(7)})
	hidden, shown := 0, 0
	for _, part := range p.Explain(s) {
		switch none := (scgs.Value{}); {
		case part.Redacted && (part.Low != none || part.High != none || part.Split != nil):
			t.Errorf("%s: %v, %v, %v", part.Text, part.Low, part.High, part.Split)
		case part.Redacted:
			hidden++
		case part.Low == scgs.IntValue(8641) || part.Low == scgs.IntValue(7):
			t.Errorf("%s is %v", part.Text, part.Low)
		default:
			shown++
		}
	}
	if hidden < 6 {
		t.Errorf("%d parts are hidden: %+v", hidden, p.Explain(s))
	}
	open := must(t, env, "sum(members, .load) > 3 and memory.last == 7")
	for _, part := range open.Explain(s) {
		if part.Redacted != (part.Text != "sum(members, .load) > 3" && part.Text != "sum(members, .load)") {
			t.Errorf("%s: redacted %t", part.Text, part.Redacted)
		}
	}
	if v := open.Eval(s); v.Truth != predicates.True {
		t.Errorf("the values are judged to %v, %s", v.Truth, v.Reason)
	}
	for src, want := range map[string]string{
		"sum(members, .load) > 3": "", "sum(members, .pin) > 3": ".pin", "any(members, .prev.token == .token)": ".token",
		"memory.last > 1": "memory.last", "from_parent.go.key > 1": "from_parent.go", "len(filter(members, .pin > 3)) > 1": ".pin",
	} {
		if got := env.Redacts(must(t, env, src).Uses()); got != want {
			t.Errorf("%s reads the redacted %q, want %q", src, got, want)
		}
	}
}
