//go:build !unix

package work

import "time"

// processorTime is negative: the system does not tell it in this way.
func processorTime() time.Duration { return -1 }
