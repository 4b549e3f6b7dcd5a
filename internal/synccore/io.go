package synccore

import (
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/outbox"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/scgs"
)

// Kind says what an [Input] is, and so which of its fields are read.
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
	InTimeline                 // the reference clock stood still: it has another timeline now
	InLevel                    // a changed configuration is to be followed from now on
	InBody                     // a processor hands over the result of a run
	InCancel                   // the program is to end, for Reason
	InRestart                  // the process was ended, and another one continues the program
	InTerm                     // the synchronizer continues in Term: a member is fenced by a later one than this, or the process that led is gone
	InAlive                    // a multiplexer has evidence of states of its members
	InShared                   // what a multiplexer says of all its members: its roster, and evidence
	InKept                     // what another machine has in mind, whose inputs are retold
	InProgram                  // a record of the program that another machine runs, whose inputs are retold
	InAsk                      // a question, which changes nothing and is no part of a journal
)

// Input is one event for a [Core]. From is the sender as its subject names it.
// What its pointers point to is read during the step only.
type Input struct {
	Kind Kind   // which of the other parts count
	From string // empty unless a member has sent it
	// Group is set if From is a member of another group: one of [plan.Level.Groups]. Of such
	// there are InHello, InBatch, in outline ([wire.DecodeOutline]), and InAck.
	Group  string
	By     string          // the multiplexer that has brought it; empty: it came from the member itself
	Hello  *wire.Hello     // of InHello
	Batch  *wire.Batch     // of InBatch
	Gone   *wire.Gone      // of InGone
	Ack    *wire.Ack       // of InAck
	Signal *control.Signal // of InParent
	Alive  []wire.Alive    // of InAlive; From is their multiplexer
	Shared *wire.Bundle    // of InShared; From is the multiplexer, and the parts and Alive do not count
	At     clocksync.Stamp // of InEvidence and InProcess, and of a thread's InBatch
	Row    []scgs.Value    // of InProcess, by the declared process
	// Timeline is the timeline of the reference clock by now.
	Timeline clocksync.Timeline
	Level    *plan.Level // of InLevel: kept
	Person   string      // of InLevel: the user that has asked for it, as the subject proves; for the journal alone
	Body     *plan.Body  // of InBody
	Reason   string      // of InCancel, for people
	Restart  *Options    // of InRestart: of the new life, in a larger term
	Term     uint64      // of InTerm: larger than the one so far
	Kept     *Kept       // of InKept: kept
	Record   *Record     // of InProgram
	Ask      *Question   // of InAsk
	// Reached is when the newest round trip to the server that is complete had begun, if it
	// is news: what had come to the server until then has been taken in. As long as none is
	// known, members are taken to be heard at all times.
	Reached clocksync.Instant
	// Watched is set in an InTick if a user looks at the states by now: for a while, then, all are
	// asked for evidence, as without [Options.OnDemand].
	Watched bool
	// More is set if the next input waits already: then nobody is probed yet, as
	// the evidence that lacks may be in it.
	More bool
}

// Output is what one step asks for and tells. Step truncates and fills the
// slices; the caller copies what it keeps. Everything is in the order in which
// it happened, and a digest can be made of it: no maps, no functions.
type Output struct {
	Welcomes []wire.Addressed[wire.Welcome] // to be sent: answers to a Hello
	Peers    []wire.Addressed[wire.Peers]   // to be sent, before the welcomes: the roster, to one or all (To is empty); the peers are kept
	Probes   []wire.Addressed[wire.Probe]   // to be sent, to one or all (To is empty): evidence is asked for
	Resends  []wire.Addressed[wire.Resend]  // to be sent: reports are missing
	Signals  outbox.Frames                  // to be sent, first attempts and further ones; the signals are the caller's

	Summary  []SummaryEvent         // what the parent is to be told
	Verdicts []monitor.Verdict      // firings, and changes of truth
	Epochs   []monitor.Epoch        // that began, or ended with too few members
	Fates    []monitor.Fate         // of signals, final
	Rejected []monitor.Rejection    // of the members' messages
	Clocks   []monitor.Clock        // members that lost or found their bound
	Reloads  []monitor.Reload       // configurations that were gone over to, or refused
	Program  []monitor.ProgramEvent // steps of the program
	Plans    []monitor.Plan         // of the section balance

	// Refused says why a body was not taken; empty if it was.
	Refused string

	// Suppressed counts the firings that a cooldown kept back in this step.
	Suppressed uint64

	// Unproven counts frames of a multiplexer that were dropped, beside those in Rejected, as it does not speak for
	// their members. Most tell of a lost hello.
	Unproven uint64 `digest:"-"`

	// Failed is set when a silent member's policy is to fail; the machine does
	// nothing more.
	Failed string
	// Ignored is set if the input said nothing new and changed nothing, not even the
	// time: it is no part of a journal.
	Ignored bool `digest:"-"`
	// Answer answers the Question of this step; in any other step it must not be read.
	Answer Answer `digest:"-"`
	// Wake is when the next step is due even without an input; MaxInstant if it
	// is not.
	Wake clocksync.Instant
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
	Kind SummaryKind     // what has happened
	At   clocksync.Stamp // of the members' state that it follows from
	Row  []scgs.Value    // of the parent's schema; Invalid where the value is unknown
}

func (o *Output) reset() {
	o.Peers = o.Peers[:0]
	o.Welcomes, o.Probes, o.Resends, o.Signals = o.Welcomes[:0], o.Probes[:0], o.Resends[:0], o.Signals[:0]
	o.Summary, o.Verdicts, o.Epochs = o.Summary[:0], o.Verdicts[:0], o.Epochs[:0]
	o.Fates, o.Rejected, o.Clocks = o.Fates[:0], o.Rejected[:0], o.Clocks[:0]
	o.Reloads, o.Program, o.Plans, o.Refused = o.Reloads[:0], o.Program[:0], o.Plans[:0], ""
	o.Suppressed, o.Unproven, o.Failed, o.Ignored, o.Wake = 0, 0, "", false, clocksync.MaxInstant
}
