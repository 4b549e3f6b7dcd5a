//go:build unix

package work

import (
	"syscall"
	"time"
)

// processorTime is the processor time of this process so far; negative: not known.
func processorTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return -1
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
