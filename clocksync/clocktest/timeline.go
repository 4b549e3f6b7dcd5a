package clocktest

import (
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// Truth tells the true time, the timeline of the intervals of all stamps. It
// starts at 0 or later and must not go back.
type Truth func() clocksync.Instant

// Timeline is a true time that stands still until it is moved. The zero value is
// at 0. It must not be used by two goroutines at once.
type Timeline struct{ now clocksync.Instant }

// Now is the true time.
func (t *Timeline) Now() clocksync.Instant { return t.now }

// Advance moves the true time on. A negative d panics: true time never goes back.
func (t *Timeline) Advance(d time.Duration) {
	if d < 0 {
		panic("clocktest: true time cannot go back by " + d.String())
	}
	t.now = t.now.Add(d)
}

// Manual is a clock that shows the stamp it was given last, whatever that is: it
// is the one clock that can be made to go back. It must not be used by two
// goroutines at once.
type Manual struct{ stamp clocksync.Stamp }

// NewManual returns a clock that shows the stamp; its domain stays.
func NewManual(s clocksync.Stamp) *Manual { return &Manual{s} }

// Set changes what the clock shows.
func (m *Manual) Set(mono clocksync.Instant, within clocksync.Interval) {
	m.stamp.Mono, m.stamp.Within = mono, within
}

// Advance moves the reading and the bounded ends of the interval by d.
func (m *Manual) Advance(d time.Duration) {
	m.Set(m.stamp.Mono.Add(d), clocksync.Interval{
		Earliest: m.stamp.Within.Earliest.Add(d),
		Latest:   m.stamp.Within.Latest.Add(d),
	})
}

// Domain is the domain of the first stamp.
func (m *Manual) Domain() clocksync.Domain { return m.stamp.Domain }

// Now is the stamp given last.
func (m *Manual) Now() clocksync.Stamp { return m.stamp }

// Quality says that the bound is assumed by source "manual".
func (m *Manual) Quality() clocksync.Quality {
	return clocksync.Quality{Source: "manual", Assumed: true, Status: clocksync.Synchronized, Expires: clocksync.MaxInstant}
}
