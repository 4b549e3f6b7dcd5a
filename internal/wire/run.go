package wire

import "github.com/gopegasus/pegasus/clocksync"

// run is what the next stamp of a bundle, or of a batch in rows, is coded against. Stamps
// are written as differences: the reading from the reading before, and the offset of each end
// of the interval to the reading from that offset before, which hardly changes.
// Sums and differences wrap around, so no distance is too large.
type run struct {
	last        uint64 // seq of the report before
	mono        int64
	early, late int64 // offsets of the last ends that were bounded
}

func (r *run) codeStamp(c *coder, s *clocksync.Stamp, flags uint8) {
	mono := difference(c, "mono", int64(s.Mono), &r.mono)
	within := clocksync.Unbounded
	if flags&flagNoEarliest == 0 {
		offset := difference(c, "earliest", int64(s.Within.Earliest)-mono, &r.early)
		within.Earliest = clocksync.Instant(mono + offset)
	}
	if flags&flagNoLatest == 0 {
		offset := difference(c, "latest", int64(s.Within.Latest)-mono, &r.late)
		within.Latest = clocksync.Instant(mono + offset)
	}
	c.checkPossible(clocksync.Instant(mono), within)
	if !c.writing {
		s.Mono, s.Within = clocksync.Instant(mono), within
	}
}

// difference codes v as its difference from *base, which it then becomes.
func difference(c *coder, field string, v int64, base *int64) int64 {
	d := v - *base
	c.codeInt(field, &d)
	*base += d
	return *base
}

// boundFlagsOf marks the ends that are not bounded.
func boundFlagsOf(i clocksync.Interval) uint8 {
	flags := uint8(0)
	if i.Earliest == clocksync.MinInstant {
		flags |= flagNoEarliest
	}
	if i.Latest == clocksync.MaxInstant {
		flags |= flagNoLatest
	}
	return flags
}
