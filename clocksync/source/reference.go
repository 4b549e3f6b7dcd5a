package source

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// Reference is the clock of this machine as the reference time of others. It may
// be used by several goroutines.
type Reference struct {
	domain clocksync.Domain
	clocks readings
	seen   atomic.Pointer[sight]
}

// sight is what the clocks showed last, and the timeline that goes with it.
type sight struct {
	at       clocksync.Observation
	slept    time.Duration // since the boot, or since the start where that cannot be told
	timeline clocksync.Timeline
}

// NewReference returns the clock of a domain of this process.
func NewReference(d clocksync.Domain) *Reference { return newReference(d, machine) }

func newReference(d clocksync.Domain, clocks readings) *Reference {
	r := &Reference{domain: d, clocks: clocks}
	first := &sight{at: clocks.observeClocks()}
	if first.at.Boot.Finite() {
		first.slept = first.at.Boot.Sub(first.at.Mono)
	}
	first.timeline = r.name(first.slept)
	r.seen.Store(first)
	return r
}

// Domain is the clock domain of the readings.
func (r *Reference) Domain() clocksync.Domain { return r.domain }

// Now reads the clock.
func (r *Reference) Now() clocksync.Instant { return r.clocks.mono() }

// Timeline names the reference time by now: the domain of the clock and how long
// it stood still so far because the machine slept. What others measured against it
// before is void, since they may not have slept. It costs no more than a look at
// the wall clock, as long as that agrees with the readings.
func (r *Reference) Timeline() clocksync.Timeline {
	last := r.seen.Load()
	wall, mono := r.clocks.both()
	now := clocksync.Observation{Mono: mono, Wall: wall, Boot: clocksync.MinInstant}
	if now.Change(last.at) == clocksync.Unchanged && mono.Sub(last.at.Mono) < pulse {
		return last.timeline
	}
	next := &sight{r.clocks.observeClocks(), last.slept, last.timeline}
	if next.at.Change(last.at) == clocksync.Suspended {
		next.slept = next.at.Wall.Sub(last.at.Wall) - next.at.Mono.Sub(last.at.Mono) + last.slept
		if next.at.Boot.Finite() {
			next.slept = next.at.Boot.Sub(next.at.Mono)
		}
		next.timeline = r.name(next.slept)
	}
	if !r.seen.CompareAndSwap(last, next) {
		return r.seen.Load().timeline
	}
	return next.timeline
}

// name is that of the clock alone where it never stood still for a millisecond.
func (r *Reference) name(slept time.Duration) clocksync.Timeline {
	name := clocksync.Timeline(r.domain)
	if ms := slept.Round(time.Millisecond).Milliseconds(); ms != 0 {
		name += clocksync.Timeline("+" + strconv.FormatInt(ms, 10) + "ms")
	}
	return name
}
