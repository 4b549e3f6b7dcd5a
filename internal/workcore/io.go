package workcore

import (
	"cmp"
	"time"

	"github.com/gopegasus/pegasus/balance/local"
	"github.com/gopegasus/pegasus/clocksync"
)

// Options make a [Member].
type Options struct {
	Self     Peer           // this life of the member
	Phase    uint64         // that the space is in, from 1; 0 means 1
	Slots    int            // how many tasks it runs at a time
	Limits   Limits         // of its account
	Account  *Store         // the account from its log; nil: it has no log, and lies here alone
	Strategy local.Local    // of this member alone
	Topology local.Topology // whom the strategy sees; all members exchange records

	Pace     time.Duration             // between two frames of Holds; default 500 ms
	Repeat   time.Duration             // until a record without a verdict is sent again; default 200 ms
	Patience time.Duration             // until a demand without an answer counts as refused; default 1 s
	Ready    func(reads []string) bool // whether a task that reads these data may start here; nil: each may
	// Missing is how many of these data another member does not have; nil: all members count alike.
	Missing func(at Peer, reads []string) int
	Funcs   []string      // the functions that run here, at most [MaxFuncs]; nil: all members run all functions
	Central bool          // the synchronizer plans the moves of objects, and this member tells what they weigh
	Stay    time.Duration // for which an object does not go back to the member that it came from; 0: it may at once
}

func (o Options) withDefaults() Options {
	o.Phase = cmp.Or(o.Phase, 1)
	o.Pace = cmp.Or(o.Pace, 500*time.Millisecond)
	o.Repeat = cmp.Or(o.Repeat, 200*time.Millisecond)
	o.Patience = cmp.Or(o.Patience, time.Second)
	return o
}

// Kind says which event an [Input] is.
type Kind uint8

// The kinds of inputs.
const (
	// InTick: time has passed.
	InTick Kind = iota + 1
	// InRoster: the roster is Roster. A member that is missing is gone for good; it comes back as
	// another life. If this member is missing, it gives up all that it has.
	InRoster
	// InFrame: Frame has arrived.
	InFrame
	// InSettled: the program has no call outstanding, or has one, by Settled.
	InSettled
	// InPut: the program puts Task with Key.
	InPut
	// InCancel: the program cancels the task ID that it has put.
	InCancel
	// InItems: the bag in Slot has Items left.
	InItems
	// InYield: the task in Slot yields Step, of the fate Kept, and has Items left. It does not continue before
	// Output.Recorded or Output.Stops names its slot. ID and On of the record are filled in.
	InYield
	// InDone: the function in Slot has returned; Step is its last record, of the fate Done or Failed.
	InDone
	// InEnd: the phase Phase is over; Void: all are in the next one, with the tasks that are open.
	InEnd
	// InDrain: this member is to have nothing any more. It asks for no work and starts none, gives its
	// leases back, and has its bags yield all that is left. Told.Drained says when it is done.
	InDrain
	// InWithdraw: this member takes no work, or takes work again, by Active. It stays, keeps its account, and gives
	// away what it has, as long as a neighbour takes it; objects that are pinned or bound to members stay and run.
	InWithdraw
	// InDurable: the log of the account of the member ID has all of Output.Log up to Ticket.
	InDurable
	// InAdopt: this member has the account of the member ID from here on, as Account.
	InAdopt
	// InDisown: this member does not have the account of the member ID any more.
	InDisown
	// InActive: the function in Slot works, or waits for something, by Active.
	InActive
	// InUnderway: pieces of a frame are on their way: from another member, in answer to the demand Ticket, or to the
	// member To.
	InUnderway
	// InMove: the object ID of an account here is to be at the member To from its next message on.
	InMove
	// InWritten: data of the name ID are written.
	InWritten
	// InUnwritten: no data are written any more in this phase: tasks that wait for some fail.
	InUnwritten
	// InUndeclared: the program waits for the end of the phase: tasks of functions that [Member.Undeclared] names fail.
	InUndeclared
	// InDemand: the program has this member ask the member To for at most Items tasks, or offer it so many, by Active,
	// whatever the strategy does. A demand that cannot be sent now is dropped.
	InDemand
	// InOrders: the synchronizer has ordered this member to have objects go elsewhere, as Orders says.
	InOrders
)

// Input is one event for a [Member]. It keeps the tasks and records, and they must not change.
type Input struct {
	Kind    Kind    // which of the other parts count
	Roster  []Peer  // of InRoster, sorted by name
	Frame   *Frame  // of InFrame
	Settled bool    // of InSettled
	Task    *Task   // of InPut
	Key     float64 // of InPut: tasks with smaller keys run first
	ID      string  // of InCancel, InDurable, InAdopt, InDisown and InMove
	To      string  // of InMove, InDemand and InUnderway
	Slot    int     // of InItems, InYield, InActive and InDone
	Step    *Step   // of InYield and InDone
	Active  bool    // of InActive; of InWithdraw: it takes work; of InDemand: it is an offer
	Items   int     // of InItems, InYield and InDemand
	Phase   uint64  // of InEnd
	Void    bool    // of InEnd
	Ticket  uint64  // of InDurable and InUnderway
	Account *Store  // of InAdopt
	Orders  []Order // of InOrders
}

// Output is what one step asks for and tells. Step truncates the slices and fills them again.
type Output struct {
	Frames   []Frame  // to other members, in this order; Frame.Kept for who keeps one
	Runs     []Run    // what slots begin
	Yields   []Part   // slots that shall yield and give away a part
	Recorded []int    // slots whose InYield counts: they continue
	Stops    []int    // slots whose task is not theirs any more: they return as soon as they can
	Results  []Result // for the program
	Lost     []Lost   // members that left the roster
	Log      []Append // what goes into logs; Frames, Results and Lost wait until it is there, see [Member.Release]
	Err      error    // the input is refused, and has changed nothing
	// Over: this member is not in the roster any more. Each further input is ignored.
	Over bool
	Told Told // as it is after the step
	// Wake is when the next step is due even without an input.
	Wake clocksync.Instant

	holds    []Holds
	verdicts []Verdict
}

// Append is an addition to the log of an account, as a part of a [Batch] or cut by [SplitEntries].
type Append struct {
	Account string // of the member of that name
	Entries []byte // each behind its length
	Ticket  uint64 // rises from append to append of a member
	Phase   uint64 // that the space is in
	Open    int    // tasks of the account that are open after it
	Objects int    // of the account after it
	Ends    bool   // it has the end of a phase

	begun bool // a message has its beginning
}

// Run is a task that begins in a slot.
type Run struct {
	Slot    int  // that is free until now
	Task    Task // with its body as it is to be run
	Account Peer // of the member that has put it
	// Inbox are the messages that an object serves. Its last record says how many of them it has served, and is of
	// the fate Kept, or Done if the object ends.
	Inbox  []Message
	Pinned bool   // the object is
	Fence  uint64 // of an object: it rises from holder to holder
}

// Part asks a slot for a part of its bag.
type Part struct {
	Slot  int // that runs the bag
	Items int // that are to be given, by what the slot last told; 0: the task is only saved
}

// Lost is a member that is gone, with the tasks that it has put.
type Lost struct {
	Peer    Peer // this member itself, if it is not in the roster any more
	Open    int  // that were open, by its last report or by the tasks here
	Objects int  // that it has created and that have not ended
}

// Told is what a member tells of itself in its state.
type Told struct {
	Idle      bool   // no task that it has put is open, and it has none of another
	Settled   bool   // its program has no call outstanding
	Phase     uint64 // that it is in
	Queued    int    // tasks that wait here
	Running   int    // tasks that run here
	Open      int    // tasks that it has put and that are not done
	Blocked   int    // of them, those that wait for other tasks
	Missing   int    // IDs that those wait for and that no task has
	Objects   int    // that it has created and that have not ended
	Unwritten int    // appends that are on their way to a log
	Drained   bool   // it was asked to drain, and no task is here, nor is one open that it has put
	Withdrawn bool   // it takes no work
	Stay      int    // objects that ran here last and are pinned, or bound to members, while it is withdrawn
	Moved     uint64 // tasks and parts of bags that came here from other members
	Given     uint64 // how often a task of its account came to another member
	Redone    uint64 // tasks of its account that a member was running, or may have begun, when it was lost
	Load      *Load  // of its objects, if the strategy is central

	Withdrawals uint64 // how often it was withdrawn
}

// Late reports whether a phase that the others have ended continues here: a task is open, or a result is not yet
// told to the program.
func (t *Told) Late() bool { return t.Open > 0 || t.Unwritten > 0 }

func (o *Output) resetOutput() {
	o.Frames, o.Runs, o.Yields, o.Recorded, o.Stops, o.Lost = o.Frames[:0], o.Runs[:0], o.Yields[:0], o.Recorded[:0], o.Stops[:0], o.Lost[:0]
	o.Results, o.Err, o.Log, o.holds, o.verdicts = o.Results[:0], nil, o.Log[:0], o.holds[:0], o.verdicts[:0]
}
