package synccore

import (
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// Kind says which part of an [Input] counts.
type Kind uint8

// The inputs of a step.
const (
	InTick     Kind = iota + 1 // time has passed
	InHello                    // a member introduces itself
	InBatch                    // a member's reports; of a thread, with InEvidence if there is an At
	InGone                     // a member has lost reports for good
	InAck                      // fates of signals
	InEvidence                 // every open state of every member holds at At
	InProcess                  // the process beside its threads has the state Row
	InParent                   // a signal from the level above
	InTimeline                 // the reference clock stood still: its time is another one now
	InPlan                     // a changed configuration is to be followed from now on
	InBody                     // a processor hands over what a run has come to
	InCancel                   // the program is to end, for Reason
	InRestart                  // the process was ended, and another one goes on with the program
	InAlive                    // a carrier has evidence of states of its members
)

// Input is one event for a [Core]. From is the sender as its subject names it.
// What the pointers lead to is read during the step only.
type Input struct {
	Kind Kind
	From string
	// Group is set if From is a member of another group: one of [Plan.Groups]. Of such
	// there are InHello, InBatch, in outline ([wire.DecodeOutline]), and InAck.
	Group  string
	Hello  *wire.Hello
	Batch  *wire.Batch
	Gone   *wire.Gone
	Ack    *wire.Ack
	Signal *control.Signal
	Alive  []wire.Alive // From is their carrier
	At     clocksync.Stamp
	Row    []scgs.Value
	// Timeline is that of the reference clock by now.
	Timeline clocksync.Timeline
	Plan     *Plan
	Body     *Body
	Reason   string
	Restart  *Restart
	// More is set if the next input waits already: then nobody is probed yet, as
	// the evidence that lacks may be in it.
	More bool
}

// Output is what one step asks for and tells. Step truncates and fills the
// slices; the caller copies what it keeps. Everything is in the order in which
// it came about, and is data that [Digest] can hash: no maps, no functions.
type Output struct {
	Welcomes []Addressed[wire.Welcome]
	Probes   []Addressed[wire.Probe]
	Resends  []Addressed[wire.Resend]
	Signals  []Addressed[wire.Signals]

	Summary  []SummaryEvent
	Verdicts []Verdict
	Epochs   []Epoch
	Fates    []FateEvent
	Rejected []Rejection
	Clocks   []Clock
	Reloads  []Reload
	Program  []ProgramEvent
	Plans    []Planned

	// Refused says why a body was not taken; empty if it was.
	Refused string

	// Suppressed counts the firings that a cooldown kept back in this step.
	Suppressed uint64

	// Failed is set when a silent member's policy is to fail; the machine does
	// nothing more.
	Failed string
	// Wake is when the next step is due even without an input; MaxInstant if it
	// is not.
	Wake clocksync.Instant
}

// Addressed is a message and the member it goes to.
type Addressed[M any] struct {
	To    string
	Msg   M
	Group string // another group's; empty: the synchronizer's own
}

// SummaryKind tells the events of a summary apart.
type SummaryKind uint8

// The events of a summary: its virtual member starts a state, has ended it, or
// still had it at that stamp.
const (
	SummaryStart SummaryKind = iota + 1
	SummaryEnd
	SummaryAlive
)

// SummaryEvent is an event of the virtual member that the group is for its
// parent.
type SummaryEvent struct {
	Kind SummaryKind
	At   clocksync.Stamp
	Row  []scgs.Value // of the parent's schema; Invalid where the value is unknown
}

// Verdict tells what a predicate came to when that changed or when it fired.
type Verdict struct {
	Predicate string
	Truth     predicates.Truth
	Reason    string // why it is unknown
	Fired     bool
	Decision  control.Decision // if it fired
	// Suppressed is how many firings the cooldown has kept back since the last one, if
	// it fired or is kept back now.
	Suppressed uint64
	Epoch      uint64
	Index      uint64 // of the global state within the epoch, or of what Modality says
	Partial    bool   // some member's state was unknown
	// Modality is empty for a global state. What a predicate's own detector has found
	// are runs, the states in which a member's local condition went on to hold:
	// "atleast" for those of so many members, "definitely" or "possibly" for those of
	// all.
	Modality string
	Span     scgs.Span
	// If it fired: the states that held together, of runs the first one's number and
	// the newest one's values, and the widest bound of their stamps, 0 if one clock
	// ordered them.
	Witness []Part
	Bound   time.Duration
	// What the bound rests on, by name, joined by "+"; empty if one clock ordered
	// the states.
	Sources string
	// Heard is when the newest report that the global state rests on was taken in, on
	// the clock of Step; MinInstant where the verdict follows from something else: the
	// end of a hold time, a signal from above.
	Heard clocksync.Instant
}

// Part is one member's state in a witness.
type Part struct {
	Name   string
	Fields scgs.Schema // what the values of Row are
	Row    []scgs.Value
	State  scgs.Part
}

// Epoch tells that a new set of members is in force. Dropped names those who
// left it and why.
type Epoch struct {
	Epoch   uint64 // 0: there are too few members, nothing is decided
	Members []string
	Joined  []string
	Dropped []Dropped
}

// Dropped is a member that is no longer part of the epoch.
type Dropped struct {
	Name   string
	Reason string // "left" or "silent for 3s" or "came back as a new incarnation"
}

// Clock tells that the bound of a member's clock is as good as it was no longer,
// or again: its status is another one.
type Clock struct {
	Name    string
	Quality clocksync.Quality
}

// FateEvent tells what became of a signal.
type FateEvent struct {
	Signal *control.Signal
	Fate   control.Fate
	Detail string
	Group  string // of the target, if that is another one
}

// Rejection is an input that was refused.
type Rejection struct {
	From   string
	Class  Class
	Reason string
}

func (o *Output) reset() {
	o.Welcomes, o.Probes, o.Resends, o.Signals = o.Welcomes[:0], o.Probes[:0], o.Resends[:0], o.Signals[:0]
	o.Summary, o.Verdicts, o.Epochs = o.Summary[:0], o.Verdicts[:0], o.Epochs[:0]
	o.Fates, o.Rejected, o.Clocks = o.Fates[:0], o.Rejected[:0], o.Clocks[:0]
	o.Reloads, o.Program, o.Plans, o.Refused = o.Reloads[:0], o.Program[:0], o.Plans[:0], ""
	o.Suppressed, o.Failed, o.Wake = 0, "", clocksync.MaxInstant
}
