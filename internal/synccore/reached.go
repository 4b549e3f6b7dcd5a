package synccore

import (
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/rearm"
)

// heldSets is how many sets of a threshold are kept that may be one alarm with a set that has fired.
const heldSets = 8

// forgetHeld forgets the oldest set that is held back, if there are too many.
func (w *runs) forgetHeld() {
	n, oldest := 0, -1
	for i, f := range w.found {
		if f.held {
			if n++; oldest < 0 {
				oldest = i
			}
		}
	}
	if n > heldSets {
		w.found = slices.Delete(w.found, oldest, oldest+1)
	}
}

// noteFired keeps a set that has fired, or that had fired in an earlier epoch.
func (w *runs) noteFired(f *found) {
	if w.reach != nil {
		w.reach.Fire(f.runs)
	}
}

// continues reports whether the threshold may have stayed reached between a set and a set that
// has fired. It gives the set up if the two are the same set, grown.
func (w *runs) continues(now clocksync.Instant, f *found) bool {
	if w.reach == nil || !w.reach.HasFired() {
		f.held = false
		return false
	}
	if f.held && f.edges == w.reach.Edges() && now < f.look {
		return true
	}
	f.edges, f.look = w.reach.Edges(), now.Add(askPeriod)
	answer := w.reach.Ask(f.runs)
	f.held = answer != rearm.Alarm
	f.waits = f.waits && answer != rearm.Grown
	return f.held
}
