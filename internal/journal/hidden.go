package journal

import (
	"slices"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/outbox"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/scgs"
)

// Hidden is an input as a file may have it: without the values of redacted fields. It is
// the input itself if the level redacts nothing, else a copy where they differ. The
// level is the one that the machine follows before the input. Messages between machines
// have the input itself.
func Hidden(level *plan.Level, in *synccore.Input) *synccore.Input {
	switch {
	case in.Kind == synccore.InBatch && in.Group == "" && level.State.Redacts():
		return hiddenBatch(level.State, in)
	case in.Kind == synccore.InKept && level.Redacts():
		return hiddenKept(level, in)
	}
	return in
}

func hiddenBatch(state scgs.Schema, in *synccore.Input) *synccore.Input {
	hidden, batch := *in, *in.Batch
	batch.Reports = slices.Clone(batch.Reports)
	for i := range batch.Reports {
		r := &batch.Reports[i]
		r.Row = state.Hidden(r.Row)
	}
	hidden.Batch = &batch
	return &hidden
}

func hiddenKept(level *plan.Level, in *synccore.Input) *synccore.Input {
	hidden, kept := *in, *in.Kept
	kept.Memory = level.Memory().Hidden(kept.Memory)
	kept.Prev = slices.Clone(kept.Prev)
	for i, row := range kept.Prev {
		kept.Prev[i] = level.State.Hidden(row)
	}
	kept.Letters = slices.Clone(kept.Letters)
	for i := range kept.Letters {
		hideData(level, &kept.Letters[i].Letter)
	}
	kept.Left = slices.Clone(kept.Left)
	for i := range kept.Left {
		hideData(level, &kept.Left[i])
	}
	hidden.Kept = &kept
	return &hidden
}

// hideData leaves out the data of a signal that depend on redacted fields. A signal of a
// predicate that the level does not have, which a reload has removed, loses all.
func hideData(level *plan.Level, l *outbox.Letter) {
	if l.Signal == nil || l.Owner != outbox.Rule || len(l.Signal.Data) == 0 {
		return
	}
	shown, known := level.ShownData(l.Signal.Predicate, l.Signal.Name)
	signal := *l.Signal
	signal.Data = slices.DeleteFunc(slices.Clone(signal.Data), func(d control.Datum) bool {
		return !known || !slices.Contains(shown, d.Name)
	})
	l.Signal = &signal
}
