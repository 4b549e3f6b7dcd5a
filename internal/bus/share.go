package bus

import "fmt"

// Share makes another Bus of the connection of one that [Dial] or [Wrap] has made:
// with subscriptions and callbacks of its own. Close ends those alone;
// the first bus is to be closed last.
func Share(b Bus, opts Options) (Bus, error) {
	first, ok := b.(*natsBus)
	if !ok {
		return nil, fmt.Errorf("bus: share: a %T has no connection that can be shared", b)
	}
	return Wrap(first.nc, opts)
}
