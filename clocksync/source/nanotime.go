package source

import (
	_ "unsafe" // For go:linkname.

	"github.com/gopegasus/pegasus/clocksync"
)

// nanotime reads the clock that the runtime measures time with: on Linux
// CLOCK_MONOTONIC through the vDSO, on macOS mach_absolute_time in nanoseconds.
// time.Now reads the same clock but shows it relative to the start of the
// process, which no other process can compare with, and the system call for it
// costs several times as much. The runtime keeps this name for programs that
// link to it.
//
//go:linkname nanotime runtime.nanotime
func nanotime() int64

// readRaw is the raw reading of the domain's clock.
func readRaw() clocksync.Instant { return clocksync.Instant(nanotime()) }
