package clocksync_test

import (
	"fmt"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

func ExampleCertainlyBefore() {
	stamp := func(domain clocksync.Domain, mono, at clocksync.Instant, bound time.Duration) clocksync.Stamp {
		return clocksync.Stamp{Domain: domain, Mono: mono, Within: clocksync.Around(at, bound)}
	}
	a := stamp("host-1", 100, 5000, 50)
	b := stamp("host-1", 101, 5001, 50) // the same clock, one nanosecond later
	c := stamp("host-2", 7, 5090, 50)   // another clock: the intervals overlap
	d := stamp("host-2", 9, 5200, 50)
	fmt.Println("a b", clocksync.CertainlyBefore(a, b))
	fmt.Println("a c", clocksync.CertainlyBefore(a, c), clocksync.PossiblyBefore(a, c))
	fmt.Println("a d", clocksync.CertainlyBefore(a, d))
	// Output:
	// a b true
	// a c false true
	// a d true
}
