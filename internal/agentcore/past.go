package agentcore

import (
	"sort"

	"github.com/gopegasus/pegasus/clocksync"
)

// pastLimit is how many stamps of a process are kept.
const pastLimit = 1024

// Past keeps the last stamps of a process, whose threads are compared by the
// readings alone: the interval of an event is only looked up when the group is
// told of it. It must not be used by two goroutines at once.
type Past struct {
	stamps [pastLimit]clocksync.Stamp
	first  uint64 // the oldest that counts
	next   uint64
}

func (p *Past) at(i uint64) *clocksync.Stamp { return &p.stamps[i%pastLimit] }

// Add keeps a stamp, which is not before those that are there.
func (p *Past) Add(s *clocksync.Stamp) {
	*p.at(p.next) = *s
	p.next++
	p.first = max(p.first, p.next-min(p.next, pastLimit))
}

// Clear forgets the stamps of a clock that another one has replaced.
func (p *Past) Clear() { p.first = p.next }

// Within is an interval of the event at a reading: it is not before the stamps
// with smaller readings and not after those with larger ones.
func (p *Past) Within(m clocksync.Instant) clocksync.Interval {
	n := int(p.next - p.first)                                                             //nolint:gosec // At most pastLimit.
	after := sort.Search(n, func(i int) bool { return p.at(p.first+uint64(i)).Mono >= m }) //nolint:gosec // Not negative.
	w := clocksync.Unbounded
	if after < n {
		s := p.at(p.first + uint64(after)) //nolint:gosec // Not negative.
		w.Latest = s.Within.Latest
		if s.Mono == m {
			return s.Within
		}
	}
	if after > 0 {
		w.Earliest = p.at(p.first + uint64(after) - 1).Within.Earliest //nolint:gosec // Above 0.
	}
	return w
}
