package configfile_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/plan"
)

// group is a file with these parameters, and keys of its only predicate.
func group(params, keys string) string {
	return fmt.Sprintf(`params: %s
synchronizers:
  g:
    members: {group: w, count: 2}
    state: {x: int, on: bool, zone: {enum: [east, west]}, odd: {enum: [in flight, gone]}, name2: string, tags: {list: int}}
    predicates:
      q: {when: "all(members, .on)", signal: []}
      p: {%s, signal: {kind: cancel, region: r}}
`, params, keys)
}

// Wrong parameters, and wrong uses of them and of the keys beside them, are refused whole, each
// with its place.
func TestHostileParams(t *testing.T) {
	const good = `when: "sum(members, .x) > 1"`
	many, names := make([]string, 65), make([]string, 65)
	for i := range many {
		many[i], names[i] = fmt.Sprintf("p%d: {type: int, default: 1}", i), fmt.Sprintf("n%d: \"1\"", i)
	}
	for _, c := range []struct{ params, keys, want string }{
		{"[a]", good, "1:9: params: params is a map of parameters"},
		{"{a: 1}", good, "1:13: params.a: a parameter has a type and a default"},
		{"{a: {type: int}}", good, "a parameter has a default: write {type: int, default: ...}"},
		{"{a: {type: big, default: 1}}", good, `"big" is no type`},
		{"{a: {type: {list: int}, default: []}}", good, "a parameter is a single value"},
		{"{a: {type: int, default: many}}", good, `"many" is no value of a: int`},
		{"{a: {type: int, default: 1.5}}", good, `"1.5" is no value of a: int`},
		{"{a: {type: int, default: 99999999999999999999}}", good, "is no value of a: int"},
		{"{a: {type: float, default: .nan}}", good, "is no value of a: float"},
		{"{a: {type: int, default: 5, max: 4}}", good, "params.a does not take 5: use 4 or less"},
		{"{a: {type: int, default: 5, min: 6}}", good, "params.a does not take 5: use 6 or more"},
		{"{a: {type: int, default: 5, min: 8, max: 7}}", good, "use 8 to 7"},
		{"{a: {type: string, default: x, min: a}}", good, "min is for numbers and durations"},
		{"{a: {type: {enum: [u, v]}, default: w}}", good, `"w" is no value of a`},
		{"{a: {type: int, default: 1, step: 2}}", good, `unknown key "step": a parameter has type, default, min, max`},
		{"{a b: {type: int, default: 1}}", good, "a b"},
		{"{a: {type: int, default: 1}, a: {type: int, default: 2}}", good, "a"},
		{"{" + strings.Join(many, ", ") + "}", good, "65 parameters, at most 64 may be declared"},
		{"{a: {type: int, default: 1}}", good + ", for: params.a", "8:"},
		{"{a: {type: int, default: 1}}", good + ", for: params.b", "no parameter of that name and type is declared below params"},
		{"{a: {type: int, default: 1}}", good + ", priority: params", "expected a whole number"},
		{"{a: {type: duration, default: -1s}}", good + ", for: params.a", "a hold time cannot be negative"},
		{"{a: {type: duration, default: 2h}}", good + ", after: {q: 25h}", "the time after the other predicate must be from 0s to 24h0m0s"},
		{"{a: {type: int, default: 0}}", `when: "count(members, .on) >= params.a", modality: atleast`, "so many members satisfy every condition"},
		{"{}", good + ", by: zone", `"zone" is no field of the members`},
		{"{}", good + ", by: .nowhere", `".nowhere" is no field of the members`},
		{"{}", good + ", by: .x", "members are grouped by an enum or a bool"},
		{"{}", good + ", by: .tags", "members are grouped by an enum or a bool"},
		{"{}", good + ", by: .odd", `"p-in flight" cannot be a name`},
		{"{}", `by: .zone, each: members, when: .on`, "leave out by or each"},
		{"{}", `each: threads, when: .on`, `"threads" is nothing that a predicate is judged for`},
		{"{}", `each: members, when: "all(members, .on)"`, "has to be a local one"},
		{"{}", `each: members, when: .on, modality: atleast`, "leave out modality or each"},
		{"{}", `each: members, when: .on, every: true`, "leave out every"},
		{"{}", `each: members, when: .on, for: 1s, until: not .on`, "leave out for or until"},
		{"{}", `each: members, when: .on, after: {q: 1s}`, "does not wait for another one"},
		{"{}", `each: members, when: .lode > 1`, `unknown field "lode"`},
		{"{}", good + ", once: day", `"day" is no time in which it fires once`},
		{"{}", good + ", refire: always", `"always" says nothing of a new epoch: use newcomers or epoch`},
		{"{}", good + ", refire: epoch, every: true", "leave out every or refire"},
		{"{}", `each: members, when: .on, refire: newcomers`, "leave out each or refire"},
		{"{}", good + ", once: member", "write each: members, or once: run or epoch"},
		{"{}", good + ", once: run, every: true", "leave out every or once"},
		{"{}", good + ", after: {r: 1s}", `there is no predicate "r": the others are p, q`},
		{"{}", good + ", after: {p: 1s}", "a predicate does not fire after itself"},
		{"{}", good + ", after: {q: 1s}, for: 1s", "leave out for"},
		{"{}", good + ", after: {q: 1s}, every: true", "leave out every or after"},
		{"{}", good + ", after: {q: -1s}", "the time after the other predicate must be from 0s"},
		{"{}", good + ", let: {sum: \"1\"}", `the name "sum" has a meaning already`},
		{"{}", good + ", let: {y: \".x > zz\"}", `unknown name "zz"`},
		{"{}", good + ", let: {" + strings.Join(names, ", ") + "}", "more than 64 names"},
	} {
		text := group(c.params, c.keys)
		if _, err := configfile.Parse("c.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "c.yaml:") {
			t.Errorf("%.60s | %.60s: %v\nwant %s", c.params, c.keys, err, c.want)
		}
	}
	circle := strings.Replace(group("{}", good+", after: {q: 1s}"), `q: {when: "all(members, .on)",`, `q: {when: "all(members, .on)", after: {p: 1s},`, 1)
	if _, err := configfile.Parse("c.yaml", []byte(circle)); err == nil || !strings.Contains(err.Error(), "predicates wait for each other: p after q after p") {
		t.Errorf("a circle: %v", err)
	}
	taken := strings.Replace(group("{}", good+", by: .zone"), "      q:", "      p-east: {when: \"all(members, .on)\", signal: []}\n      q:", 1)
	if _, err := configfile.Parse("c.yaml", []byte(taken)); err == nil || !strings.Contains(err.Error(), `there is another predicate "p-east"`) {
		t.Errorf("a name that is taken: %v", err)
	}
}

// A value that is given counts wherever the parameter is named, and is a part of the source.
func TestGivenParams(t *testing.T) {
	text := group("{k: {type: int, default: 2, min: 1}, hold: {type: duration, default: 1s}, on: {type: bool, default: true}}",
		`when: "sum(members, .x) > params.k and params.on", for: params.hold, priority: params.k`)
	text = strings.Replace(text, "count: 2", "count: params.k", 1)
	levels, err := configfile.Parse("c.yaml", []byte(text), plan.Override{Param: "k", Value: "7"}, plan.Override{Param: "hold", Value: "3s"})
	if err != nil {
		t.Fatal(err)
	}
	l := levels[0]
	if r := l.Rules[0]; l.Members.Count != 7 || r.Hold.String() != "3s" || r.Name != "p" {
		t.Errorf("count %d, for %v of %s", l.Members.Count, r.Hold, r.Name)
	}
	again, err := configfile.Recompile(l.Source, "g")
	if err != nil {
		t.Fatal(err)
	}
	if changes, err := l.Changes(again); err != nil || len(changes) > 0 {
		t.Errorf("compiled again: %q, %v", changes, err)
	}
	for _, c := range []struct{ name, value, want string }{
		{"k", "0", "params.k does not take 0: use 1 or more"},
		{"k", "x", `params.k: "x" is no value of k: int`},
		{"", "1", `no parameter ""`},
		{"kk", "1", `the configuration declares no parameter "kk": it has k, hold, on`},
	} {
		if _, err := configfile.Parse("c.yaml", []byte(text), plan.Override{Param: c.name, Value: c.value}); c.name != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s=%s: %v, want %s", c.name, c.value, err, c.want)
		}
	}
}

// TestLeastInt: the least int is a value wherever an int is.
func TestLeastInt(t *testing.T) {
	const least = "-9223372036854775808"
	src := group("{a: {type: int, default: "+least+"}, b: {type: int, default: 3, min: "+least+"}}", `when: "any(members, .x == `+least+` or .x == params.a + params.b)"`)
	plans, err := configfile.Parse("p.yaml", []byte(src), plan.Override{Param: "b", Value: least})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range plans[0].Params {
		if p.Value.Int() != math.MinInt64 {
			t.Errorf("params.%s is %v", p.Field.Name, p.Value)
		}
	}
}

// TestSignalsOfGroups: predicates of groups have names of their own, and send one signal.
func TestSignalsOfGroups(t *testing.T) {
	plans, err := configfile.Parse("p.yaml", []byte(group("{}", `by: .zone, when: "all(members, .on)"`)))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range plans[0].Rules {
		for i := range r.Signals {
			got = append(got, r.Name+" sends "+r.Signals[i].Name)
		}
	}
	if want := "p-east sends p, p-west sends p"; strings.Join(got, ", ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}
