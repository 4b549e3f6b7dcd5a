package configfile_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/yamlconf"
)

// TestRedactIsPassedOn wants a fault wherever a value of a redacted field would be
// shown by something that is not redacted.
func TestRedactIsPassedOn(t *testing.T) {
	const src = `synchronizers:
  g:
    members: {group: w, count: 2}
    state:
      zone: {type: {enum: [a, b]}, redact: true}
      jobs: {type: {list: string}, redact: true, default: []}
      token: {type: string, redact: true}
      load: float
      told: string
    memory: {last: string, hidden: {type: string, redact: true}, other: string}
    let: {chosen: "find(members, .load > 1).token"}
    predicates:
      grouped: {when: "any(members, .load > 1)", by: .zone, signal: []}
      p:
        when: "any(members, .load > 1)"
        set: {last: chosen, hidden: chosen, other: memory.hidden}
        signal: {kind: activate, region: r, data: {token: chosen, load: "max(map(members, .load))"}}
    balance: {loads: .jobs, region: r}
  inner:
    parent: g
    members: {threads: 2}
    state: {x: float}
    process: {key: {type: string, redact: true}}
    predicates: {}
    summary: {zone: '"a"', token: process.key, load: "sum(members, .x)", told: from_parent.p.token}
`
	_, err := configfile.Parse("r.yaml", []byte(src))
	faults, ok := errors.AsType[*yamlconf.Error](err)
	if !ok {
		t.Fatal(err)
	}
	var got []string
	for _, f := range faults.Faults {
		got = append(got, f.Path+": "+f.Message)
	}
	want := []string{
		`synchronizers.g.predicates.grouped.by: the names of the predicates would show the values of the redacted field "zone": group by another field, or leave out redact`,
		"synchronizers.g.predicates.p.set.last: memory.last would show a value of the redacted .token: declare it redacted, too: last: {type: string, redact: true}",
		"synchronizers.g.predicates.p.set.other: memory.other would show a value of the redacted memory.hidden: declare it redacted, too: other: {type: string, redact: true}",
		"synchronizers.g.balance.loads: plans and orders would show values of the redacted .jobs: leave out redact, or balance by another field",
		"synchronizers.inner.summary.told: the state of g would show a value of the redacted from_parent.p: declare it redacted, too: told: {type: string, redact: true}",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestRedactWords: redact is a bool, and stands beside type alone.
func TestRedactWords(t *testing.T) {
	for state, want := range map[string]string{
		"{token: {type: string, redact: maybe}}":  "redact.yaml:1:",
		"{token: {redact: true}}":                 "a type is a word, such as float, {enum: [a, b]} or {list: TYPE}",
		"{token: {type: string, redacted: true}}": `unknown key "redacted": beside type stand default and redact`,
	} {
		_, err := configfile.Parse("redact.yaml", []byte("synchronizers: {g: {members: {group: w}, state: "+state+"}}"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", state, err, want)
		}
	}
}

// TestRedactTakesARestart: members and journals go by the declaration of the start.
func TestRedactTakesARestart(t *testing.T) {
	parse := func(redact string) plan.Levels {
		levels, err := configfile.Parse("redact.yaml", []byte("synchronizers: {g: {members: {group: w}, state: {token: {type: string, redact: "+redact+"}}}}"))
		if err != nil {
			t.Fatal(err)
		}
		return levels
	}
	const want = "g: the declared state is now {token: string}, and was {token: string (redacted)}, by which the members report: restart to change that"
	if _, err := parse("true")[0].Changes(parse("false")[0]); err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
	if changes, err := parse("true")[0].Changes(parse("true")[0]); err != nil || len(changes) > 0 {
		t.Errorf("%q, %v", changes, err)
	}
}
