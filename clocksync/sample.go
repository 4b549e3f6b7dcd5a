package clocksync

import "time"

// Timeline names the reference time that offsets and intervals are of. Times of
// two timelines must not be compared or mixed. It is [UTC], [SmearedUTC], or the
// name of a root synchronizer whose monotonic clock is the reference of its tree.
type Timeline string

// The timelines of the world, in nanoseconds since 1970 without leap seconds as
// POSIX counts them.
const (
	// UTC repeats or leaves out one second at a leap second.
	UTC Timeline = "utc"
	// SmearedUTC spreads a leap second over hours, and is up to a second away
	// from UTC meanwhile.
	SmearedUTC Timeline = "utc-smeared"
)

// Leap is what a server announces for the last minute of the month, as the leap
// indicator of NTP (RFC 5905, section 7.3).
type Leap uint8

// The leap indicators, with the numbers of NTP. A server that shows
// LeapUnsynchronized knows no time, and its samples are refused.
const (
	LeapNone Leap = iota
	LeapInsert
	LeapDelete
	LeapUnsynchronized
)

// Sample is a server's claim about the clock of this domain: at the reading At, the reference
// time minus the reading lay within Offset. The zero values of all that is not required are
// right for a source that does not care.
type Sample struct {
	// Source is the kind of source: "ntp", "peer", "chrony", "clockbound",
	// "kernel", "fixed". Required.
	Source string
	// Server is whose word it is: an address, a path; the same text for the same
	// clock, since each counts once. Required. A server is Source and Server.
	Server string
	// Timeline is the reference time that Offset is of. Required.
	Timeline Timeline
	// From is the reading of the domain's clock before anything the sample rests
	// on was measured: the sending of the request or, behind a daemon, its last
	// measurement if that can be told. A suspend after it makes the sample void.
	From Instant
	// At is the reading at which Offset holds: the end of the exchange. Not
	// before From.
	At Instant
	// Offset is reference time minus reading, in nanoseconds. It holds the bound
	// whole: round trip, root distance, precision and the granularity of both
	// readings. Its ends may be infinite.
	Offset Interval
	// Lasts is how long after At the sample may be used; 0 is without an end, so
	// that only the drift widens it.
	Lasts time.Duration
	// Drift is how many parts per million the domain's clock may run fast or slow
	// as far as this source knows. The larger one of it and [Config.Drift] is used.
	Drift float64
	// Wall says that Offset was reckoned from the wall clock of this host, so
	// that it says nothing once that clock was stepped.
	Wall bool
	// Assumed says that Offset is an operator's word and was not measured.
	Assumed bool
	// Leap is the leap second that the server announces; only on [UTC].
	Leap Leap
	// Parts tells what Offset's width is made of. It is only shown.
	Parts Parts
}

// Parts is what the width of a sample is made of. What a source does not know is 0.
type Parts struct {
	RoundTrip      time.Duration // without the time spent in the server; half of it counts
	RootDelay      time.Duration // of the server to its reference clock; half of it counts
	RootDispersion time.Duration // of the server
	Precision      time.Duration // of the server's readings
	Granularity    time.Duration // of the host's readings
	Correction     time.Duration // by which the host's own daemon says its clock is off
}

// Exchange is a request and its reply: two readings of the domain's clock and
// two of the server's reference time.
type Exchange struct {
	Sent     Instant // reading of the domain before the request was sent
	Arrived  Instant // reference time at or after which the server had the request
	Departed Instant // reference time at or before which the server sent the reply
	Received Instant // reading of the domain after the reply was there
}

// Offset returns between which limits the reference time minus the reading lay
// at Received, however the round trip was shared between both ways: the reply
// was received after it departed, the request was sent before it arrived. Drift
// is the domain's, in parts per million. The server's own error and the
// granularity of readings are not in it: see [Interval.Widen].
//
// It returns false if the exchange cannot have been: the reply took less than
// no time.
func (e Exchange) Offset(drift float64) (Interval, bool) {
	i := Interval{
		Earliest: Instant(e.Departed.Sub(e.Received)),
		Latest:   Instant(e.Arrived.Sub(e.Sent)).Add(growthOver(e.Received.Sub(e.Sent), drift)),
	}
	if e.Received < e.Sent || e.Departed < e.Arrived || !i.Valid() {
		return Unbounded, false
	}
	return i, true
}

// RoundTrip is the time the exchange took without the server's part in it.
func (e Exchange) RoundTrip() time.Duration {
	return e.Received.Sub(e.Sent) - e.Departed.Sub(e.Arrived)
}
