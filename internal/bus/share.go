package bus

// Share makes another Bus of the connection of one that [Dial] or [Wrap] has made:
// with subscriptions and callbacks of its own. Close ends those alone;
// the first bus is to be closed last.
func Share(b *Bus, opts Options) (*Bus, error) { return Wrap(b.nc, opts) }
