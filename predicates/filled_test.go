package predicates_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

func filledEnv() *predicates.Env {
	return &predicates.Env{
		State: scgs.Schema{
			{Name: "load", Type: scgs.Float},
			{Name: "on", Type: scgs.Bool},
			{Name: "n", Type: scgs.Int},
			{Name: "work.idle", Type: scgs.Bool},
			{Name: "work.phase", Type: scgs.Int},
		},
		Process: scgs.Schema{{Name: "work.open", Type: scgs.Int}},
		Memory:  scgs.Schema{{Name: "work", Type: scgs.Int}},
		Parent:  []predicates.ParentSignal{{Name: "work", Fields: scgs.Schema{{Name: "idle", Type: scgs.Int}}}},
		Prev:    true, Filled: []string{"idle", "phase", "open"},
	}
}

// filledScope has two members: a is idle in phase 3, b works in phase 2. The plain fields on and n have
// the same values.
func filledScope(env *predicates.Env) *predicates.Scope {
	s := predicates.NewScope(env)
	s.KeepPrev()
	s.Reset([]predicates.Member{{Name: "a", Host: "h"}, {Name: "b", Host: "h"}})
	set := func(i int, on bool, n int64) {
		s.Set(i, []scgs.Value{scgs.FloatValue(float64(i)), scgs.BoolValue(on), scgs.IntValue(n), scgs.BoolValue(on), scgs.IntValue(n)})
	}
	s.Next()
	set(0, false, 1)
	set(1, true, 1)
	s.Next()
	set(0, true, 3)
	set(1, false, 2)
	s.SetProcess([]scgs.Value{scgs.IntValue(8)})
	s.SetMemory(0, scgs.IntValue(9))
	s.SetParent("work", []scgs.Value{scgs.IntValue(7)})
	return s
}

// TestFilledFields reads fields behind .work. wherever a field can stand.
func TestFilledFields(t *testing.T) {
	env := filledEnv()
	s := filledScope(env)
	for _, l := range [][2]string{{"ready", ".work.idle and .load < 1"}, {"latest", "max(map(members, .work.phase))"}} {
		var err error
		if env, err = env.Let(l[0], l[1]); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]string{
		`all(members, .work.idle)`:                                              "false",
		`any(members, .work.idle and .work.phase > 2)`:                          "true",
		`count(members, .work.idle)`:                                            "1",
		`sum(members, .work.phase)`:                                             "5",
		`min(map(members, .work.phase))`:                                        "2",
		`max(map(filter(members, not .work.idle), .work.phase))`:                "2",
		`find(members, .name == "a").work.idle`:                                 "true",
		`find(members, .name == "b")["work"]["phase"]`:                          "2",
		`any(members, .prev.work.idle and not .work.idle)`:                      "true",
		`sum(prev, .work.phase)`:                                                "2",
		`let a = find(members, .name == "a"); a.work.phase - a.prev.work.phase`: "2",
		`count(members, ready)`:                                                 "1",
		`latest + 1`:                                                            "4",
		`process.work.open`:                                                     "8",
		`memory.work`:                                                           "9",
		`from_parent.work.idle`:                                                 "7",
	} {
		p, err := env.Value(text, scgs.Field{})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if v, reason := p.EvalValue(s); v.String() != want || reason != "" {
			t.Errorf("%s is %v %s, want %s", text, v, reason, want)
		}
	}
	if m, err := env.Member(".work.phase * 2", true, false); err != nil {
		t.Error(err)
	} else if v, reason := m.Eval(nil, s, 1); reason != "" || v[0].Float() != 4 {
		t.Errorf("of a member: %v %s", v, reason)
	}
	if p, err := env.Group("work.idle", "true").Value("len(members)", scgs.Field{}); err != nil {
		t.Error(err)
	} else if v, _ := p.EvalValue(s); v.Int() != 1 {
		t.Errorf("of a group: %v", v)
	}
	if _, local, err := env.Each(".work.idle and .work.phase > 1"); err != nil || local.Uses().Fields != 1<<3|1<<4 {
		t.Errorf("each: %v", err)
	}
	p, err := env.Bool("count(members, .work.idle) >= 2")
	if err != nil {
		t.Fatal(err)
	}
	if _, k, err := p.Threshold(); err != nil || k != 2 {
		t.Errorf("a threshold: %d, %v", k, err)
	}
}

// TestFilledFieldsCostAsMuch compares them with plain fields that have the same values: the steps, what
// is read, and that an evaluation after a change allocates nothing.
func TestFilledFieldsCostAsMuch(t *testing.T) {
	for _, form := range []string{"all(members, .B)", "sum(members, .I) > 4", "any(members, .B and .I > 2)", "max(map(members, .I)) == min(map(members, .I))", "any(members, .prev.I < .I)"} {
		var cost [2]string
		for i, names := range [2][2]string{{"on", "n"}, {"work.idle", "work.phase"}} {
			env := filledEnv()
			p, err := env.Bool(strings.NewReplacer(".B", "."+names[0], ".I", "."+names[1]).Replace(form))
			if err != nil {
				t.Fatal(err)
			}
			s := filledScope(env)
			p.Eval(s)
			rows := [2][]scgs.Value{
				{scgs.FloatValue(1), scgs.BoolValue(true), scgs.IntValue(5), scgs.BoolValue(true), scgs.IntValue(5)},
				{scgs.FloatValue(1), scgs.BoolValue(false), scgs.IntValue(6), scgs.BoolValue(false), scgs.IntValue(6)},
			}
			n := 0
			allocs := testing.AllocsPerRun(100, func() {
				n++
				s.Next()
				s.Set(1, rows[n%2])
				p.Eval(s)
			})
			cost[i] = fmt.Sprintf("%d steps, %d to begin, %v allocations, %v", p.Cost(), p.Setup(), allocs, p.Eval(s).Truth)
			if allocs > 0 {
				t.Errorf("%s allocates %v times", p.Source(), allocs)
			}
		}
		if cost[0] != cost[1] {
			t.Errorf("%s: a plain field costs %s, a filled one %s", form, cost[0], cost[1])
		}
	}
}

// TestFilledFieldsInExplanations shows them as they are written.
func TestFilledFieldsInExplanations(t *testing.T) {
	env := filledEnv()
	p, err := env.Bool(`all(members, .work.idle and .name != "[\"work.x\"]") and max(map(members, .work.phase)) > 1`)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, part := range p.Explain(filledScope(env)) {
		texts = append(texts, part.Text)
	}
	want := []string{`all(members, .work.idle and .name != "[\"work.x\"]")`, "max(map(members, .work.phase)) > 1", "max(map(members, .work.phase))"}
	if !slices.Equal(texts, want) {
		t.Errorf("got %q, want %q", texts, want)
	}
}

// TestReadsFilled finds the names in texts that need not compile.
func TestReadsFilled(t *testing.T) {
	for text, want := range map[string]string{
		`any(members, .work.queued > 1 and .prev.work.open == 2)`: "[queued open]",
		`find(members, true)["work"]["stuck"]`:                    "[stuck]",
		`.work.running +`:                                         "[running]",
		`any(members, .work > 1)`:                                 "[]",
		`".work.queued"`:                                          "[]",
		`memory.work + .queued`:                                   "[]",
		"":                                                        "[]",
		`'`:                                                       "[]",
	} {
		if got := fmt.Sprint(predicates.ReadsFilled(nil, text)); got != want {
			t.Errorf("%s reads %s, want %s", text, got, want)
		}
	}
}

// TestWithoutFilledFields has .work as a field of the user.
func TestWithoutFilledFields(t *testing.T) {
	env := &predicates.Env{State: scgs.Schema{{Name: "work", Type: scgs.Float}}}
	if _, err := env.Bool("any(members, .work > 1)"); err != nil {
		t.Error(err)
	}
	if _, err := env.Bool("any(members, .work.idle)"); err == nil || !strings.Contains(err.Error(), `a float has no field "idle"`) {
		t.Errorf("a field of a number: %v", err)
	}
}
