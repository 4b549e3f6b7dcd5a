package agentcore

import (
	"fmt"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// Kind says which part of an [Input] counts.
type Kind uint8

// The inputs of a step, and what they leave in the [Output] beside [Due].
const (
	// InTick takes the messages that are due. At was read for it, while no state could change,
	// and is the evidence that the open state holds. It counts only if it is above the start of
	// that state (a clock may give the same reading twice), so the caller reads again until it
	// is. With All it takes all reports, whatever their age.
	InTick Kind = iota + 1
	// InState ends the open state and begins the one of Row at At; Err says why not. A virtual
	// member's state may have begun before the one before it ended, when the level below forms
	// its epoch again with fewer members. Then it begins with the first InAlive that is late
	// enough: part of the truth, and true. The present instant does not matter while there is
	// [Due.News].
	InState
	InEnd   // the open state ends at At, and the member has none; Err
	InAlive // the open state of a virtual member still held at At; Err
	// InSummary makes the member virtual, the summary of a level below it: its states
	// and their evidence come from InState, InEnd and InAlive alone. No state may be
	// open.
	InSummary
	// InClock tells that the stamps rest on Quality from now on, before any of them is
	// used: Clock.
	InClock
	InWelcome     // a synchronizer's answer to a hello, or its call for one: Reception
	InRecall      // messages may be lost: the member introduces itself again
	InMultiplexer // Multiplexer speaks for the member from now on; empty: it does itself. It introduces itself again.
	InGreet       // the reports have gaps: the member says hello, though it is welcome
	InHurry       // all reports are sent at once, whatever their age
	InProbe       // evidence is asked for: the next tick with a stamp late enough gives it
	InResend      // reports were lost; all requests before a tick are answered together
	// InSignals offers signals to the regions: Fresh. The signals are kept; the slice
	// they are in may be reused. They may come from the synchronizer of another group:
	// each has an epoch of its own, and its own answers.
	InSignals
	InEnter  // opens Region with its Handlers: Entry, or Err; see [control.Gate.Enter]
	InExit   // closes Entry: Signal is the cancellation it had accepted, to be finished after its handler
	InNext   // takes an activation to run at Delivery out of Entry: Signal
	InFinish // the handler of Signal has returned, or did not: Fate, and Detail
	// InLapse cancels Entry, which has been without control for After: Fresh has that, as a
	// signal without a synchronizer, if it took effect. See [Control].
	InLapse
	InBack // control is back: what InLapse has come to can be told
	// InUnfit tells that the program's state is of Schema, and not what the last welcome has
	// declared.
	InUnfit
	// InPart tells that the member is about to leave: it says hello until an answer shows that all its
	// states have been taken in, and that the signals of the decisions that it has had signals of have
	// reached the others. To be repeated, every some milliseconds: Lacks.
	InPart
	// InLeave makes the next tick say that the member leaves. It is the last one with
	// anything in it. A member that no synchronizer knows has nobody to tell.
	InLeave
)

// Input is one event for a [Core]. What the pointers lead to is read during the step
// only, but for signals.
type Input struct {
	Kind     Kind
	Delivery control.Delivery
	Fate     control.Fate
	At       clocksync.Stamp
	Row      []scgs.Value // copied
	Quality  *clocksync.Quality
	Welcome  *wire.Welcome
	Probe    *wire.Probe
	Resend   *wire.Resend
	Signals  *wire.Signals
	Region   string
	Handlers []control.Handler // kept
	Entry    uint64
	Signal   *control.Signal
	Detail   string
	After    time.Duration // of InLapse
	Schema   scgs.Schema   // of InUnfit; kept

	Multiplexer string // of InMultiplexer
	All         bool   // of InTick
}

// Output is what one step asks for and tells. Step truncates and fills the slices, which share
// no memory with the Core; the caller copies what it keeps. Messages are to be sent in the
// order of the fields.
type Output struct {
	Hellos  []wire.Hello // at most one
	Batches []wire.Batch
	Gones   []wire.Gone // at most one
	Acks    []Ack

	Err       error             // the input is refused, and has changed nothing but the counters
	Clock     ClockNews         // of InClock
	Reception Reception         // of InWelcome
	Why       string            // it was Ignored
	Fresh     []control.Outcome // of InSignals: those that are no copies, with their fates so far
	Entry     uint64            // of InEnter
	Lacks     string            // of InPart: the unknown facts; empty: it may leave
	Signal    *control.Signal   // of InExit and InNext, nil if there is none
	Due

	reports []wire.Report
	rows    []scgs.Value
	regions []wire.Region
	answers []wire.Answer
}

// Due is when the next step is due even without another input. It holds until the next
// step.
type Due struct {
	// Wake is when a tick next has something to send: MinInstant if it has now,
	// MaxInstant if it never has.
	Wake clocksync.Instant
	// Probe is when a reading of the clock may answer a probe that waits; MaxInstant
	// if none does. Whoever feeds a virtual member takes one then.
	Probe clocksync.Instant
	// News is set while something waits to be told, whose age the next batch goes by.
	News bool
}

// Ack is an acknowledgement and the synchronizer whose signals it answers: the synchronizer of
// the member's group, or another one.
type Ack struct {
	To string
	wire.Ack
}

func (o *Output) reset() {
	o.Hellos, o.Batches, o.Gones, o.Acks, o.Fresh = o.Hellos[:0], o.Batches[:0], o.Gones[:0], o.Acks[:0], o.Fresh[:0]
	o.reports, o.rows, o.regions, o.answers = o.reports[:0], o.rows[:0], o.regions[:0], o.answers[:0]
	o.Err, o.Signal, o.Entry, o.Why, o.Lacks = nil, nil, 0, "", ""
	o.Clock, o.Reception = ClockSame, Ignored
}

// Step takes one input at the instant now of the local monotonic clock, which never
// goes back, and fills out.
func (c *Core) Step(now clocksync.Instant, in *Input, out *Output) {
	out.reset()
	switch in.Kind {
	case InTick:
		c.fillDue(now, in.At, in.All, out)
	case InState:
		at := in.At
		out.Err = c.beginState(now, &at, in.Row, nil)
	case InEnd:
		out.Err = c.endState(now, in.At)
	case InAlive:
		out.Err = c.noteHeld(now, in.At)
	case InSummary:
		c.virtual, c.hello.Threads = true, true
	case InClock:
		out.Clock = c.takeQuality(now, *in.Quality)
	case InWelcome:
		out.Reception = c.takeWelcome(now, in.Welcome, out)
	case InRecall:
		c.recallBatch(now)
	case InMultiplexer:
		c.hello.Multiplexer, c.unsaid = in.Multiplexer, true
		c.recallBatch(now)
	case InHurry:
		c.owed = c.owed || c.welcome
	case InGreet:
		c.helloAgain(now)
	case InProbe:
		c.takeProbe(now, in.Probe)
	case InResend:
		c.takeResend(in.Resend)
	case InSignals:
		c.takeSignals(now, in.Signals, out)
	case InEnter:
		out.Entry, out.Err = c.enterRegion(now, in.Region, in.Handlers)
	case InExit:
		out.Signal = c.exitRegion(now, in.Entry)
	case InNext:
		out.Signal = c.gate.Next(now, in.Entry, in.Delivery)
		c.settleFates(now)
	case InFinish:
		c.gate.Finish(in.Signal, in.Fate, in.Detail)
		c.settleFates(now)
	case InLapse:
		c.lapseEntry(in.Entry, in.After, out)
	case InBack:
		c.adrift = false
		c.tellLapses(now)
	case InUnfit:
		c.tellUnfitType(now, in.Schema)
	case InPart:
		out.Lacks = c.checkLeave(now)
	case InLeave:
		c.beginLeave()
	default:
		panic("agentcore: input without a kind")
	}
	out.Due = c.due()
}

// State is a step with [InState] alone: a program sets states under the lock of its process, and
// to fill in an Input and clear an Output takes 25 ns beside the 90 ns that all of
// agent.Member.Set does. The stamp becomes no older than those before it.
func (c *Core) State(now clocksync.Instant, at *clocksync.Stamp, row []scgs.Value) (Due, error) {
	err := c.beginState(now, at, row, nil)
	return c.due(), err
}

// Plain is [Core.State] with the words of a row ([Word]), one for each field of a plain
// schema, which the caller vouches for: they are copied as they are.
func (c *Core) Plain(now clocksync.Instant, at *clocksync.Stamp, words []uint64) (Due, error) {
	var err error
	if c.codec != nil && (!c.ring.plain || len(words) != len(c.ring.schema)) {
		err = fmt.Errorf("agentcore: %d words are no row of %d fields, of which none may be a text or a list", len(words), len(c.ring.schema))
	} else {
		err = c.beginState(now, at, nil, words)
	}
	return c.due(), err
}

func (c *Core) due() Due {
	return Due{Wake: c.wakeAt(), Probe: c.probeAt, News: c.since != clocksync.MaxInstant}
}
