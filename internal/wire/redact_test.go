package wire_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// TestRedactTravels: a member learns which fields are redacted, and its errors hide their values.
func TestRedactTravels(t *testing.T) {
	w := goldenWelcome
	w.Schema = scgs.Schema{
		{Name: "token", Type: scgs.String, Redact: true},
		{Name: "keys", Type: scgs.ListOf(scgs.Int), Redact: true},
		{Name: "kind", Type: scgs.Enum, Words: []string{"a", "b"}, Redact: true, Default: scgs.EnumValue("b")},
		{Name: "load", Type: scgs.Float},
	}
	frame, err := wire.AppendWelcome(nil, &w)
	if err != nil {
		t.Fatal(err)
	}
	got, err := wire.DecodeWelcome(frame)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(w.Schema, got.Schema, cmp.Comparer(func(a, b scgs.Value) bool { return a == b })); d != "" {
		t.Error(d)
	}
	err = wire.NewBatchCodec(got.Schema).CheckRow([]scgs.Value{{}, {}, scgs.EnumValue("secret"), {}})
	if err == nil || !strings.Contains(err.Error(), "(redacted) is not one of its words") || strings.Contains(err.Error(), "secret") {
		t.Errorf("the error is %v", err)
	}
}
