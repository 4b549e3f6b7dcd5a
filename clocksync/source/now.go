package source

import (
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// started and begun are the same moment, on the clock that timers follow and on the clock of
// [System].
var started, begun = time.Now(), readRaw()

// Monotonic reads the clock of [System] as timers see it: the now of timeouts. It never goes
// back, and the processes of a boot have the same, so a process can take over the timeouts of
// another. It is not the timeline of any stamp. Inside a bubble of testing/synctest it follows
// the bubble's time, as timers do, while stamps keep to the kernel's clock.
func Monotonic() clocksync.Instant { return begun.Add(time.Since(started)) }

// WallNano is the wall clock in nanoseconds since 1970. Numbers that are
// larger after a restart, terms and incarnations, begin with it where nothing better is
// known; it may be set back, so nothing may rest on it.
func WallNano() int64 { return time.Now().UnixNano() }
