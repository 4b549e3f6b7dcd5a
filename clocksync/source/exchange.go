package source

import (
	"math"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// exchange is a request and its reply: two readings of the domain's clock around
// it, and when the server had the request and sent the reply, in reference time
// as far as the server knows.
type exchange struct {
	sent, received    clocksync.Instant
	arrived, departed clocksync.Interval
}

// offset is [clocksync.Exchange.Offset] for a server that does not know the time
// exactly: reference time minus reading, when the reply was received. Whatever
// the way there and back took, the request was sent before it arrived, and the
// reply received after it departed.
func (e exchange) offset(drift float64) (clocksync.Interval, error) {
	waited, held := e.received.Sub(e.sent), e.departed.Latest.Sub(e.arrived.Earliest)
	offset := clocksync.Interval{
		Earliest: difference(e.departed.Earliest, e.received),
		Latest:   difference(e.arrived.Latest, e.sent).Add(grown(waited, drift)),
	}
	if waited < 0 || held < 0 || !e.arrived.Valid() || !e.departed.Valid() || !offset.Valid() || !offset.Bounded() {
		return clocksync.Unbounded, refuse(Implausible, "the server says it held the request for %v, and the answer came after %v", held, waited)
	}
	return offset, nil
}

// roundTrip is what the exchange took beyond the time in the server, roughly.
func (e exchange) roundTrip() time.Duration {
	held := max(0, e.departed.Earliest.Sub(e.arrived.Latest))
	return max(0, e.received.Sub(e.sent)-held)
}

// difference is t-m for a reading m; an infinite t stays.
func difference(t, m clocksync.Instant) clocksync.Instant { return t.Add(-time.Duration(m)) }

// grown is by how much an offset may change while the reading moves on by d, at a
// drift in parts per million. A clock with the rate 1-r misses r/(1-r) of what it
// counts, which is at most r(1+2r) up to r = 1/2.
func grown(d time.Duration, drift float64) time.Duration {
	r := drift * 1e-6
	return time.Duration(math.Ceil(float64(d) * (r + 2*r*r)))
}
