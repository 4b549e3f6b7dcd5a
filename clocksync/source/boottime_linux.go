package source

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/gopegasus/pegasus/clocksync"
)

// bootReading is CLOCK_BOOTTIME: CLOCK_MONOTONIC and the time asleep.
func bootReading() clocksync.Instant { return read(unix.CLOCK_BOOTTIME) }

// rawReading is CLOCK_MONOTONIC_RAW: CLOCK_MONOTONIC without what daemons do to
// its rate.
func rawReading() clocksync.Instant { return read(unix.CLOCK_MONOTONIC_RAW) }

// read reads a clock that every kernel since 2.6.39 has.
func read(clock int32) clocksync.Instant {
	var ts unix.Timespec
	if err := unix.ClockGettime(clock, &ts); err != nil {
		panic(fmt.Sprintf("source: clock %d: %v", clock, err))
	}
	return clocksync.Instant(ts.Nano())
}
