//go:build !unix

package bench

import "time"

// used is 0: the system does not tell the time of the processor in this way.
func used() time.Duration { return 0 }
