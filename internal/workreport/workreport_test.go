package workreport_test

import (
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/workreport"
)

// TestPlausible: what no member says of itself is not shown.
func TestPlausible(t *testing.T) {
	good := func() *workreport.Report {
		return &workreport.Report{Member: "w", Phase: 1, Slots: 2, Open: 3, Blocked: 1, Running: 2, Holders: []workreport.Holding{{Member: "x", Tasks: 1, Runs: 1}}, Log: &workreport.LogReport{Stream: "s"}, Loops: []workreport.Loop{{Name: "l", Speeds: []workreport.Speed{{Member: "w", Rows: 1}}, Used: new(float64)}}, Calls: []workreport.Calls{{Name: "f", Open: 1, Waiting: 2, Running: 1}}}
	}
	if !good().Plausible("w") {
		t.Error("a good report is refused")
	}
	for name, spoil := range map[string]func(*workreport.Report){
		"of another member":     func(r *workreport.Report) { r.Member = "v" },
		"no phase":              func(r *workreport.Report) { r.Phase = 0 },
		"no slots":              func(r *workreport.Report) { r.Slots = 0 },
		"a negative number":     func(r *workreport.Report) { r.Queued = -1 },
		"negative holdings":     func(r *workreport.Report) { r.Holders[0].Runs = -1 },
		"more blocked than are": func(r *workreport.Report) { r.Blocked = 4 },
		"too many loops":        func(r *workreport.Report) { r.Loops = make([]workreport.Loop, workreport.MaxLoops+1) },
		"a long loop":           func(r *workreport.Report) { r.Loops[0].Name = strings.Repeat("l", 1025) },
		"too many speeds":       func(r *workreport.Report) { r.Loops[0].Speeds = make([]workreport.Speed, workreport.MaxHolders+1) },
		"a negative speed":      func(r *workreport.Report) { r.Loops[0].Speeds[0].Rows = -1 },
		"a negative row":        func(r *workreport.Report) { r.Loops[0].Moved = -1 },
		"a negative part":       func(r *workreport.Report) { *r.Loops[0].Used = -1 },
		"a negative yield":      func(r *workreport.Report) { r.Loops[0].Overall = -1 },
		"too many functions":    func(r *workreport.Report) { r.Calls = make([]workreport.Calls, workreport.MaxCalls+1) },
		"a long function":       func(r *workreport.Report) { r.Calls[0].Name = strings.Repeat("f", 1025) },
		"negative calls":        func(r *workreport.Report) { r.Calls[0].Waiting = -1 },
		"a long stream":         func(r *workreport.Report) { r.Log.Stream = strings.Repeat("s", workreport.MaxStream+1) },
		"negative appends":      func(r *workreport.Report) { r.Log.Unwritten = -1 },
		"too many accounts":     func(r *workreport.Report) { r.Log.Accounts = make([]string, workreport.MaxHolders+1) },
		"too many holders":      func(r *workreport.Report) { r.Holders = make([]workreport.Holding, workreport.MaxHolders+1) },
	} {
		r := good()
		if spoil(r); r.Plausible("w") {
			t.Errorf("%s: it is believed", name)
		}
	}
}
