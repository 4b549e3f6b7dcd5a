//go:build !linux

package source

import "github.com/gopegasus/pegasus/clocksync"

// bootReading is the clock of stamps here: sleep shows in the wall clock only.
func bootReading() clocksync.Instant { return reading() }
