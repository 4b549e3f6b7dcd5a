package predicates_test

import (
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// TestOwnCondition: a member judges a condition on its own state, of which an unknown part does not hold.
func TestOwnCondition(t *testing.T) {
	t.Parallel()
	env := predicates.MemberEnv(scgs.Schema{
		{Name: "load", Type: scgs.Float}, {Name: "away", Type: scgs.Bool}, {Name: "work.share", Type: scgs.Float},
	}, []string{"share", "queued"})
	row := func(load float64, away bool, share float64) []scgs.Value {
		return []scgs.Value{scgs.FloatValue(load), scgs.BoolValue(away), scgs.FloatValue(share)}
	}
	ann := predicates.Member{Name: "ann", Host: "h1"}
	for _, c := range []struct {
		src  string
		row  []scgs.Value
		want bool
	}{
		{".work.share < 0.2", row(0, false, 0.1), true},
		{".work.share < 0.2", row(0, false, 0.2), false},
		{".away or .load > 2", row(3, false, 1), true},
		{`.name == "ann" and .host == "h1"`, row(0, false, 1), true},
		{".load > 2", []scgs.Value{{}, scgs.BoolValue(true), scgs.FloatValue(1)}, false},
		{"not (.load > 2)", []scgs.Value{{}, scgs.BoolValue(true), scgs.FloatValue(1)}, false},
	} {
		l, err := predicates.NewLocal(env, c.src)
		if err != nil {
			t.Fatalf("%s: %v", c.src, err)
		}
		for range 2 { // A second judgement has the state of the first in its scope.
			if got := l.Holds(ann, c.row); got != c.want {
				t.Errorf("%s on %v: %v", c.src, c.row, got)
			}
		}
		if l.Holds(predicates.Member{Name: "bob"}, c.row) && strings.Contains(c.src, "name") {
			t.Errorf("%s holds for bob", c.src)
		}
	}
	for src, want := range map[string]string{
		".lod > 2":                  `unknown field "lod"`,
		".work.queued > 2":          ".work.queued",
		".work.shar < 1":            "did you mean",
		"count(members, .away) > 1": "not of the member alone",
		"params.limit > 2":          "params",
		"memory.n > 2":              "memory.n",
		".load":                     "",
		".load > ":                  "",
		".load > 1) and any(true":   "",
	} {
		if _, err := predicates.NewLocal(env, src); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, and %q is missing", src, err, want)
		}
	}
}
