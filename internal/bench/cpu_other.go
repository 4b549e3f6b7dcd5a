//go:build !unix

package bench

import "time"

// Used is 0: the system does not tell the time of the processor in this way.
func Used() time.Duration { return 0 }
