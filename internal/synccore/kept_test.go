package synccore_test

import (
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/outbox"
	"github.com/gopegasus/pegasus/internal/regions"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/scgs"
)

const keptConfig = `
synchronizers:
  gsync:
    members: {group: g}
    state: {n: int}
    memory: {seen: {type: int, initial: 0}, last: {type: int}}
    predicates:
      edge: {when: "sum(members, .n) > 5", set: {seen: memory.seen + 1}, signal: {kind: activate, region: r}}
`

func keptCore(t *testing.T) *synccore.Core {
	t.Helper()
	levels, err := configfile.Parse("kept.yaml", []byte(keptConfig))
	if err != nil {
		t.Fatal(err)
	}
	return synccore.New(levels[0], synccore.Options{Term: 5})
}

// TestUnfitKept: what no machine of this configuration has in mind is refused as a whole, by one that is
// retold its inputs and by any other.
func TestUnfitKept(t *testing.T) {
	letter := func(change func(*outbox.Kept)) func(*synccore.Kept) {
		return func(k *synccore.Kept) {
			l := outbox.Kept{Letter: outbox.Letter{Owner: outbox.Rule, Signal: &control.Signal{
				Decision: control.Decision{Synchronizer: "gsync", Term: 5, Epoch: 1, Number: 1}, Name: "edge", Predicate: "edge", Kind: control.Activate, Target: "a", Region: "r", Entry: 1,
			}}}
			change(&l)
			k.Letters = append(k.Letters, l)
		}
	}
	for why, change := range map[string]func(*synccore.Kept){
		"":                               letter(func(*outbox.Kept) {}),
		"it is of another configuration": func(k *synccore.Kept) { k.Rules = nil },
		"the numbers of its epoch and its decisions are to be below 2^62": func(k *synccore.Kept) { k.Epoch = 1 << 62 },
		`memory.last does not take true`:                                  func(k *synccore.Kept) { k.Memory[1] = scgs.BoolValue(true) },
		`member "a" is behind member "a", and they are in order of their names`: func(k *synccore.Kept) {
			k.Members = []synccore.KeptMember{{Name: "a"}, {Name: "a"}}
		},
		`member "a b": `: func(k *synccore.Kept) { k.Members = []synccore.KeptMember{{Name: "a b", Gone: 1}} },
		`member "a" was incarnation 4611686018427387904: it is to be below 2^62`: func(k *synccore.Kept) {
			k.Members = []synccore.KeptMember{{Name: "a", Gone: 1 << 62}}
		},
		`region "a b": `: func(k *synccore.Kept) { k.Entered = []regions.Kept{{Names: []string{"a b"}}} },
		"it has 65 names of regions of a group, at most 64 are kept": func(k *synccore.Kept) {
			k.Entered = []regions.Kept{{Names: make([]string, 65)}}
		},
		`prev: state: 2 values for 1 fields`:                              func(k *synccore.Kept) { k.Prev = [][]scgs.Value{nil, make([]scgs.Value, 2)} },
		"letter 1 has no signal, no owner, or a group that has no name":   letter(func(l *outbox.Kept) { l.Signal = nil }),
		"letter 1 has no signal, no owner, or a group that has no name ":  letter(func(l *outbox.Kept) { l.Owner = 9 }),
		"letter 1 has no signal, no owner, or a group that has no name  ": letter(func(l *outbox.Kept) { l.Group = "*" }),
		"letter 1: wire: signals: signals[0].kind: 7 is not 1 to 2":       letter(func(l *outbox.Kept) { l.Signal.Kind = 7 }),
		`letter 1: wire: signals: signals[0].target: "a b"`:               letter(func(l *outbox.Kept) { l.Signal.Target = "a b" }),
	} {
		for _, follows := range []bool{false, true} {
			c := keptCore(t)
			var out synccore.Output
			k := c.Kept()
			k.Memory = append([]scgs.Value{}, k.Memory...)
			change(k)
			if follows {
				c.Step(1, &synccore.Input{Kind: synccore.InRestart, Restart: &synccore.Options{Term: 5, Follows: true}}, &out)
			}
			c.Step(1, &synccore.Input{Kind: synccore.InKept, Kept: k}, &out)
			got := ""
			if len(out.Rejected) > 0 {
				got = out.Rejected[0].Detail
			}
			if want := "what another machine has in mind cannot be taken over: " + strings.TrimSpace(why); (why == "") != (got == "") || why != "" && !strings.HasPrefix(got, want) {
				t.Errorf("follows %t: got  %s\nwant %s", follows, got, want)
			}
		}
	}
}

// TestLetterToAGroupThatIsNoMore: a signal may be under way to a group that no signal goes to since a reload.
func TestLetterToAGroupThatIsNoMore(t *testing.T) {
	c := keptCore(t)
	var out synccore.Output
	k := c.Kept()
	k.Letters = []outbox.Kept{{Letter: outbox.Letter{Owner: outbox.Rule, Group: "old", Incarnation: 1, Signal: &control.Signal{
		Decision: control.Decision{Synchronizer: "gsync", Term: 5, Epoch: 1, Number: 1}, Name: "edge", Predicate: "edge", Kind: control.Activate, Target: "a", Region: "r", Entry: 1,
	}}}}
	for _, in := range []synccore.Input{
		{Kind: synccore.InRestart, Restart: &synccore.Options{Term: 5, Follows: true}},
		{Kind: synccore.InKept, Kept: k},
		{Kind: synccore.InTick},
		{Kind: synccore.InTerm, Term: 6},
	} {
		c.Step(1, &in, &out)
	}
	if len(out.Fates) != 1 || out.Fates[0].Fate != control.Unconfirmed || out.Fates[0].Group != "old" {
		t.Errorf("%+v", out.Fates)
	}
}

// TestEarlierTerm: a machine never continues in a term that does not follow its own.
func TestEarlierTerm(t *testing.T) {
	c := keptCore(t)
	var out synccore.Output
	for why, in := range map[string]synccore.Input{
		"a life in term 5 does not follow one in term 5": {Kind: synccore.InRestart, Restart: &synccore.Options{Term: 5}},
		"term 4 does not follow term 5":                  {Kind: synccore.InTerm, Term: 4},
	} {
		if c.Step(1, &in, &out); len(out.Rejected) != 1 || out.Rejected[0].Detail != why || c.Term() != 5 {
			t.Errorf("got  %+v in term %d\nwant %s", out.Rejected, c.Term(), why)
		}
	}
}
