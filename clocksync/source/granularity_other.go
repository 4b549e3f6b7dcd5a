//go:build !windows

package source

import "time"

// granularity is the step of the clock of stamps.
const granularity = time.Nanosecond
