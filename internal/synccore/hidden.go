package synccore

import (
	"slices"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/outbox"
	"github.com/gopegasus/pegasus/internal/plan"
)

// Hidden is a copy without the values of fields and variables that the level redacts, and
// without data of signals that depend on them.
func (k *Kept) Hidden(level *plan.Level) *Kept {
	hidden := *k
	hidden.Memory = level.Memory().Hidden(k.Memory)
	hidden.Prev = slices.Clone(k.Prev)
	for i, row := range k.Prev {
		hidden.Prev[i] = level.State.Hidden(row)
	}
	hidden.Letters = slices.Clone(k.Letters)
	for i := range k.Letters {
		hideData(level, &hidden.Letters[i].Letter)
	}
	hidden.Left = slices.Clone(k.Left)
	for i := range k.Left {
		hideData(level, &hidden.Left[i])
	}
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
