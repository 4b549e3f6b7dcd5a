package predicates_test

import (
	"errors"
	"testing"

	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

func localEnv() *predicates.Env {
	return &predicates.Env{
		State: scgs.Schema{
			{Name: "leader", Type: scgs.Bool},
			{Name: "load", Type: scgs.Float},
			{Name: "n", Type: scgs.Int},
			{Name: "role", Type: scgs.Enum, Words: []string{"idle", "busy"}},
		},
		Memory:     scgs.Schema{{Name: "limit", Type: scgs.Float}},
		Parent:     []predicates.ParentSignal{{Name: "stop", Fields: scgs.Schema{{Name: "x", Type: scgs.Int}}}},
		MaxMembers: 10,
	}
}

// A threshold is a count of a local condition beside a number, and nothing else.
func TestThreshold(t *testing.T) {
	for src, want := range map[string]int{
		"count(members, .leader) >= 2":                          2,
		"count(members, .leader) > 1":                           2,
		"2 <= count(members, .leader)":                          2,
		"1 < count(members, .leader)":                           2,
		"count(members, .leader) >= 1":                          1,
		"members | count(.leader) >= 3":                         3,
		"(count(members, .leader)) >= 2":                        2,
		`count(members, .role == "busy" && .name != "w1") >= 2`: 2,
		`count(members, .host == "h" || abs(.load) > 1) >= 2`:   2,
		"count(members, let x = .load; x > 1 && x < 2) >= 2":    2,
		"count(members, .n in [1, 2]) >= 2":                     2,

		"any(members, .leader)":                                  0,
		"count(members, .leader) >= 0":                           0,
		"count(members, .leader) > -1":                           0,
		"count(members, .leader) == 2":                           0,
		"count(members, .leader) != 2":                           0,
		"count(members, .leader) < 2":                            0,
		"count(members, .leader) <= 2":                           0,
		"2 >= count(members, .leader)":                           0,
		"2 == count(members, .leader)":                           0,
		"count(members, .leader) >= 1 + 1":                       0,
		"count(members, .leader) >= len(members)":                0,
		"count(members, .leader) >= 1.5":                         0,
		"len(members) >= 2":                                      0,
		"len(filter(members, .leader)) >= 2":                     0,
		"count(filter(members, .leader), .n > 1) >= 2":           0,
		"count(members, .leader) >= 2 && true":                   0,
		"not (count(members, .leader) >= 2)":                     0,
		"let k = 2; count(members, .leader) >= k":                0,
		"let n = count(members, .leader); n >= 2":                0,
		"count(members, .online) >= 2":                           0,
		"count(members, let m = #; m.online) >= 2":               0,
		"count(members, .load > memory.limit) >= 2":              0,
		"count(members, .n > from_parent.stop.x) >= 2":           0,
		"count(members, .load > mean(map(members, .load))) >= 2": 0,
		"sum(members, .n) >= 2":                                  0,
		"3 >= 2":                                                 0,
	} {
		p, err := localEnv().Bool(src)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		local, k, err := p.Threshold()
		ok := err == nil
		if ok != (want > 0) || k*map[bool]int{true: 1}[ok] != want || (local != nil) != ok {
			t.Errorf("%s: threshold %d, %t: want %d", src, k, ok, want)
		}
	}
}

// What a local condition says of one member is what it says inside the predicate.
func TestLocalCondition(t *testing.T) {
	env := localEnv()
	p, err := env.Bool(`all(members, .load > 1 && .role == "busy" && .name != "x")`)
	if err != nil {
		t.Fatal(err)
	}
	local, err := p.Conjunction()
	if err != nil {
		t.Fatal(err)
	}
	row := func(load float64, role string) []scgs.Value {
		return []scgs.Value{scgs.BoolValue(true), scgs.FloatValue(load), scgs.IntValue(1), scgs.EnumValue(role)}
	}
	missing := row(2, "busy")
	missing[1] = scgs.Value{}
	for _, tt := range []struct {
		name string
		row  []scgs.Value
		want predicates.Truth
	}{
		{"a", row(2, "busy"), predicates.True},
		{"a", row(1, "busy"), predicates.False},
		{"a", row(2, "idle"), predicates.False},
		{"x", row(2, "busy"), predicates.False},
		{"a", missing, predicates.Unknown},
	} {
		s := predicates.NewScope(env)
		s.Reset([]predicates.Member{{Name: tt.name}})
		s.Set(0, tt.row)
		if got, whole := local.Eval(s).Truth, p.Eval(s).Truth; got != tt.want || whole != tt.want {
			t.Errorf("%s %v: %v, in the whole predicate %v: want %v", tt.name, tt.row, got, whole, tt.want)
		}
	}
}

// A predicate that is no conjunction of local conditions is refused with the place
// that makes it none.
func TestNoConjunction(t *testing.T) {
	for src, want := range map[string]string{
		"any(members, .leader)": `1:1: a modality is for all(members, condition) alone
  any(members, .leader)
  ^
  write all(members, CONDITION), or leave the modality out`,
		"all(members, .leader) && true": `1:23: a modality is for all(members, condition) alone
  all(members, .leader) && true
                        ^
  write all(members, CONDITION), or leave the modality out`,
		"all(filter(members, .leader), .n > 1)": `1:5: the condition has to be on all members
  all(filter(members, .leader), .n > 1)
      ^
  write all(members, CONDITION)`,
		"all(members, .leader && .load > memory.limit)": `1:33: the condition has to be a local one, and this is not of the member alone
  all(members, .leader && .load > memory.limit)
                                  ^
  a local condition reads the fields of a single member, its .name and .host`,
		"all(members, .leader && .online)": `1:26: the condition has to be a local one, and this is not of the member alone
  all(members, .leader && .online)
                           ^
  a local condition reads the fields of a single member, its .name and .host`,
	} {
		p, err := localEnv().Bool(src)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		_, err = p.Conjunction()
		if _, ok := errors.AsType[*predicates.Error](err); !ok || err.Error() != want {
			t.Errorf("%s is refused with\n%v\nwant\n%s", src, err, want)
		}
	}
}

// What is not known is Invalid to a reader of the scope.
func TestScopeReaders(t *testing.T) {
	s := predicates.NewScope(localEnv())
	s.Reset([]predicates.Member{{Name: "a", Host: "h"}, {Name: "b"}})
	s.Set(0, []scgs.Value{scgs.BoolValue(true), {}, scgs.IntValue(7), scgs.EnumValue("idle")})
	if m, online := s.Member(0); m.Name != "a" || m.Host != "h" || !online {
		t.Errorf("member 0 is %v, online %t", m, online)
	}
	if m, online := s.Member(1); m.Name != "b" || online {
		t.Errorf("member 1 is %v, online %t", m, online)
	}
	if v := s.Value(0, 2); v.Int() != 7 {
		t.Errorf("n of a is %v", v)
	}
	for _, v := range []scgs.Value{s.Value(0, 1), s.Value(1, 2), s.Memory(0)} {
		if v.Type() != scgs.Invalid {
			t.Errorf("what is not known is %v", v)
		}
	}
	s.SetMemory(0, scgs.FloatValue(3))
	if v := s.Memory(0); v.Float() != 3 {
		t.Errorf("the limit is %v", v)
	}
}

// A predicate that is no threshold is refused with the place that makes it none.
func TestNoThreshold(t *testing.T) {
	for src, want := range map[string]string{
		"any(members, .leader)": `1:1: a threshold is count(members, condition) >= k alone
  any(members, .leader)
  ^
  write count(members, CONDITION) >= K, and nothing else beside it`,
		"count(members, .leader) >= 0": `1:28: so many members satisfy every condition
  count(members, .leader) >= 0
                             ^
  ask for 1 member at least`,
		"count(members, .leader && .online) >= 2": `1:28: the condition has to be a local one, and this is not of the member alone
  count(members, .leader && .online) >= 2
                             ^
  a local condition reads the fields of a single member, its .name and .host`,
	} {
		p, err := localEnv().Bool(src)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		_, _, err = p.Threshold()
		if _, ok := errors.AsType[*predicates.Error](err); !ok || err.Error() != want {
			t.Errorf("%s is refused with\n%v\nwant\n%s", src, err, want)
		}
	}
}
