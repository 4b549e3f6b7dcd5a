package monitor

import (
	"github.com/gopegasus/pegasus/control"
)

// ProgramEvent tells what became of a part of the program.
type ProgramEvent struct {
	Kind      ProgramKind
	Path      string // of the construct, such as "body.seq[1].par.do"
	Construct string // its kind
	Name      string // its name, or that of its block
	Replicas  []int32
	Block     control.BlockID // of a block
	Run       uint64          // of one that is started
	Processor string
	Predicate string // that passed, or has signalled
	Branch    int    // taken; -1 for none
	Decision  control.Decision
	Outcome   control.BlockOutcome
	Result    string
	Reason    string
}

// ProgramKind says what a [ProgramEvent] tells.
type ProgramKind uint8

// The events of a program.
const (
	ProgramStart  ProgramKind = iota + 1 // a block is started
	ProgramCancel                        // a block is to end
	ProgramPass                          // a switch or JOIN has passed, by Decision
	ProgramSignal                        // a predicate that a block is under has sent it a signal
	ProgramEnd                           // a construct has ended
	ProgramLost                          // a block's processor is gone
	ProgramFinish                        // the program has ended
	ProgramRefuse                        // the interpreter has refused something
	ProgramFail                          // an attempt at a block has failed; another, or an else, follows
)

// ProgramStatus is where a program stands.
type ProgramStatus struct {
	Name string `json:"name"`
	// Outcome is "running", or how the program has ended.
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"`
	// Blocks are those that were started, in the order of the program.
	Blocks  []BlockStatus `json:"blocks"`
	LeftOut int           `json:"left_out,omitempty"` // blocks beyond the first 100
	// Waits are the constructs that wait for something from outside, oldest first.
	Waits     []WaitStatus `json:"waits,omitempty"`
	WaitsMore int          `json:"waits_left_out,omitempty"` // beyond the first 100
}

// WaitStatus is a construct that waits.
type WaitStatus struct {
	Path    string `json:"path"`
	Name    string `json:"name"` // its kind if it has none
	Replica string `json:"replica,omitempty"`
	For     string `json:"for"`
}

// BlockStatus is where a block stands, all its runs taken together.
type BlockStatus struct {
	Path string `json:"path"` // of the construct
	Name string `json:"name"`
	RunCounts

	Runs []RunStatus `json:"runs"` // that have not ended; 100 at most
}

// RunCounts counts runs of blocks.
type RunCounts struct {
	Starts   uint64 `json:"starts"`
	Done     uint64 `json:"done"`
	Failed   uint64 `json:"failed"`
	Canceled uint64 `json:"canceled"`
	Lost     uint64 `json:"lost"`
}

// RunStatus is a run that has not ended.
type RunStatus struct {
	Run       uint64 `json:"run"`
	Replica   string `json:"replica,omitempty"`
	Processor string `json:"processor"`
	// Phase is "starting" before a global state has shown the run, then "running",
	// and "cancelling" after it was told to end.
	Phase string `json:"phase"`
}
