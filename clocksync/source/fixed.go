package source

import (
	"fmt"
	"sync"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// maxFixed is beyond the error of every maintained clock.
const maxFixed = time.Hour

// Fixed returns a clock whose intervals hold what the operator says: that the
// wall clock of this host is never off by more than the bound. The bound must be
// above 0 and at most an hour; exact wall clocks do not exist, and members of
// one host need no bound to be compared.
//
// Each stamp reads the wall clock between two monotonic readings and widens the
// interval by their distance, so it holds even where the process was held up in
// between. Stamps are made monotone ([clocksync.Monotone]); a wall clock that is
// set back by more than the bound breaks the operator's word, and the stamps
// then stay where they were.
func Fixed(bound time.Duration) (clocksync.Clock, error) {
	if err := checkFixed(bound); err != nil {
		return nil, err
	}
	return &fixedClock{domain: systemDomain(), bound: bound, mono: readRaw, wall: WallNano}, nil
}

func checkFixed(bound time.Duration) error {
	switch {
	case bound <= 0:
		return fmt.Errorf("source: fixed bound %v: it must be above 0; use the system clock where no bound is known", bound)
	case bound > maxFixed:
		return fmt.Errorf("source: fixed bound %v: it must be at most %v", bound, maxFixed)
	}
	return nil
}

type fixedClock struct {
	domain clocksync.Domain
	bound  time.Duration
	mono   func() clocksync.Instant
	wall   func() int64

	mu       sync.Mutex // also orders the readings, so that none goes back
	monotone clocksync.Monotone
}

func (c *fixedClock) Domain() clocksync.Domain { return c.domain }

func (c *fixedClock) Quality() clocksync.Quality {
	return clocksync.Quality{
		Source: "fixed", Assumed: true, Timeline: clocksync.UTC, Status: clocksync.Synchronized, Expires: clocksync.MaxInstant,
	}
}

func (c *fixedClock) Now() clocksync.Stamp {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.mono()
	wall := clocksync.Instant(c.wall())
	after := c.mono()
	// The stamp's reading is the later one: the wall clock was read up to
	// after-before earlier, so the true time of the reading may lie that much later.
	s, ok := c.monotone.Next(clocksync.Stamp{
		Domain: c.domain,
		Mono:   after,
		Within: clocksync.Interval{
			Earliest: wall.Add(-c.bound),
			Latest:   wall.Add(c.bound).Add(after.Sub(before)),
		},
	})
	if !ok {
		panic(fmt.Sprintf("source: the monotonic clock went back to %v", s))
	}
	return s
}
