//go:build unix

package main

import (
	"syscall"
	"time"
)

// used is the processor time of this process so far, which other work on the
// machine does not lengthen as it does the time of day.
func used() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
