package sim

import (
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// Question is a request that has arrived at a time server, and all that a liar
// could wish to know about it.
type Question struct {
	Sent     clocksync.Instant // the host's reading when it asked
	Arrived  clocksync.Instant // true time
	Departs  clocksync.Instant // true time at which the reply will leave
	Received clocksync.Instant // true time at which it will arrive
	Offset   clocksync.Instant // true time minus the host's reading now
}

// TimeServer answers with its own times of arrival and of departure.
type TimeServer struct {
	// Claim is by how much it says that its clock may be off.
	Claim time.Duration
	// Timeline, if not nil, tells the timeline of its clock, which may change.
	Timeline func() clocksync.Timeline
	// Answer tells its clock at both times.
	Answer func(q Question) (arrived, departed clocksync.Instant)
}

// NewTimeServer returns an honest server: its clock is off by some amount
// within the claim, and by a little more or less each time.
func (w *World) NewTimeServer(claim time.Duration) TimeServer {
	off := w.Between(-claim, claim)
	wrong := func() time.Duration {
		return min(max(off+w.Between(-claim/10, claim/10), -claim), claim)
	}
	return TimeServer{Claim: claim, Answer: func(q Question) (arrived, departed clocksync.Instant) {
		// Its clock does not go back in between.
		arrived = q.Arrived.Add(wrong())
		return arrived, max(arrived, q.Departs.Add(wrong()))
	}}
}

// Lie tells, for a question, between which limits, away from the truth, the liar
// wants the host to believe that its offset lies.
type Lie func(q Question) (earliest, latest time.Duration)

// NewLiar returns a server that claims to be exact and leads the host to believe
// the lie, as far as one reply can: it knows all delays and the host's clock, but
// not by how much that will drift until the reply is there.
func NewLiar(lie Lie) TimeServer {
	return TimeServer{Answer: func(q Question) (arrived, departed clocksync.Instant) {
		earliest, latest := lie(q)
		// The host takes [departed - received, arrived - sent].
		departed = q.Received.Add(earliest)
		arrived = q.Sent.Add(time.Duration(q.Offset) + latest)
		return min(arrived, departed), departed
	}}
}

// Root is a server that tells the readings of a host's monotonic clock.
func Root(h *Host) TimeServer {
	return TimeServer{Timeline: h.readTimeline, Answer: func(Question) (arrived, departed clocksync.Instant) {
		if h.Suspended() {
			return 1, 0 // What arrives before it departs is no reply.
		}
		// A request has arrived when its reply departs; the time in between only
		// makes the bound wider.
		return h.Mono(), h.Mono()
	}}
}
