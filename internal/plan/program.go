package plan

import (
	"encoding/json"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// Program is a control program that runs on the members of a level, as far as a
// machine sees it. Package internal/executor has the rest, so that an agent, whose
// machines run none, links no interpreter.
type Program interface {
	// Begin returns what carries the program out. An id identifies an execution.
	Begin(level string, id uint64) Executor
	// Same reports whether another program does the same, so that a running one can continue.
	Same(other Program) bool
}

// Executor carries out a program for one machine, which owns it and steps it. It asks nothing
// of the machine but what [World] has, and returns the signals and reports in an
// [ExecutorOutput].
type Executor interface {
	// Verdict notes what a predicate has come to, Moved that a global state shows
	// another state of a member.
	Verdict(predicate string, truth predicates.Truth, d control.Decision)
	Moved(member string, incarnation uint64)
	// Advance lets the program continue, on the current global state.
	Advance(now clocksync.Instant, w World, out *ExecutorOutput)
	// Epoch voids the verdicts of the epoch before. Decision is empty but for the
	// epoch.
	Epoch(now clocksync.Instant, begun control.Decision, out *ExecutorOutput)
	// Renewed voids the verdicts of predicates that a reload has changed.
	Renewed(now clocksync.Instant, predicates []string, w World, out *ExecutorOutput)
	// Left tells of the members that an epoch is without.
	Left(now clocksync.Instant, silence Silence, dropped []monitor.Dropped, out *ExecutorOutput)
	// Settled takes the fate of a signal that the program has sent.
	Settled(now clocksync.Instant, s *control.Signal, f control.Fate)
	// Take takes what a run on a member has come to. New is set if it is to be looked
	// at; refused says why it was not taken.
	Take(from string, b *Body, out *ExecutorOutput) (isNew bool, refused string)
	// Cancel ends the program: what runs is cancelled first.
	Cancel(now clocksync.Instant, reason string, out *ExecutorOutput)
	// Overdue gives up, once their time is over, members that did not come back after
	// a restart. Resume is set, once, if those who are there are enough from then on.
	Overdue(now clocksync.Instant, silence Silence, out *ExecutorOutput) (resume bool)
	// Restart continues the program in another process; formed is set if there was an epoch.
	// Runs that are started from now on have numbers above runs, if that is not 0. Was is the
	// last instant before, which is on another clock if it is not now.
	Restart(now clocksync.Instant, formed bool, begun control.Decision, runs uint64, hold Hold, was clocksync.Instant, out *ExecutorOutput)
	// Under reports whether a predicate acts on a member: a predicate that guards blocks of the
	// program acts on no other members.
	Under(predicate, member string) bool
	// Awaits reports whether the program waits for members to take the present term.
	Awaits() bool
	// Wake is when the program has something to do without an input.
	Wake(now clocksync.Instant) clocksync.Instant

	// Log is what leads another executor of the program to where this one is, but for the
	// first records, which it has recalled already; whole if nothing of it is given up for its length.
	Log(after int) (records []Record, whole bool)
	// Recall takes the next record of another executor.
	Recall(r Record) error
	// ID tells executions apart.
	ID() uint64

	// Run is the input of a run on a processor, found if there is such a run, and
	// handed if what it has come to is there already.
	Run(processor string, id, number uint64) (input string, found, handed bool)
	Status(now clocksync.Instant) *monitor.ProgramStatus
	// Counts are the counts of all runs; running and queued are the runs that have not ended,
	// and the blocks that wait for a processor.
	Counts() (total monitor.RunCounts, running, queued int)
}

// Record is a step of an [Executor], as JSON.
type Record = json.RawMessage

// Hold says how long nothing is started after a restart.
type Hold uint8

// The holds. HoldNone is what journals of earlier releases have.
const (
	HoldNone    Hold = iota
	HoldKnown        // until each known processor obeys the new term or is lost
	HoldSilence      // and the time of silence is over, as there may be others
)

// Silence is the configured silence: how long a member may say nothing.
type Silence = time.Duration

// World is what an executor sees of the current global state.
type World interface {
	// Processor is a member, by name; ok if it is in the epoch and has a known state.
	Processor(name string) (p Processor, ok bool)
	// Decision numbers another decision.
	Decision() control.Decision
	// Pending reports whether a signal of a decision to a member has no fate yet.
	Pending(d control.Decision, member string) bool
}

// Processor is a member with its current state.
type Processor struct {
	Incarnation uint64        // of the process
	Row         []scgs.Value  // its state
	Regions     []wire.Region // that it was in at its newest report
	Seq         uint64        // of the state
	// Newest is set if nothing newer is known of the member, and nothing is missing; Heard is when it
	// was heard last. So its state was still the same then.
	Newest bool
	Heard  clocksync.Instant
	// Obeys is set if the member has said that it has taken the present term: what earlier
	// ones have sent has no effect in it any more.
	Obeys bool
}

// Entry is the entry of a region that the member is in, 0 for none.
func (p *Processor) Entry(region string) uint64 { return EntryAt(p.Regions, region, p.Seq) }

// ExecutorOutput is what an executor asks for and tells, appended to the contents.
type ExecutorOutput struct {
	Signals []*control.Signal      // to be posted, in their order
	Events  []monitor.ProgramEvent // to be told
}

// Body is what a processor hands over of a run that has ended.
type Body struct {
	Program uint64        `json:"program"` // the id of the execution
	Run     uint64        `json:"run"`     // the number of the run
	Kind    wire.BodyKind `json:"kind"`    // BodyResult or BodyFailure
	Text    string        `json:"text"`    // JSON, or why it has failed
}

// EntryAt is the entry of a region in which a member is in its state of that number,
// 0 if that state has none: the region was entered in a later state, or left.
func EntryAt(regions []wire.Region, name string, seq uint64) uint64 {
	for _, r := range regions {
		if r.Name == name && r.Since <= seq {
			return r.Entry
		}
	}
	return 0
}
