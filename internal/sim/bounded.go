package sim

import (
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// bounded is the clock of a host that is off the reference time by a known
// amount, and knows that it is off by no more than a bound.
type bounded struct {
	host, root *Host
	off, bound time.Duration
}

// Bounded returns a clock of a host, on the time line of the root's monotonic
// clock: its stamps are around the true reading of that clock plus off. It is
// honest if off is within the bound.
func Bounded(h, root *Host, off, bound time.Duration) Clock { return bounded{h, root, off, bound} }

func (b bounded) Read() clocksync.Stamp {
	return clocksync.Stamp{
		Domain: b.host.Domain, Mono: b.host.Mono(),
		Within: clocksync.Around(b.root.Mono().Add(b.off), b.bound),
	}
}

func (b bounded) Quality() clocksync.Quality {
	return clocksync.Quality{
		Source: "fixed", Assumed: true, Timeline: b.root.readTimeline(),
		Status: clocksync.Synchronized, Expires: clocksync.MaxInstant,
	}
}
