package synchronizer

import (
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/synccore"
)

// Event is what an observer is told: an [Epoch], a [Verdict], a [Fate], a
// [Rejection], a [Clock], a [Program], a [Plan] or a [Reloaded]. It may be kept.
type Event interface{ event() }

// Epoch tells that a new set of members is in force.
type Epoch struct{ synccore.Epoch }

// Verdict tells what a predicate came to, when that changed or when it fired.
type Verdict struct{ synccore.Verdict }

// Fate tells what became of a signal.
type Fate struct{ synccore.FateEvent }

// Rejection tells what was refused, from whom, and why.
type Rejection struct{ synccore.Rejection }

// Clock tells that the status of a member's clock has changed: while it is not
// [clocksync.Synchronized] or [clocksync.Degraded] nothing is certain between that
// member and those of other clock domains.
type Clock struct{ synccore.Clock }

// Reloaded tells that a changed configuration is in force, and what is different.
type Reloaded struct{ synccore.Reload }

// Program tells what became of a part of the program that the synchronizer runs.
type Program struct{ synccore.ProgramEvent }

// Plan tells what the section balance has decided, and why: a plan with moves, or
// the first one after it that has none.
type Plan struct{ synccore.Planned }

func (Plan) event()      {}
func (Program) event()   {}
func (Reloaded) event()  {}
func (Clock) event()     {}
func (Epoch) event()     {}
func (Verdict) event()   {}
func (Fate) event()      {}
func (Rejection) event() {}

// Stats are counters since the start.
type Stats struct {
	Frames     uint64                             // received from members, those of groups that are only listened to included
	Malformed  uint64                             // frames of these that were refused
	Reports    uint64                             // states taken in, without copies
	Gaps       uint64                             // in the reports of members, given up
	Collapsed  uint64                             // states given up because too many of one member waited
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
	ByName     map[string]map[control.Fate]uint64 // by the signal's name and final fate
	Dropped    uint64                             // messages lost because this process was too slow
	Asked      uint64                             // questions answered, of Status, Why and of other processes
	Busy       uint64                             // questions refused because too many waited
	Untold     uint64                             // events that watchers were not told, being too many
	Journal    JournalStats                       // of Options.Journal
}

// ProgramKind says what a [Program] tells.
type ProgramKind = synccore.ProgramKind

// The events of a program.
const (
	ProgramStart  = synccore.ProgramStart  // a block is started
	ProgramCancel = synccore.ProgramCancel // a block is to end
	ProgramPass   = synccore.ProgramPass   // a switch or JOIN has passed, by Decision
	ProgramSignal = synccore.ProgramSignal // a predicate that a block is under has sent it a signal
	ProgramEnd    = synccore.ProgramEnd    // a construct has ended
	ProgramLost   = synccore.ProgramLost   // a block's processor is gone
	ProgramFinish = synccore.ProgramFinish // the program has ended
	ProgramRefuse = synccore.ProgramRefuse // the interpreter has refused something
	ProgramFail   = synccore.ProgramFail   // an attempt at a block has failed; another, or an else, follows
)
