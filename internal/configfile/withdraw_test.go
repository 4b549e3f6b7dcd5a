package configfile_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/configfile"
)

func withdrawing(rule string) []byte {
	return []byte(strings.Replace(workFarm, "work: {}", "work: {withdraw: "+rule+"}", 1))
}

// TestWithdraw: the rule is read, adds the estimates that it reads, and is shown with its defaults.
func TestWithdraw(t *testing.T) {
	const rule = `{when: .work.share < 0.2, for: 5s, back: ".work.share > 0.6 and .load < 1"}`
	plans, err := configfile.Parse("t.yaml", withdrawing(rule))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := plans[0].Work.Withdraw, (config.Withdraw{When: ".work.share < 0.2", For: 5 * time.Second, Back: ".work.share > 0.6 and .load < 1"}); got != want {
		t.Errorf("the rule is %+v, want %+v", got, want)
	}
	if got := schemaOf(plans[0].State); !strings.Contains(got, "work.share: float = 1") || strings.Contains(got, "work.queued") {
		t.Errorf("the state is %s", got)
	}
	for _, w := range plans[0].Warnings {
		t.Errorf("a warning of fields that the rule reads: %v", w)
	}
	shown, err := configfile.Show("t.yaml", withdrawing(`{when: .load > 2}`))
	if err != nil || strings.Count(string(shown), "withdraw:") != 1 || !strings.Contains(string(shown), "for: 0s") {
		t.Errorf("shown, %v:\n%s", err, shown)
	}
	if again, err := configfile.Parse("t.yaml", shown); err != nil || again[0].Work.Withdraw != (config.Withdraw{When: ".load > 2"}) {
		t.Errorf("what is shown is another configuration: %v", err)
	}
	changes, err := plans[0].Changes(plans[0])
	if err != nil || len(changes) > 0 {
		t.Errorf("without a change: %v, %v", changes, err)
	}
}

// TestWithdrawFaults: each fault is reported where it stands.
func TestWithdrawFaults(t *testing.T) {
	for rule, want := range map[string][]string{
		"{when: .lod > 2}":                        {"t.yaml:6:30:", `work.withdraw.when: `, `unknown field "lod"`, `did you mean "load"?`},
		"{when: .load > 2, back: .x}":             {"t.yaml:6:47:", "work.withdraw.back: ", `unknown field "x"`},
		"{when: .work.shar > 2}":                  {"work.withdraw.when: ", "unknown field .work.shar", `did you mean "share"?`},
		"{when: .load > }":                        {"work.withdraw.when: "},
		"{when: .load}":                           {"work.withdraw.when: ", "float"},
		"{when: 'count(members, .load > 2) > 1'}": {"work.withdraw.when: "},
		"{when: .load > params.most}":             {"work.withdraw.when: "},
		"{when: .load > memory.ended}":            {"work.withdraw.when: "},
		"{when: .load > 2, for: -1s}":             {"work.withdraw.for: a condition has to hold for -1s: use 0s to 1h0m0s"},
		"{when: .load > 2, for: 2h}":              {"work.withdraw.for: a condition has to hold for 2h0m0s: use 0s to 1h0m0s"},
		"{back: .load > 2}":                       {"work.withdraw: the condition when is missing: members withdraw while it holds: write when: CONDITION"},
		"{for: 2s}":                               {"work.withdraw: the condition when is missing"},
		"{when: .load > 2, back: ' .load > 2'}":   {"work.withdraw.back: back is the same as when: a member would withdraw and come back again and again"},
		"{when: .load > 2, until: .load < 2}":     {"until"},
	} {
		_, err := configfile.Parse("t.yaml", withdrawing(rule))
		if err == nil {
			t.Errorf("%s is taken", rule)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v: %q is missing", rule, err, w)
			}
		}
	}
}
