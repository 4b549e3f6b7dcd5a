package scgs_test

import (
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/scgs"
)

func TestRedact(t *testing.T) {
	s := scgs.Schema{{Name: "token", Type: scgs.String, Redact: true}, {Name: "load", Type: scgs.Int}}
	row := []scgs.Value{scgs.StringValue("abc"), scgs.IntValue(3)}
	if got := s[0].Show(row[0]) + " " + s[1].Show(row[1]); got != "(redacted) 3" {
		t.Errorf("shown are %s", got)
	}
	hidden := s.Hidden(row)
	if hidden[0] != (scgs.Value{}) || hidden[1] != row[1] || row[0] != scgs.StringValue("abc") {
		t.Errorf("hidden is %v of %v", hidden, row)
	}
	if open := s[1:].Hidden(row[1:]); &open[0] != &row[1] {
		t.Error("a row without redacted values is copied")
	}
	list := scgs.Field{Name: "keys", Type: scgs.ListOf(scgs.String), Redact: true}
	if !list.Element().Redact {
		t.Error("the element of a redacted list is shown")
	}
	const want = `state: field "token" (token: string) does not take string (redacted)`
	if err := s.Accepts([]scgs.Value{scgs.StringValue(strings.Repeat("abc", 100)), {}}); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if plain := (scgs.Schema{{Name: "token", Type: scgs.String}, s[1]}); plain.Hash() == s.Hash() {
		t.Error("a member that knows nothing of redact reports by the same hash")
	}
}
