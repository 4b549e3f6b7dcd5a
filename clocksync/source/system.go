package source

import "github.com/gopegasus/pegasus/clocksync"

// System returns a clock of raw monotonic readings and [clocksync.Unbounded] intervals.
// Processes with the same boot and time namespace share its domain; if these are unknown, the
// domain is this process's own.
func System() clocksync.Clock { return systemClock{systemDomain()} }

// Reading is a bare reading of the clock of [System]: what its next stamp has as Mono,
// at less than half the cost.
func Reading() clocksync.Instant { return readRaw() }

type systemClock struct{ domain clocksync.Domain }

func (c systemClock) Domain() clocksync.Domain { return c.domain }

func (c systemClock) Quality() clocksync.Quality { return clocksync.Quality{Source: "system"} }

func (c systemClock) Now() clocksync.Stamp {
	return clocksync.Stamp{Domain: c.domain, Mono: readRaw(), Within: clocksync.Unbounded}
}
