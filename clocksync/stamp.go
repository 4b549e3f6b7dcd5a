package clocksync

// Domain names a clock domain: all stamps with the same Domain were read from
// one monotonic clock. The name is opaque; two domains are the same if and only
// if their names are. The empty Domain is no domain.
type Domain string

// Stamp says when an event happened: the reading of its domain's monotonic
// clock, and an interval of reference time that contains the true time.
//
// Mono is comparable only between stamps with the same Domain; Within is comparable between all
// stamps of a synchronizer tree.
type Stamp struct {
	Domain Domain   // whose clock was read
	Mono   Instant  // the reading
	Within Interval // reference time
}

// CertainlyBefore reports whether a happened before b in every admissible
// reality: by the readings inside one domain, by disjoint intervals between
// two. Equal readings, and intervals that touch, are not certain.
func CertainlyBefore(a, b Stamp) bool {
	if a.Domain == b.Domain {
		return a.Mono < b.Mono
	}
	return a.Within.Before(b.Within)
}

// PossiblyBefore reports whether some admissible reality has a no later than b:
// it is the negation of b certainly before a.
func PossiblyBefore(a, b Stamp) bool { return !CertainlyBefore(b, a) }

// String gives the stamp as "domain@mono[earliest,latest]".
func (s Stamp) String() string {
	return string(s.Domain) + "@" + s.Mono.String() + s.Within.String()
}

// Clock reads stamps. Successive stamps of a Clock never go back, neither in Mono nor in either
// end of Within. A Clock may be used by several goroutines at once and does not block.
type Clock interface {
	// Domain is the clock domain of every stamp of this clock. It never changes.
	Domain() Domain
	// Now reads the clock.
	Now() Stamp
	// Quality says where the interval of the stamps comes from.
	Quality() Quality
}

// Monotone makes the stamps of a domain monotone: along increasing readings neither end of the
// interval decreases. An earliest end below the last one is raised to it, which is justified by
// the order of the events; a latest end below the last one is raised to it, which widens. Both
// keep the interval valid. An infinite latest end widens its own stamp only, so that the bound
// can come back after it was lost.
//
// The zero value is ready. It must not be used by two goroutines at once.
type Monotone struct {
	last    Stamp
	started bool
}

// Next returns s made monotone with regard to the stamps before it. It returns
// false, and leaves its state alone, if s is no valid interval, has another
// domain, or a smaller reading than the last stamp: such a clock ran backwards.
func (c *Monotone) Next(s Stamp) (Stamp, bool) {
	ok := c.Raise(&s)
	return s, ok
}

// Raise is [Monotone.Next] in place: it leaves s alone where it returns false.
func (c *Monotone) Raise(s *Stamp) bool {
	if !s.Within.Valid() {
		return false
	}
	if !c.started {
		c.started, c.last = true, *s
		c.last.Within.Latest = finiteLatest(s.Within.Latest, MinInstant)
		return true
	}
	if s.Domain != c.last.Domain || s.Mono < c.last.Mono {
		return false
	}
	s.Within.Earliest = max(s.Within.Earliest, c.last.Within.Earliest)
	s.Within.Latest = max(s.Within.Latest, c.last.Within.Latest, s.Within.Earliest)
	c.last.Mono = s.Mono
	c.last.Within.Earliest = s.Within.Earliest
	c.last.Within.Latest = finiteLatest(s.Within.Latest, c.last.Within.Latest)
	return true
}

// finiteLatest keeps an infinite latest end out of every later maximum.
func finiteLatest(t, otherwise Instant) Instant {
	if t == MaxInstant {
		return otherwise
	}
	return t
}
