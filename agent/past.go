package agent

import (
	"sort"

	"github.com/gopegasus/pegasus/clocksync"
)

// pastLimit is how many stamps of a process are kept.
const pastLimit = 1024

// past keeps the last stamps of a process, whose threads are compared by the
// readings alone: the interval of an event is only looked up when the group is
// told of it. It is guarded by the lock of the process.
type past struct {
	stamps [pastLimit]clocksync.Stamp
	first  uint64 // the oldest that counts
	next   uint64
}

func (p *past) at(i uint64) *clocksync.Stamp { return &p.stamps[i%pastLimit] }

// add keeps a stamp, which is not before those that are there.
func (p *past) add(s *clocksync.Stamp) {
	*p.at(p.next) = *s
	p.next++
	p.first = max(p.first, p.next-min(p.next, pastLimit))
}

// clear forgets the stamps of a clock that another one has replaced.
func (p *past) clear() { p.first = p.next }

// within is an interval of the event at a reading: it is not before the stamps
// with smaller readings and not after those with larger ones.
func (p *past) within(m clocksync.Instant) clocksync.Interval {
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
