package predicates_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

func rosterEnv() *predicates.Env {
	return &predicates.Env{
		State: scgs.Schema{{Name: "calls", Type: scgs.Int}, {Name: "failed", Type: scgs.Int}}, Memory: scgs.Schema{{Name: "k", Type: scgs.Int}},
		Params: []predicates.Param{{Field: scgs.Field{Name: "part", Type: scgs.Int}, Value: scgs.IntValue(70)}}, Prev: true,
	}
}

// TestRosterThreshold: k by the number of members, 0 to 6.
func TestRosterThreshold(t *testing.T) {
	e := rosterEnv()
	const c = "count(members, .calls > 1)"
	for src, want := range map[string]string{
		c + " >= len(members) / 2 + 1":                     "1 1 2 2 3 3 4",
		c + " > len(members) / 2":                          "1 1 2 2 3 3 4",
		"len(members) / 2 < " + c:                          "1 1 2 2 3 3 4",
		"len(members) / 2 + 1 <= " + c:                     "1 1 2 2 3 3 4",
		c + " >= len(members)":                             "0 1 2 3 4 5 6",
		c + " >= len(members) * params.part / 100":         "0 0 1 2 2 3 4",
		c + " >= int(ceil(len(members) * 0.7))":            "0 1 2 3 3 4 5",
		c + " >= max(len(members) / 2 + 1, 2)":             "2 2 2 2 3 3 4",
		c + ` >= count(members, .name != "m0") / 2 + 1`:    "1 1 1 2 2 3 3",
		c + " > 2 * len(members) / 3":                      "1 1 2 3 3 4 5",
		"count(members, .calls > 1) >= params.part - 60":   "10 10 10 10 10 10 10",
		"count(members, .calls > 1) >= 100 / len(members)": "? 100 50 33 25 20 16",
	} {
		p, err := e.Bool(src)
		if err != nil {
			t.Fatal(err)
		}
		local, least, when, err := p.RosterThreshold()
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		var got []string
		for n := range 7 {
			s := predicates.NewScope(e)
			members := make([]predicates.Member, n)
			for i := range members {
				members[i].Name = fmt.Sprintf("m%d", i)
			}
			s.Reset(members)
			v, why := least.EvalValue(s)
			if why != "" {
				got = append(got, "?")
				continue
			}
			got = append(got, v.String())
			for i := range n { // The whole is true from k members on.
				s.Set(i, []scgs.Value{scgs.IntValue(5), {}})
				for rest := i + 1; rest < n; rest++ {
					s.Set(rest, []scgs.Value{scgs.IntValue(0), {}})
				}
				if is := when.Eval(s).Truth == predicates.True; is != (int64(i+1) >= v.Int()) {
					t.Errorf("%s with %d of %d members: %v, k is %v", src, i+1, n, is, v)
				}
			}
		}
		if got := strings.Join(got, " "); got != want || local == nil {
			t.Errorf("%s: got %s, want %s", src, got, want)
		}
	}
}

// TestNoRosterThreshold has what k must not be.
func TestNoRosterThreshold(t *testing.T) {
	e := rosterEnv()
	for src, want := range map[string]string{
		"count(members, .calls > 1) >= len(members) * 0.7":             "1:44: k is a whole number, this is a float",
		"count(members, .calls > 1) >= len(members) / 2.0 + 1":         "1:50: k is a whole number, this is a float",
		"count(members, .calls > 1) > 1.0 * len(members) / 2":          "k is a whole number, this is a float",
		"count(members, .calls > 1) >= memory.k":                       "k is set when an epoch begins, by who the members are, and this reads more",
		"count(members, .calls > 1) >= count(members, .online)":        "k is set when an epoch begins, by who the members are, and this reads more",
		"count(members, .calls > 1) > count(members, .failed > 1)":     "k is set when an epoch begins, by who the members are, and this reads more",
		"count(members, .calls > 1) >= len(prev)":                      "k is set when an epoch begins, by who the members are, and this reads more",
		"count(members, .calls > memory.k) >= len(members) / 2 + 1":    "the condition has to be a local one, and this is not of the member alone",
		"count(members, .calls > 1) >= 0":                              "so many members satisfy every condition",
		"count(members, .calls > 1) < len(members) / 2":                "a threshold is count(members, condition) >= k alone",
		"count(members, .calls > 1) * 2 > len(members)":                "a threshold is count(members, condition) >= k alone",
		"count(members, .calls > 1) >= len(members) / 2 + 1 and true":  "a threshold is count(members, condition) >= k alone",
		"len(filter(members, .calls > 1)) >= len(members) / 2 + 1":     "a threshold is count(members, condition) >= k alone",
		"count(filter(members, .online), .calls > 1) > len(members)/2": "the condition has to be on all members",
	} {
		p, err := e.Bool(src)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := p.RosterThreshold(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", src, err, want)
		}
	}
}

// TestMisreadShare: shares of the members that are other ones than they seem, in groups of 1 to 10.
func TestMisreadShare(t *testing.T) {
	e := rosterEnv()
	const c = "count(members, .calls > 1)"
	for _, one := range []struct {
		src     string
		rounds  bool
		message string
		hint    string
	}{
		{c + " >= len(members) / 2", true, "2 of 5 members are enough here, fewer than len(members) / 2: / rounds down in a threshold", "write count(...) > len(members) / 2, which is more than that share; int(ceil(...)) around it rounds up"},
		{"len(members) / 2 <= " + c, true, "2 of 5 members are enough here, fewer than len(members) / 2: / rounds down in a threshold", "count(...) > len(members) / 2"},
		{"let half = len(members) / 2; " + c + " >= half", false, "", ""},
		{c + " >= 2 * len(members) / 3", true, "3 of 5 members are enough here, fewer than 2 * len(members) / 3", "count(...) > 2 * len(members) / 3"},
		{c + " >= len(members) * params.part / 100", true, "3 of 5 members are enough here", "count(...) > len(members) * params.part / 100"},
		{c + " >= len(members) / 2 + 1", false, "4 of 5 members are needed here, as / does not round: len(members) / 2 + 1 is 3.5", "write count(...) > len(members) / 2, which is more than that share; in a threshold, with modality: atleast, / rounds down"},
		{c + " >= len(members) / 2 + 1", true, "", ""},
		{c + " > len(members) / 2", true, "", ""},
		{c + " > len(members) / 2", false, "", ""},
		{c + " >= len(members) / 2", false, "", ""},
		{c + " >= (len(members) + 1) / 2", true, "", ""}, // Rounded up: half of them at least.
		{c + " >= int(ceil(len(members) / 2))", true, "", ""},
		{c + " >= int(len(members) / 2)", true, "", ""},
		{c + " >= len(members) / 1", true, "", ""},
		{c + " >= 3", false, "", ""},
		{c + " * 2 > len(members)", false, "", ""},
	} {
		p, err := e.Bool(one.src)
		if err != nil {
			t.Fatal(err)
		}
		if one.rounds {
			if _, _, p, err = p.RosterThreshold(); err != nil {
				t.Fatal(err)
			}
		}
		switch fault := p.MisreadShare(1, 10, 5, one.rounds); {
		case fault == nil && one.message != "":
			t.Errorf("%s: nothing, want %s", one.src, one.message)
		case fault != nil && (one.message == "" || !strings.HasPrefix(fault.Message, one.message) || !strings.Contains(fault.Hint, one.hint)):
			t.Errorf("%s: %v", one.src, fault)
		}
	}
	p, err := e.Bool(c + " >= len(members) / 2")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, p, err = p.RosterThreshold(); err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		from, to int
		want     string
	}{{4, 4, ""}, {1, 4, "1 of 3 "}, {1, 6, "2 of 5 "}, {6, 20, "3 of 7 "}} {
		got := ""
		if fault := p.MisreadShare(one.from, one.to, 5, true); fault != nil {
			got = fault.Message
		}
		if (one.want == "") != (got == "") || !strings.HasPrefix(got, one.want) {
			t.Errorf("%d to %d members: %q, want %q", one.from, one.to, got, one.want)
		}
	}
}

// TestLikeThreshold: what says that so many members satisfy a condition.
func TestLikeThreshold(t *testing.T) {
	e := rosterEnv()
	for src, want := range map[string]bool{
		"count(members, .calls >= 10 and .failed / .calls > 0.5) * 2 > len(members)":                  true,
		"count(members, .calls >= 10 and .failed / .calls > 0.5) / len(members) > 0.5":                true,
		"2 * count(members, .calls >= 10 and .failed / .calls > 0.5) - len(members) > 0":              true,
		"let bad = count(members, .calls >= 10 and .failed / .calls > 0.5); bad > len(members) - bad": true,
		"let bad = count(members, .calls >= 10 and .failed / .calls > 0.5); max(bad, 1) > 2.5":        true,
		"count(members, .calls >= 10 and .failed / .calls > 0.5) > 0.5 * len(members)":                true,
		"float(count(members, .calls >= 10 and .failed / .calls > 0.5)) > 2.5":                        true,
		"not (count(members, .calls > 1) * 2 <= len(members))":                                        true,
		"count(members, .calls > 1) > len(members) / 2":                                               true,
		"count(members, .calls > 1) >= 3":                                                             false,
		"count(members, .calls > 1) == 3":                                                             false,
		"count(members, .calls > 1) * 2 < len(members)":                                               false,
		"count(members, .calls > 1) >= memory.k":                                                      false,
		"count(members, .calls > memory.k) * 2 > len(members)":                                        false,
		"count(members, .calls > 1) * 2 > len(members) and any(members, .calls > 5)":                  false,
		"count(members, .calls > 1) * 2 > len(members) and memory.k > 1":                              false,
		"count(members, .calls > 1) > count(members, .calls > 2)":                                     false,
		"count(members, .calls > 1) * 2 > count(members, .online)":                                    false,
		"len(filter(members, .calls > 1)) * 2 > len(members)":                                         false,
		"all(members, .calls > 1)":                                                                    false,
		"sum(members, .calls) >= 50 and sum(members, .failed) / sum(members, .calls) > 0.5":           false,
		"len(members) > 2": false,
	} {
		p, err := e.Bool(src)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.LikeThreshold(); got != want {
			t.Errorf("%s: %v", src, got)
		}
	}
}
