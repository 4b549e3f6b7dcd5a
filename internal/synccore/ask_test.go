package synccore_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/monitor"
)

const lone = "synchronizers:\n  s:\n    members: {group: g}\n    state: {n: int}\n    predicates:\n      p: {when: \"any(members, .n > 1)\", signal: []}\n"

func newLone(t *testing.T) *synccore.Core {
	t.Helper()
	levels, err := configfile.Parse("s.yaml", []byte(lone))
	if err != nil {
		t.Fatal(err)
	}
	return synccore.New(levels[0], synccore.Options{Term: 1, Reference: "host"})
}

// TestQuestions: every question has an answer before the first input and after a
// failure, what was not asked for is empty, and nothing changes.
func TestQuestions(t *testing.T) {
	c := newLone(t)
	var out synccore.Output
	ask := func(q synccore.Question) *synccore.Answer {
		c.Step(5, &synccore.Input{Kind: synccore.InAsk, Ask: &q}, &out)
		return &out.Answer
	}
	all := synccore.Question{Status: true, Explain: "p", Counts: true, Figures: true, Memory: true, Run: &synccore.RunKey{}}
	for _, failed := range []bool{false, true} {
		if a := ask(all); a.Status.Synchronizer != "s" || a.Explanation == nil || a.Figures.Awaited != 1 || a.Found {
			t.Errorf("failed %v: %+v", failed, a)
		}
		if a := ask(synccore.Question{Explain: "q"}); a.Explanation != nil || a.Status.Synchronizer != "" {
			t.Errorf("failed %v: what was not asked for: %+v", failed, a)
		}
		c.Fail()
	}
	if out.Wake != clocksync.MaxInstant {
		t.Errorf("a machine that has failed is to be stepped at %v", out.Wake)
	}
}

// TestThresholdOfOneIsExplained: what is missing is told of one member, not of a set.
func TestThresholdOfOneIsExplained(t *testing.T) {
	levels, err := configfile.Parse("s.yaml", []byte(strings.Replace(lone, `"any(members, .n > 1)"`, `"count(members, .n > 1) >= 1", modality: atleast`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	var out synccore.Output
	c := synccore.New(levels[0], synccore.Options{Term: 1, Reference: "host"})
	c.Step(5, &synccore.Input{Kind: synccore.InAsk, Ask: &synccore.Question{Explain: "p"}}, &out)
	want := monitor.Missing{Kind: "runs", Text: "no member is known to have the condition true"}
	if e := out.Answer.Explanation; !slices.Contains(e.Missing, want) {
		t.Errorf("%+v", e.Missing)
	}
}

// TestRestartAfterFailure: a process that ended by the policy of a silent member may be
// followed by another one.
func TestRestartAfterFailure(t *testing.T) {
	c := newLone(t)
	c.Fail()
	var out synccore.Output
	c.Step(10, &synccore.Input{Kind: synccore.InRestart, Restart: &synccore.Options{Term: 2, Reference: "host"}}, &out)
	if c.Made().Term != 2 {
		t.Errorf("it is of term %d", c.Made().Term)
	}
}
