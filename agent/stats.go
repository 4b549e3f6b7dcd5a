package agent

import (
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/agentcore"
)

// Stats are counts since a member or thread was made.
type Stats struct {
	States        uint64 // states begun or ended
	Dropped       uint64 // of these, pushed out of the ring before they were sent: unknown to the synchronizer
	Batches       uint64 // batches made
	Resent        uint64 // states sent again because a message was lost
	Unavailable   uint64 // requests for states that the ring no longer held
	Rejoins       uint64 // times the member came back after it had been dropped
	RefusedStamps uint64 // stamps refused because the clock ran backwards

	PublishErrors uint64 // messages that could not be sent, because the server was away
	BadFrames     uint64 // messages refused because they could not be read
	Ignored       uint64 // messages ignored: of an older term, or not for this incarnation

	HeldRegions     uint64 // times a region was held because control was lost; a process's counts include its threads
	CanceledRegions uint64 // regions that were cancelled because control was lost; likewise

	Signals SignalStats // into the regions of this member or thread
	Threads SignalStats // into the regions of all its threads
}

// SignalStats count signals by what became of them. Those that wait are in
// Received only.
type SignalStats struct {
	Received    uint64 // without copies
	Copies      uint64 // repeated by the sender, and answered
	Applied     uint64 // their handlers have returned
	NoSuchEntry uint64 // the region entry they were decided on was over
	Expired     uint64 // their time ran out before they took effect
	OldEpoch    uint64 // a newer epoch had fenced them off
	Refused     uint64 // no handler of that name, too many waiting, or a handler that panicked
}

// Late counts the signals that came after the region entry they were decided on,
// or after their time.
func (s SignalStats) Late() uint64 { return s.NoSuchEntry + s.Expired }

func (s SignalStats) add(t SignalStats) SignalStats {
	return SignalStats{
		Received: s.Received + t.Received, Copies: s.Copies + t.Copies, Applied: s.Applied + t.Applied,
		NoSuchEntry: s.NoSuchEntry + t.NoSuchEntry, Expired: s.Expired + t.Expired,
		OldEpoch: s.OldEpoch + t.OldEpoch, Refused: s.Refused + t.Refused,
	}
}

func statsOf(c *agentcore.Core) Stats {
	s := c.Stats()
	return Stats{
		States: s.Reports, Dropped: s.Dropped, Batches: s.Batches, Resent: s.Resent, Unavailable: s.Gone,
		Rejoins: s.Rejoins, RefusedStamps: s.Backwards, Ignored: s.Strange,
		Signals: SignalStats{
			Received: s.Signals, Copies: s.Copies,
			Applied: s.Fates[control.Applied], NoSuchEntry: s.Fates[control.NoSuchEntry], Expired: s.Fates[control.Expired],
			OldEpoch: s.Fates[control.OldEpoch], Refused: s.Fates[control.Refused],
		},
	}
}
