package agent

import "github.com/gopegasus/pegasus/internal/bus"

// WithBus joins over a bus of the test.
func WithBus(connect func(bus.Options) bus.Bus) Option {
	return func(j *joining) {
		j.connect = func(o bus.Options) (bus.Bus, error) { return connect(o), nil }
	}
}
