package journal_test

import (
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/journal"
	"github.com/gopegasus/pegasus/internal/outbox"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

const redactedTypes = `
synchronizers:
  gsync:
    members: {group: g}
    state: {token: {type: string, redact: true}, mark: string}
    memory: {last: {type: string, redact: true}, seen: string}
    predicates:
      p:
        when: any(members, .token != "")
        signal: {kind: activate, region: r, data: {token: "find(members, .mark != \"\").token", mark: "find(members, .mark != \"\").mark"}}
`

// TestHidden wants no redacted value in the line of any input that has states, memory or
// signals, all other values there, and the input itself as it was.
func TestHidden(t *testing.T) {
	levels, err := configfile.Parse("test.yaml", []byte(redactedTypes))
	if err != nil {
		t.Fatal(err)
	}
	level := levels[0]
	secret, open := scgs.StringValue("secret-8641"), scgs.StringValue("ordinary")
	letter := func(predicate string) outbox.Letter {
		return outbox.Letter{Owner: outbox.Rule, Signal: &control.Signal{
			Name: "p", Predicate: predicate, Data: []control.Datum{{Name: "token", Value: secret}, {Name: "mark", Value: open}},
		}}
	}
	row := []scgs.Value{secret, open}
	for name, in := range map[string]*synccore.Input{
		"batch":  {Kind: synccore.InBatch, Batch: &wire.Batch{Member: "a", Reports: []wire.Report{{Seq: 1, Row: row}, {Seq: 2, End: true}}}},
		"memory": {Kind: synccore.InKept, Kept: &synccore.Kept{Memory: row}},
		"prev":   {Kind: synccore.InKept, Kept: &synccore.Kept{Prev: [][]scgs.Value{row, nil}}},
		"letter": {Kind: synccore.InKept, Kept: &synccore.Kept{Letters: []outbox.Kept{{Letter: letter("p")}}}},
		"left":   {Kind: synccore.InKept, Kept: &synccore.Kept{Left: []outbox.Letter{letter("p")}}},
	} {
		whole, err := journal.AppendInput(nil, level.State, 1, in)
		if err != nil {
			t.Fatal(err)
		}
		hidden, err := journal.AppendInput(nil, level.State, 1, journal.Hidden(level, in))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(hidden), "secret") || !strings.Contains(string(hidden), "ordinary") || !strings.Contains(string(whole), "secret") {
			t.Errorf("%s: hidden %s\nof %s", name, hidden, whole)
		}
		again, err := journal.AppendInput(nil, level.State, 1, in)
		if err != nil || string(again) != string(whole) {
			t.Errorf("%s: the input was changed to %s, %v", name, again, err)
		}
	}
	removed := &synccore.Input{Kind: synccore.InKept, Kept: &synccore.Kept{Left: []outbox.Letter{letter("removed")}}}
	if line, err := journal.AppendInput(nil, level.State, 1, journal.Hidden(level, removed)); err != nil || strings.Contains(string(line), "secret") {
		t.Errorf("a signal of a predicate that is not known: %s, %v", line, err)
	}
	plain, err := configfile.Parse("test.yaml", []byte(strings.ReplaceAll(redactedTypes, ", redact: true", "")))
	if err != nil {
		t.Fatal(err)
	}
	if journal.Hidden(plain[0], removed) != removed {
		t.Error("an input is copied though nothing is redacted")
	}
}
