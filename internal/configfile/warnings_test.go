package configfile_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/yamlconf"
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
			[]string{"6:11 the condition has the same value on every global state"},
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
		"not before in": {
			"    state: {b: bool, kind: {enum: [x, y]}}\n    let: {odd: \"not .b in [true, false]\", odder: \"any(members, odd)\", even: \".b not in [true]\"}\n    predicates:\n" +
				"      p:\n        when: any(members, not .b in [true, false])\n        signal: {kind: cancel, region: r, to: \"filter(members, !.b in [true])\"}\n" +
				"      q: {each: members, when: \"not .b in [true] and even\", signal: []}\n      r: {by: .kind, when: \"any(members, not odd in [true])\", signal: []}\n" +
				"      s: {when: \"any(members, (not .b) in [true]) or odder\", signal: []}\n",
			[]string{
				"5:11 not applies to the left side of in alone: not x in [...] is read as (not x) in [...]",
				"8:9 not applies to the left side of in alone: not x in [...] is read as (not x) in [...]",
				"9:43 ! applies to the left side of in alone: ! x in [...] is read as (! x) in [...]",
				"10:26 not applies to the left side of in alone: not x in [...] is read as (not x) in [...]",
				"11:22 not applies to the left side of in alone: not x in [...] is read as (not x) in [...]",
			},
		},
		"one name twice": {
			"    predicates:\n      p:\n        when: len(members) > 1\n        signal: [{kind: cancel, region: a}, {kind: cancel, region: b, name: x}, {kind: cancel, region: c, name: x}, {kind: cancel, region: d, name: p}, {kind: cancel, region: e, name: x, to: {group: h}}]\n",
			[]string{
				`7:81 a second signal "x" of the same decision: a member that gets both takes the second for a copy and ignores it`,
				`7:117 a second signal "p" of the same decision: a member that gets both takes the second for a copy and ignores it`,
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

// TestNotes: a threshold that nobody has asked for is taken for one, and noted.
func TestNotes(t *testing.T) {
	const src = `synchronizers:
  g:
    members: {group: g}
    state: {x: int}
    predicates:
      guessed: {when: "count(members, .x > 1) > 1", signal: []}
      asked: {when: "count(members, .x > 1) > 1", modality: atleast, signal: []}
      counted: {when: "len(filter(members, .x > 1)) > 1", signal: []}
`
	plans, err := configfile.Parse("w.yaml", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	const want = `w.yaml:6:17: synchronizers.g.predicates.guessed.when: "guessed" is taken for a threshold: it fires on each set of 2 members that certainly overlapped, without waiting for the others
  |       guessed: {when: "count(members, .x > 1) > 1", signal: []}
  |                 ^
  = write modality: atleast to ask for it; len(filter(members, CONDITION)) instead of count is judged on global states of all members`
	if p := plans[0]; len(p.Notes) != 1 || p.Notes[0].String() != want || len(p.Warnings) > 0 {
		t.Errorf("notes %v, warnings %v\nwant %s", p.Notes, p.Warnings, want)
	}
}

// TestNotesOfMajorities: what says that so many members satisfy a condition is noted, unless
// it is a threshold, or means to be judged on global states.
func TestNotesOfMajorities(t *testing.T) {
	const bad = "count(members, .calls >= 10 and .failed / .calls > 0.5)"
	noted := map[string]bool{
		`"` + bad + ` * 2 > len(members)"`:                                                    true,
		`"` + bad + ` / len(members) > 0.5"`:                                                  true,
		`"2 * ` + bad + ` - len(members) > 0"`:                                                true,
		`"let bad = ` + bad + `; bad > len(members) - bad"`:                                   true,
		`"let bad = ` + bad + `; max(bad, 1) > 2.5"`:                                          true,
		`"` + bad + ` > 0.5 * len(members)"`:                                                  true,
		`"float(` + bad + `) > 2.5"`:                                                          true,
		`"` + bad + ` > len(members) / 2"`:                                                    true,
		`"` + bad + ` > len(members) / 2", modality: atleast`:                                 false,
		`"` + bad + ` >= len(members) / 2 + 1", modality: atleast`:                            false,
		`"` + bad + ` * 2 > len(members)", modality: inst`:                                    false,
		`"` + bad + ` * 2 > len(members)", every: true`:                                       false,
		`"` + bad + ` >= 3", modality: atleast`:                                               false,
		`"` + bad + ` * 2 < len(members)"`:                                                    false,
		`"sum(members, .calls) >= 50 and sum(members, .failed) / sum(members, .calls) > 0.5"`: false,
	}
	for when, want := range noted {
		src := "synchronizers:\n  g:\n    members: {group: g, count: 5}\n    state: {calls: int, failed: int}\n    predicates:\n      q: {when: " + when + ", signal: []}\n"
		plans, err := configfile.Parse("w.yaml", []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		notes := plans[0].Notes
		if (len(notes) > 0) != want || want && !strings.HasPrefix(notes[0].Message, `"q" asks for so many members`) {
			t.Errorf("%s: %v", when, notes)
		}
	}
}

// TestThresholdThatNeverFires: no more members can hold a condition than there may be.
func TestThresholdThatNeverFires(t *testing.T) {
	const src = `synchronizers:
  g:
    members: {group: g, max: 3}
    state: {x: int}
    predicates:
      most: {when: "count(members, .x > 1) >= 3", modality: atleast, signal: []}
      more: {when: "count(members, .x > 1) > 3", modality: atleast, signal: []}
`
	plans, err := configfile.Parse("w.yaml", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	const want = `w.yaml:7:14: synchronizers.g.predicates.more.when: "more" never fires: it asks for 4 members
  |       more: {when: "count(members, .x > 1) > 3", modality: atleast, signal: []}
  |              ^
  = ask for fewer, or raise members.max, which is 3`
	if p := plans[0]; len(p.Warnings) != 1 || p.Warnings[0].String() != want {
		t.Errorf("warnings %v\nwant %s", p.Warnings, want)
	}
}

// TestSharesOfMembers: a majority that is none, and a parameter that may ask for too few or too many.
func TestSharesOfMembers(t *testing.T) {
	const head = `params:
  k: {type: int, default: 3, min: 0, max: 100}
  fits: {type: int, default: 3, min: 1, max: 10}
  free: {type: int, default: 3}
  part: {type: int, default: 70, min: 0, max: 100}
synchronizers:
  g:
    members: {group: g, count: 5, max: 10}
    state: {x: int}
    let: {half: len(members) / 2}
    predicates:
      p: {signal: [], when: "`
	const c = "count(members, .x > 1)"
	for text, want := range map[string][]string{
		c + ` >= half", modality: atleast`: {
			`"p": 2 of 5 members are enough here, fewer than len(members) / 2: / rounds down in a threshold: write count(...) > len(members) / 2, which is more than that share; int(ceil(...)) around it rounds up`,
		},
		c + ` >= len(members) / 2 + 1"`: {
			`"p": 4 of 5 members are needed here, as / does not round: len(members) / 2 + 1 is 3.5: write count(...) > len(members) / 2, which is more than that share; in a threshold, with modality: atleast, / rounds down`,
		},
		c + ` >= params.k", modality: atleast`: {
			`"p" asks for 0 members where params.k is 0, which its range allows: 1 is the least: declare params.k with a greater min`,
			`"p" never fires where params.k is 100, which its range allows: it asks for 100 members: declare params.k with a smaller max, or raise members.max, which is 10`,
		},
		c + ` >= params.k"`: {
			`"p" asks for 0 members where params.k is 0, which its range allows: 1 is the least: declare params.k with a greater min`,
			`"p" never fires where params.k is 100, which its range allows: it asks for 100 members: declare params.k with a smaller max, or raise members.max, which is 10`,
		},
		c + ` > params.fits", modality: atleast`: {
			`"p" never fires where params.fits is 10, which its range allows: it asks for 11 members: declare params.fits with a smaller max, or raise members.max, which is 10`,
		},
		c + ` >= max(len(members) * params.part / 100, 1)", modality: atleast`: nil,
		c + ` >= len(members) * params.part / 100 + 0", modality: atleast`: {
			`"p" asks for 0 members where params.part is 0, which its range allows: 1 is the least: declare params.part with a greater min`,
		},
		c + ` >= params.fits", modality: atleast`:        nil,
		c + ` >= params.free", modality: atleast`:        nil,
		c + ` >= half + 1", modality: atleast`:           nil,
		c + ` > half", modality: atleast`:                nil,
		`count(members, .x > params.k) >= 2", for: "1s"`: nil,
	} {
		plans, err := configfile.Parse("w.yaml", []byte(head+text+"}\n"))
		if err != nil {
			t.Fatal(text, err)
		}
		var got []string
		for _, w := range plans[0].Warnings {
			got = append(got, w.Message+": "+w.Hint)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

// TestUnknownModality: what a predicate finds is not judged where its modality is mistyped.
func TestUnknownModality(t *testing.T) {
	const src = `synchronizers:
  g:
    members: {group: g}
    state: {x: int}
    predicates:
      p: {when: "count(members, .x > 1) > 1", modality: atlest, signal: {region: r, kind: activate, to: holders}}
`
	_, err := configfile.Parse("w.yaml", []byte(src))
	if err == nil || !strings.Contains(err.Error(), `"atlest" is no modality: use inst, definitely, possibly or atleast, or leave it out`) || strings.Contains(err.Error(), "holders are") {
		t.Errorf("%v", err)
	}
}

// TestCommaInBraces: an expression that a comma has cut is said to be one.
func TestCommaInBraces(t *testing.T) {
	const src = `synchronizers:
  g:
    members: {group: g}
    state: {x: int}
    predicates:
      p: {when: "any(members, .x > 1)", signal: {kind: activate, region: r, data: {most: max(map(members, .x))}}}
`
	_, err := configfile.Parse("w.yaml", []byte(src))
	if err == nil || !strings.Contains(err.Error(), "inside braces a comma ends a value: write text that holds one in quotes") {
		t.Error(err)
	}
}

// TestFaultyFields: a field that cannot be read is one fault, and those after it are read;
// a wrong default costs the default alone.
func TestFaultyFields(t *testing.T) {
	const src = `synchronizers:
  g:
    members: {group: g}
    state: {prev: int, offset: integer, load: {type: float, default: x}, busy: bool, other: decimal}
    memory: {seen: number, best: {type: int, initial: x}, last: int}
    predicates:
      p:
        when: "sum(members, .offset) > memory.seen and all(members, .busy) and any(members, .other > 1)"
        set: {seen: "1", best: "sum(members, .load) > 1", last: "2"}
        signal: []
      q: {when: "any(members, .nothing > 1)", signal: []}
`
	_, err := configfile.Parse("w.yaml", []byte(src))
	faults, ok := errors.AsType[*yamlconf.Error](err)
	if !ok {
		t.Fatal(err)
	}
	var got []string
	for _, f := range faults.Faults {
		got = append(got, f.Path+": "+f.Message)
	}
	const noType = "is no type: use bool, int, float, string, duration, {enum: [a, b]} or {list: TYPE}"
	want := []string{
		"synchronizers.g.state.prev: the field name prev is reserved: .prev is the member in the global state before",
		`synchronizers.g.state.offset: "integer" ` + noType,
		`synchronizers.g.state.load.default: "x" is no value of load: float`,
		`synchronizers.g.state.other: "decimal" ` + noType,
		`synchronizers.g.memory.seen: "number" ` + noType,
		`synchronizers.g.memory.best.initial: "x" is no value of best: int`,
		"synchronizers.g.predicates.p.set.best: an int is wanted, this is a bool: change the expression or the declared type",
		`synchronizers.g.predicates.q.when: unknown field "nothing": declared fields: load, busy, name, host, online`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestSummaries: runs of what summaries say are shorter than those of the threads.
func TestSummaries(t *testing.T) {
	const src = `synchronizers:
  g:
    members: {group: g}
    state: {idle: bool, own: {type: bool, default: false}}
    predicates:
      a: {when: "all(members, .idle)", modality: definitely, signal: []}
      b: {when: "all(members, not .idle)", modality: possibly, signal: []}
      c: {when: "count(members, .idle) >= 2", signal: []}
      d: {when: "all(members, .own)", modality: definitely, signal: []}
      e: {when: "all(members, .idle)", signal: []}
  t:
    parent: g
    members: {threads: 2}
    state: {idle: bool}
    summary: {idle: "all(members, .idle)"}
`
	plans, err := configfile.Parse("w.yaml", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	text := func(at, word, or string) string {
		return at + " " + word + ` is weaker here than its name: the field "idle" comes from the summary of "t", which holds only from the latest start of the threads' states to the earliest end, so the predicate may miss true conditions of the threads; ` +
			"judge the threads' own states by a predicate of t, or " + or + ": inst loses nothing by summaries"
	}
	want := []string{
		text("6:40", "definitely", "leave the modality out"),
		text("7:44", "possibly", "leave the modality out"),
		text("8:11", "atleast", "write len(filter(members, CONDITION)) instead of count, without a modality"),
	}
	var got []string
	for _, w := range plans[0].Warnings {
		got = append(got, w.Pos.String()+" "+w.Message+"; "+w.Hint)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
