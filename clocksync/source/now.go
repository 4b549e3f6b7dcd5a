package source

import (
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// started makes Monotonic count from near the start of the process.
var started = time.Now()

// Monotonic reads a clock that only this process has: the now of its timeouts.
// It never goes back and starts near zero. It is not the timeline of any stamp;
// inside a bubble of testing/synctest it follows the bubble's time, as timers
// do, while stamps keep to the kernel's clock.
func Monotonic() clocksync.Instant { return clocksync.Instant(time.Since(started)) }

// WallNano is the wall clock in nanoseconds since 1970. Numbers that are
// larger after a restart, terms and incarnations, begin with it where nothing better is
// known; it may be set back, so nothing may rest on it.
func WallNano() int64 { return time.Now().UnixNano() }
