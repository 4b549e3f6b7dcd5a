package synchronizer

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
)

// disk counts how often it is synchronized.
type disk struct {
	bytes.Buffer

	syncs int
}

func (d *disk) Sync() error { d.syncs++; return nil }

// TestSyncedBeforeAStart: a step is on the disk before its signals go out, and before what it
// has taken is acknowledged; nothing else waits for the disk, and nothing twice.
func TestSyncedBeforeAStart(t *testing.T) {
	cfg, err := ParseConfig("test.yaml", []byte("synchronizers:\n  gsync:\n    members: {group: g}\n"))
	if err != nil {
		t.Fatal(err)
	}
	d := &disk{}
	j := newRecorder(cfg.plans[0], synccore.Options{Term: 1}, &Options{Journal: d, JournalLimit: MinJournalLimit, Logger: slog.New(slog.DiscardHandler)}, nil, 1)
	defer j.close()
	body, signals := &synccore.Input{Kind: synccore.InBody}, &synccore.Output{Signals: make([]wire.Addressed[wire.Signals], 1)}
	for i, step := range []struct {
		do   func()
		want int
	}{
		{func() { j.ahead(body, &synccore.Output{}) }, 0},
		{j.sync, 1},
		{j.sync, 1},
		{func() { j.ahead(&synccore.Input{Kind: synccore.InTick}, signals) }, 2},
		{func() { j.ahead(body, signals) }, 3},
	} {
		if i != 2 { // Then nothing is written that was not there.
			j.add([]byte("a line\n"))
			j.flush()
		}
		if step.do(); d.syncs != step.want {
			t.Errorf("step %d: synchronized %d times, want %d", i, d.syncs, step.want)
		}
	}
}

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
