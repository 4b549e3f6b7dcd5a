package workcore

import (
	"strings"
	"testing"
)

// TestPlausible: what no member says of itself is not shown.
func TestPlausible(t *testing.T) {
	good := func() *Report {
		return &Report{Member: "w", Phase: 1, Slots: 2, Open: 3, Blocked: 1, Running: 2, Holders: []Holding{{Member: "x", Tasks: 1, Runs: 1}}, Log: &LogReport{Stream: "s"}}
	}
	if !good().Plausible("w") {
		t.Error("a good report is refused")
	}
	for name, spoil := range map[string]func(*Report){
		"of another member":     func(r *Report) { r.Member = "v" },
		"no phase":              func(r *Report) { r.Phase = 0 },
		"no slots":              func(r *Report) { r.Slots = 0 },
		"a negative number":     func(r *Report) { r.Queued = -1 },
		"negative holdings":     func(r *Report) { r.Holders[0].Runs = -1 },
		"more blocked than are": func(r *Report) { r.Blocked = 4 },
		"a long stream":         func(r *Report) { r.Log.Stream = strings.Repeat("s", MaxStream+1) },
		"negative appends":      func(r *Report) { r.Log.Unwritten = -1 },
		"too many accounts":     func(r *Report) { r.Log.Accounts = make([]string, MaxHolders+1) },
		"too many holders":      func(r *Report) { r.Holders = make([]Holding, MaxHolders+1) },
	} {
		r := good()
		if spoil(r); r.Plausible("w") {
			t.Errorf("%s: it is believed", name)
		}
	}
}
