package main

import (
	"fmt"
	"time"

	"github.com/gopegasus/pegasus/monitor"
)

// String is a status as one line: its global state.
func (s standing) String() string {
	if s.State == nil {
		ready := 0
		for _, m := range s.Members {
			if m.Standing == monitor.Ready || m.Standing == monitor.Taking {
				ready++
			}
		}
		return fmt.Sprintf("no global state yet: %d of %s have a state", ready, count(s.Awaited, "awaited member"))
	}
	var parts []string
	for _, m := range s.Members {
		if m.Standing == monitor.Taking {
			one := monitor.WitnessLine{Member: m.Name, State: m.State, Unknown: m.Unknown}
			parts = append(parts, one.String())
		}
	}
	return fmt.Sprintf("global state %d of epoch %d (%s): %s", s.State.Index, s.State.Epoch, heldText(s.State), some(parts))
}

// clockTime is the time of day that lines begin with.
func clockTime(t time.Time) string { return t.Format("15:04:05") }
