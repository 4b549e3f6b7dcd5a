package source

import (
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// exchange is a [clocksync.Exchange] with a server that does not know the
// reference time exactly.
type exchange struct {
	sent, received    clocksync.Instant
	arrived, departed clocksync.Interval
}

// offsetInterval is reference time minus reading when the reply was received. Whatever
// the way there and back took, the request was sent before it arrived, and the
// reply received after it departed.
func (e exchange) offsetInterval(drift float64) (clocksync.Interval, error) {
	// Of an exchange in no time at the latest arrival, the latest end is the same.
	there, ok := clocksync.Exchange{
		Sent: e.sent, Arrived: e.arrived.Latest, Departed: e.arrived.Latest, Received: e.received,
	}.Offset(drift)
	offset := clocksync.Interval{
		Earliest: clocksync.Instant(e.departed.Earliest.Sub(e.received)),
		Latest:   there.Latest,
	}
	held := e.departed.Latest.Sub(e.arrived.Earliest)
	if !ok || held < 0 || !e.arrived.Valid() || !e.departed.Valid() || !offset.Valid() || !offset.Bounded() {
		return clocksync.Unbounded, refuseServer(Implausible, "the server says it held the request for %v, and the answer came after %v", held, e.received.Sub(e.sent))
	}
	return offset, nil
}

// roundTrip is what the exchange took beyond the time in the server, roughly.
func (e exchange) roundTrip() time.Duration {
	held := max(0, e.departed.Earliest.Sub(e.arrived.Latest))
	return max(0, e.received.Sub(e.sent)-held)
}
