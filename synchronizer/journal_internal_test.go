package synchronizer

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/gopegasus/pegasus/internal/synccore"
)

// TestAStepThatPanics: the input of a step that did not end is the last one of the
// journal, so that it can be stepped again.
func TestAStepThatPanics(t *testing.T) {
	cfg, err := ParseConfig("test.yaml", []byte("synchronizers:\n  gsync:\n    members: {group: g}\n"))
	if err != nil {
		t.Fatal(err)
	}
	core := synccore.New(cfg.plans[0], synccore.Options{Term: 1})
	var text bytes.Buffer
	var out synccore.Output
	j := newRecorder(cfg.plans[0], synccore.Options{Term: 1}, &Options{Journal: &text, JournalLimit: MinJournalLimit, Logger: slog.New(slog.DiscardHandler)}, nil, 1)
	tick := &synccore.Input{Kind: synccore.InTick}
	j.begin(cfg.plans[0].State, 2, tick)
	core.Step(2, tick, &out)
	j.end(&out)
	j.begin(cfg.plans[0].State, 3, tick)
	j.close()
	r, err := Replay(&text, ReplayOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const why = "the journal was ended before the run: the step of the last input did not end: the process panicked"
	if r.Inputs != 2 || r.Complete || r.Why != why || r.FirstDifference != 0 {
		t.Errorf("%+v", r)
	}
}
