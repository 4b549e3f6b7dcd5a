package agent

import (
	"context"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/bus"
)

// WithBus joins over a bus of the test.
func WithBus(connect func(bus.Options) *bus.Bus) Option {
	return func(j *joining) {
		j.own = true
		j.dial = func(_ context.Context, _ string, o bus.Options) (*bus.Bus, error) { return connect(o), nil }
	}
}

// Stamp reads the clock of a member.
func (m *Member) Stamp() clocksync.Stamp { return m.clock.Now() }

// SetPeerStale makes measurements stale at another age, until it is restored.
func SetPeerStale(age time.Duration) (restore func()) {
	before := peerStale
	peerStale = age
	return func() { peerStale = before }
}
