package source

import "github.com/gopegasus/pegasus/clocksync"

// System returns a clock of raw monotonic readings and [clocksync.Unbounded]
// intervals. Its domain is shared by the processes of one boot and time
// namespace; it is this process's own where that cannot be told.
func System() clocksync.Clock { return systemClock{systemDomain()} }

// Reading is a bare reading of the clock of [System]: what its next stamp has as Mono,
// at less than half the cost.
func Reading() clocksync.Instant { return reading() }

type systemClock struct{ domain clocksync.Domain }

func (c systemClock) Domain() clocksync.Domain { return c.domain }

func (c systemClock) Quality() clocksync.Quality { return clocksync.Quality{Source: "system"} }

func (c systemClock) Now() clocksync.Stamp {
	return clocksync.Stamp{Domain: c.domain, Mono: reading(), Within: clocksync.Unbounded}
}
