package sim

import (
	"fmt"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

const billion = 1_000_000_000

// HostSpec says how the clocks of a host start.
type HostSpec struct {
	Mono clocksync.Instant // the reading of the monotonic clock
	Wall time.Duration     // the wall clock minus the true time
	Rate int64             // parts per billion by which both run fast
}

// Host is a machine with a monotonic clock, which stops while the machine is
// suspended, a boot clock, which does not, and a wall clock, which can be set.
type Host struct {
	Domain clocksync.Domain

	world  *World
	since  clocksync.Instant // true time from which rate counts
	mono   clocksync.Instant // reading at since
	parts  int64             // of a nanosecond at since, in billionths
	rate   int64
	slew   int64             // of the monotonic clock, beside rate
	ahead  time.Duration     // monotonic clock minus raw clock, at since
	asleep time.Duration     // boot clock minus monotonic clock
	wall   time.Duration     // wall clock minus boot clock
	awake  clocksync.Instant // true time at which a suspend ends
}

// NewHost adds a host.
func (w *World) NewHost(domain clocksync.Domain, s HostSpec) *Host {
	h := &Host{Domain: domain, world: w, since: w.now, mono: s.Mono, rate: s.Rate}
	h.wall = w.now.Sub(s.Mono) + s.Wall
	h.awake = w.now
	return h
}

// Suspended reports whether the host is.
func (h *Host) Suspended() bool { return h.world.now < h.awake }

// Mono is the reading of the monotonic clock.
func (h *Host) Mono() clocksync.Instant {
	whole, _ := h.reading()
	return whole
}

func (h *Host) reading() (clocksync.Instant, int64) {
	if h.Suspended() {
		return h.mono, h.parts
	}
	d := int64(h.world.now.Sub(h.since))
	rate := h.rate + h.slew
	parts := h.parts + d%billion*rate
	whole := d + d/billion*rate + parts/billion
	if parts %= billion; parts < 0 {
		whole, parts = whole-1, parts+billion
	}
	return h.mono.Add(time.Duration(whole)), parts
}

// Boot is the reading of the clock that counts suspends, too.
func (h *Host) Boot() clocksync.Instant { return h.Mono().Add(h.asleep) }

// Wall is the reading of the wall clock.
func (h *Host) Wall() clocksync.Instant { return h.Boot().Add(h.wall) }

// Raw is the reading of the clock that no daemon slews.
func (h *Host) Raw() clocksync.Instant { return h.Mono().Add(-h.ahead - h.slewed()) }

// slewed is by how much the monotonic clock was slewed since.
func (h *Host) slewed() time.Duration {
	if h.Suspended() {
		return 0
	}
	d := int64(h.world.now.Sub(h.since))
	return time.Duration(d/billion*h.slew + d%billion*h.slew/billion)
}

// Observe reads all clocks at once.
func (h *Host) Observe() clocksync.Observation {
	return clocksync.Observation{Mono: h.Mono(), Boot: h.Boot(), Wall: h.Wall(), Raw: h.Raw()}
}

// Slew makes all clocks but the raw one run fast by so many more parts per billion
// from now on, as a daemon does that corrects them.
func (h *Host) Slew(rate int64) {
	h.settle()
	h.slew = rate
	h.world.Note("slew", rate)
}

// SetRate makes the clocks run fast by so many parts per billion from now on.
func (h *Host) SetRate(rate int64) {
	h.settle()
	h.rate = rate
	h.world.Note("rate", rate)
}

func (h *Host) settle() {
	h.ahead += h.slewed()
	h.mono, h.parts = h.reading()
	h.since = max(h.world.now, h.awake)
}

// Step sets the wall clock forward, or back if by is negative.
func (h *Host) Step(by time.Duration) {
	h.wall += by
	h.world.Note("step", int64(by))
}

// Suspend stops the host for d. It must not be suspended already.
func (h *Host) Suspend(d time.Duration) {
	if h.Suspended() {
		panic(fmt.Sprintf("sim: host %s is suspended already, until %v", h.Domain, h.awake))
	}
	h.settle()
	h.awake = h.world.now.Add(d)
	h.since = h.awake
	h.asleep += d
	h.world.Note("suspend", int64(d))
}

// Do lets the host do something now, or as soon as it is awake.
func (h *Host) Do(do func()) {
	if !h.Suspended() {
		do()
		return
	}
	h.world.After(h.awake.Sub(h.world.now), func() { h.Do(do) })
}

// After lets the host do something once its monotonic clock has moved on by d.
func (h *Host) After(d time.Duration, do func()) { h.callAt(h.Mono().Add(d), do) }

func (h *Host) callAt(m clocksync.Instant, do func()) {
	left := m.Sub(h.Mono())
	if left <= 0 && !h.Suspended() {
		do()
		return
	}
	// Longer by what a fast clock leaves out is no harm: the host looks again.
	wait := max(left, 0) + h.awake.Sub(min(h.world.now, h.awake)) + 1
	h.world.After(wait, func() { h.callAt(m, do) })
}
