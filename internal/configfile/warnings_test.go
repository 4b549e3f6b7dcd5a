package configfile_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gopegasus/pegasus/internal/configfile"
)

// warningsOf gives "LINE:COLUMN what" for each warning of a section's rest.
func warningsOf(t *testing.T, rest string) []string {
	t.Helper()
	plans, err := configfile.Parse("w.yaml", []byte("synchronizers:\n  g:\n    members: {group: g}\n"+rest))
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, w := range plans[0].Warnings {
		if w.File != "w.yaml" || w.Source == "" || w.Hint == "" {
			t.Errorf("a warning lacks something: %+v", w)
		}
		list = append(list, w.Pos.String()+" "+w.Message)
	}
	return list
}

// TestWarnings has each warning beside what is close to it and right.
func TestWarnings(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"no predicates": {"    state: {x: int}\n", nil},
		"no effect": {
			"    predicates:\n      a: {when: len(members) > 1}\n      b: {when: len(members) > 1, signal: []}\n      c: {when: len(members) > 1, signal: {kind: cancel, region: r}}\n",
			[]string{`5:7 predicate "a" has no effect when it fires`},
		},
		"constant": {
			"    memory: {m: {type: int, initial: 0}}\n    predicates:\n      a: {when: \"true\", set: {m: \"1\"}}\n      b: {when: memory.m == 0, set: {m: \"1\"}}\n",
			[]string{"6:11 this condition is the same on every global state"},
		},
		"memory": {
			"    memory: {a: int, b: {type: int, initial: 0}, c: {type: int, initial: 3}, d: int}\n    predicates:\n      p: {when: memory.a + memory.c > memory.d, set: {b: memory.b + 1, d: \"1\"}}\n",
			[]string{
				`4:14 the variable "a" has no initial value and is never set: it is always unknown`,
				`4:22 no expression reads the variable "b"`,
			},
		},
		"memory in data": {
			"    memory: {a: {type: int, initial: 0}}\n    predicates:\n      p: {when: len(members) > 1, signal: {kind: cancel, region: r, data: {a: memory.a}}}\n", nil,
		},
		"fields": {
			"    state: {x: int, y: int, z: int}\n    predicates:\n      p: {when: \"any(members, .x > 0)\", signal: {kind: cancel, region: r, to: \"filter(members, .z > 0)\"}}\n",
			[]string{`4:21 no expression reads the field "y"`},
		},
		"every": {
			"    memory: {m: {type: int, initial: 0}}\n    predicates:\n      p: {when: len(members) > 1, every: true, signal: {kind: cancel, region: r}}\n" +
				"      q: {when: len(members) > memory.m, every: true, set: {m: len(members)}, signal: {kind: cancel, region: r}}\n" +
				"      r: {when: len(members) > 1, every: true, set: {m: \"0\"}}\n",
			[]string{`6:35 "p" sends its signals again on each global state while it holds: every change of any member makes one`},
		},
		"one name twice": {
			"    predicates:\n      p:\n        when: len(members) > 1\n        signal: [{kind: cancel, region: a}, {kind: cancel, region: b, name: x}, {kind: cancel, region: c, name: x}, {kind: cancel, region: d, name: p}, {kind: cancel, region: e, name: x, to: {group: h}}]\n",
			[]string{
				`7:81 a second signal "x" of one decision: a member that gets both takes this one for a copy and ignores it`,
				`7:117 a second signal "p" of one decision: a member that gets both takes this one for a copy and ignores it`,
			},
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			if d := cmp.Diff(c.want, warningsOf(t, c.text)); d != "" {
				t.Error(d)
			}
		})
	}
}
