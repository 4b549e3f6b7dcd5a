package program

import (
	"strconv"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/predicates"
)

// ID names one attempt at a block.
type ID = control.BlockID

// InKind says which part of an [Input] counts.
type InKind uint8

// The inputs of a step.
const (
	InTick    InKind = iota // time has passed
	InBegin                 // the run begins; the first of these counts
	InVerdict               // Predicate has the value Truth, by Decision
	InEpoch                 // the epoch of Decision has begun: older verdicts of its synchronizer are void
	InDone                  // Block has ended with Result; Decision found it so
	InFailed                // Block has ended, for Reason: it failed, or was cancelled
	InJoined                // Node is there
	InLeft                  // the node of Node.Name is lost with all that ran on it
	InCancel                // the run is cancelled, for Reason
)

var inWords = []string{"tick", "begin", "verdict", "epoch", "done", "failed", "joined", "left", "cancel"}

// String gives the word of the kind.
func (k InKind) String() string {
	if int(k) < len(inWords) {
		return inWords[k]
	}
	return "input(" + strconv.Itoa(int(k)) + ")"
}

// Node is a place where blocks run.
type Node struct {
	Name string // unique among the nodes that are present
	// Of names the machine or process that it is a part of, empty for none: a block that
	// has failed on one part of it is tried elsewhere first.
	Of     string
	Cores  int      // at least 1
	Labels []string // that processors can require
	Alone  bool     // it runs one block at a time
	// Threaded names the blocks whose code there has threads. A block runs where it is
	// named if it has threads, and elsewhere if it has none.
	Threaded []string
}

// Input is one event for a [Run].
type Input struct {
	Kind      InKind           `json:",omitempty"` // which of the other fields count
	Predicate string           `json:",omitempty"` // "synchronizer.predicate"
	Truth     predicates.Truth `json:",omitempty"` // the verdict
	Decision  control.Decision `json:",omitzero"`  // what the verdict, the epoch or the end of the block rests on
	Block     ID               `json:",omitzero"`  // the attempt that has ended
	Result    string           `json:",omitempty"` // JSON, at most MaxResultBytes; empty for none
	Reason    string           `json:",omitempty"` // one line of text
	Node      Node             `json:",omitzero"`  // of InJoined and InLeft
}

// ActKind says what an [Action] is.
type ActKind uint8

// The actions.
const (
	ActStart  ActKind = iota // start Block on Node with Input
	ActCancel                // cancel Block on Node; it ends with InDone or InFailed, or with its node
	ActPass                  // a switch or JOIN passed, by Decision
	ActSignal                // Predicate fired by Decision while Block, on Node, is under it
	ActEnd                   // a construct has ended with Outcome
	ActFinish                // the run has ended with Outcome and Result; nothing more will happen
	ActRefuse                // the input was refused, for Reason
)

// Outcome is how a construct has ended.
type Outcome = control.BlockOutcome

// The outcomes.
const (
	Done     = control.BlockDone
	Failed   = control.BlockFailed
	Canceled = control.BlockCanceled
)

// Action is something to be done or told.
type Action struct {
	Kind      ActKind          // which of the other fields count
	Construct int              // its number, see [Compiled.Info]
	Replicas  []int32          // which replica of each replicated Par around it, from the outside in
	Block     ID               // the attempt it is about
	Node      string           // where that attempt runs
	Input     string           // JSON; empty for none
	Predicate string           // by which a switch or JOIN passed, or which fired
	Branch    int              // that a switch took: the number of the branch, or Otherwise
	Iteration int              // of ActPass: the iteration of a loop that begins, counted from 1; 0: it is no loop, or ends
	Decision  control.Decision // by which it passed, fired or ended
	Outcome   Outcome          // of ActEnd and ActFinish
	Result    string           // JSON; empty for none
	Reason    string           // one line of text; empty if there is nothing to say
}

// Otherwise is the Branch of a switch none of whose predicates is true: the else
// branch, or what follows.
const Otherwise = control.Otherwise

// Output is the requests and reports of a step. Step truncates and fills it; its contents are
// valid until the next step.
type Output struct {
	// Actions are in the order in which they came about.
	Actions []Action
	// Wake is when the next step is due even without an input: a deadline. It is
	// MaxInstant if there is none.
	Wake clocksync.Instant

	replicas []int32 // what the Replicas of the actions lie in
}

func (o *Output) reset() {
	o.Actions, o.replicas, o.Wake = o.Actions[:0], o.replicas[:0], clocksync.MaxInstant
}
