package synccore_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/scgs"
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

// TestQuestions: every question has an answer before the first input and after a failure, parts
// not asked for are empty, and nothing changes.
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

// TestThresholdOfOneIsExplained: the answer names the missing evidence of a single member, not
// of a set.
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

// TestStatusHasTimes: the status says when the state of a member began and last certainly held, by the bounds of its clock.
// Without bounds it says when the message came.
func TestStatusHasTimes(t *testing.T) {
	levels, err := configfile.Parse("s.yaml", []byte(lone))
	if err != nil {
		t.Fatal(err)
	}
	c := synccore.New(levels[0], synccore.Options{Term: 1, Reference: "host"})
	var out synccore.Output
	const now = 1000
	span := func(from, to clocksync.Instant) *monitor.Range { return &monitor.Range{From: from, To: to} }
	bounded := clocksync.Quality{Timeline: "host"}
	for name, m := range map[string]struct {
		domain       clocksync.Domain
		quality      clocksync.Quality
		began, ended *monitor.Range
	}{
		"a": {"host", clocksync.Quality{}, span(-900, -900), span(-700, -700)},
		"b": {"other", bounded, span(-930, -870), span(-730, -670)},
		"c": {"third", clocksync.Quality{}, span(clocksync.MinInstant, -600), span(clocksync.MinInstant, -600)},
	} {
		c.Step(50, &synccore.Input{Kind: synccore.InHello, From: name, Hello: &wire.Hello{Member: name, Incarnation: 1, Host: "box", Domain: m.domain, Quality: m.quality}}, &out)
		stamp := func(mono clocksync.Instant) clocksync.Stamp {
			s := clocksync.Stamp{Domain: m.domain, Mono: mono, Within: clocksync.Unbounded}
			if m.quality == bounded {
				s.Within = clocksync.Around(mono, 30)
			}
			return s
		}
		c.Step(400, &synccore.Input{Kind: synccore.InBatch, From: name, Batch: &wire.Batch{
			Member: name, Incarnation: 1, Reports: []wire.Report{{Seq: 1, At: stamp(100), Row: []scgs.Value{scgs.IntValue(1)}}}, Evidence: wire.Evidence{Seq: 1, At: stamp(300)},
		}}, &out)
		c.Step(now, &synccore.Input{Kind: synccore.InAsk, Ask: &synccore.Question{Status: true}}, &out)
		for _, s := range out.Answer.Status.Members {
			if s.Name == name && (!reflect.DeepEqual(s.Began, m.began) || !reflect.DeepEqual(s.Ended, m.ended) || !s.Open || s.Report != 1) {
				t.Errorf("%s: began %v, ended %v, open %v, report %d", name, s.Began, s.Ended, s.Open, s.Report)
			}
		}
	}
	c.Step(now, &synccore.Input{Kind: synccore.InAsk, Ask: &synccore.Question{Status: true}}, &out)
	if n := len(out.Answer.Status.Members); n != 3 {
		t.Errorf("%d members", n)
	}
}
