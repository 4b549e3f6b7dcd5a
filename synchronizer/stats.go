package synchronizer

import (
	"github.com/gopegasus/pegasus/control"
)

// Stats are counters since the start.
type Stats struct {
	Frames     uint64                             // messages received from members, also of groups that are only listened to
	Malformed  uint64                             // frames of these that were refused
	Reports    uint64                             // states taken in, without copies
	Gaps       uint64                             // in the reports of members, given up
	Collapsed  uint64                             // states given up because too many of a member waited
	Rejected   uint64                             // inputs refused for other reasons
	Probes     uint64                             // sent
	Pings      uint64                             // answered: members measuring their clocks
	Resends    uint64                             // asked for
	Decisions  uint64                             // firings of predicates, and plans of the section balance with moves
	Suppressed uint64                             // firings that a cooldown kept back
	Panics     uint64                             // of predicates written in Go
	Moves      uint64                             // of loads, that the section balance has ordered
	Signals    uint64                             // signals sent, without repetitions
	Fates      map[control.Fate]uint64            // by final fate
	ByName     map[string]map[control.Fate]uint64 // by the signal's name and final fate; of earlier terms at most 1,024 names
	Dropped    uint64                             // messages lost because this process was too slow to take them off the connection
	Shed       uint64                             // messages of members shed before they were read, because the synchronizer fell behind
	Withheld   uint64                             // requests for reports that were not sent while it did
	Asked      uint64                             // questions answered, of Status, Why and of other processes
	Busy       uint64                             // questions refused because too many waited
	Untold     uint64                             // events that watchers were not told, being too many
	Journal    JournalStats                       // of Options.Journal
}
