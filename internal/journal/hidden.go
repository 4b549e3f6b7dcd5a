package journal

import (
	"slices"

	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/scgs"
)

// Hidden is an input as a file may have it: without the values of redacted fields. It is the
// input itself if the level redacts nothing, else a copy where they differ. The level is the
// level that the machine follows before the input. Messages between machines have the input
// itself.
func Hidden(level *plan.Level, in *synccore.Input) *synccore.Input {
	switch {
	case in.Kind == synccore.InBatch && in.Group == "" && level.State.Redacts():
		return hiddenBatch(level.State, in)
	case in.Kind == synccore.InKept && level.Redacts():
		hidden := *in
		hidden.Kept = in.Kept.Hidden(level)
		return &hidden
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
