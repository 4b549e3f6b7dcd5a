package gostate_test

import (
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/gostate"
	"github.com/gopegasus/pegasus/scgs"
)

// TestErrorsHideRedactedValues: a program logs what Set returns.
func TestErrorsHideRedactedValues(t *testing.T) {
	type state struct{ Kind string }
	declared := scgs.Schema{{Name: "kind", Type: scgs.Enum, Words: []string{"a", "b"}, Redact: true}}
	row := make([]scgs.Value, 1)
	var e gostate.Encoding
	encoder, at, err := e.Of(state{"secret"}, declared)
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Row(encoder, at)
	for what, got := range map[string]error{
		"field kind of": err,
		`field "kind"`:  gostate.FillJSON(declared, row, []byte(`{"kind": "secret"}`)),
		"one JSON":      gostate.FillJSON(declared, row, []byte(`{"kind": "secret"`)),
	} {
		if got == nil || !strings.Contains(strings.ToLower(got.Error()), strings.ToLower(what)) || !strings.Contains(got.Error(), scgs.Redacted) || strings.Contains(got.Error(), "secret") {
			t.Errorf("%s: %v", what, got)
		}
	}
}
