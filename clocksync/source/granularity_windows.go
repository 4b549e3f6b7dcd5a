package source

import "time"

// granularity is the step of the clock of stamps: Windows counts ticks.
const granularity = 15625 * time.Microsecond
