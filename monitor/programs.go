package monitor

import (
	"github.com/gopegasus/pegasus/control"
)

// ProgramEvent tells what became of a part of the program.
type ProgramEvent struct {
	Kind      ProgramKind          // what has happened
	Path      string               // of the construct, such as "body.seq[1].par.do"
	Construct string               // its kind
	Name      string               // its name, or the name of its block
	Replicas  []int32              // which replica, outermost first
	Block     control.BlockID      // of a block
	Run       uint64               // of a started block
	Processor string               // where the block is
	Predicate string               // that passed, or has signalled
	Branch    int                  // taken; control.Otherwise for none
	Iteration int                  `digest:"-"` // of a loop that continues: the iteration that begins, counted from 1; 0: it ends, or is no loop
	Decision  control.Decision     // that it rests on
	Outcome   control.BlockOutcome // of an ended block
	Result    string               // of the program or the construct, JSON
	Reason    string               // why it happened
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
	ProgramTwice                         // a run that was given up, or is unknown, has continued: its block may have run twice
)

// ProgramStatus is where a program stands.
type ProgramStatus struct {
	Name string `json:"name"` // of the program
	// Outcome is "running", or how the program has ended.
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"` // why it has ended like that
	// Blocks are those that were started, in the order of the program.
	Blocks  []BlockStatus `json:"blocks"`
	LeftOut int           `json:"left_out,omitempty"` // blocks beyond the first 100
	// Waits are the constructs that wait for something from outside, oldest first.
	Waits     []WaitStatus `json:"waits,omitempty"`
	WaitsMore int          `json:"waits_left_out,omitempty"` // beyond the first 100
	// Drawing is the flow of the program; nil if it has more than [MaxDrawn] vertices.
	Drawing *ProgramDrawing `json:"drawing,omitempty"`
}

// MaxDrawn is the most vertices that a [ProgramDrawing] has.
const MaxDrawn = 2000

// ProgramDrawing is the flow of a program, laid out. Lengths are in pixels, for letters of 12 pixels that are 7 pixels
// wide. The origin is above on the left.
type ProgramDrawing struct {
	Width    int             `json:"width"`    // of the whole
	Height   int             `json:"height"`   // of the whole
	Vertices []ProgramVertex `json:"vertices"` // blocks, bars of PAR and JOIN, switches, and the dots between them
	Edges    []ProgramEdge   `json:"edges"`    // between them
}

// ProgramVertex is a vertex of a [ProgramDrawing].
type ProgramVertex struct {
	Shape      string   `json:"shape"`                // "block", "bar", "switch" or "dot"
	X          int      `json:"x"`                    // of the middle
	Y          int      `json:"y"`                    // of the middle
	Width      int      `json:"width"`                // of the shape
	Height     int      `json:"height"`               // of the shape
	Label      []string `json:"label,omitempty"`      // its lines
	Path       string   `json:"path,omitempty"`       // of the construct, as in a [BlockStatus]; empty: a dot
	Conditions []string `json:"conditions,omitempty"` // the predicates that a switch or a JOIN waits for, as SYNCHRONIZER.PREDICATE
}

// ProgramEdge is an edge of a [ProgramDrawing]. Its last point is the head of the arrow.
type ProgramEdge struct {
	Points [][2]int `json:"points"`              // x and y
	Label  string   `json:"label,omitempty"`     // empty: none
	At     [2]int   `json:"at,omitzero"`         // x and y of the label's base line, where the label begins
	End    bool     `json:"at_is_end,omitempty"` // or where it ends
}

// WaitStatus is a construct that waits.
type WaitStatus struct {
	Path    string `json:"path"`              // of the construct
	Name    string `json:"name"`              // its kind if it has none
	Replica string `json:"replica,omitempty"` // which one, as in 1.0
	For     string `json:"for"`               // what it waits for, in words
}

// BlockStatus is where a block stands, all its runs taken together.
type BlockStatus struct {
	Path string `json:"path"` // of the construct
	Name string `json:"name"` // of the block
	RunCounts

	// Mean and Longest are how long its runs with a result took, in seconds: from the request for the start to
	// the global state that showed the end, without the time in which nobody led.
	Mean    float64     `json:"mean_seconds"`
	Longest float64     `json:"longest_seconds"` // see Mean
	Runs    []RunStatus `json:"runs"`            // that have not ended; 100 at most
}

// RunCounts counts runs of blocks.
type RunCounts struct {
	Starts   uint64 `json:"starts"`   // that were started
	Done     uint64 `json:"done"`     // that have ended with a result
	Failed   uint64 `json:"failed"`   // that have failed
	Canceled uint64 `json:"canceled"` // that were cancelled
	Lost     uint64 `json:"lost"`     // whose processor was gone
	Twice    uint64 `json:"twice"`    // that continued after they were given up, so their blocks may have run twice
}

// RunStatus is a run that has not ended.
type RunStatus struct {
	Run       uint64 `json:"run"`               // its number
	Attempt   uint32 `json:"attempt"`           // which attempt of the block it is, from 1
	Replica   string `json:"replica,omitempty"` // which one, as in 1.0
	Processor string `json:"processor"`         // where it is
	// Seconds is how long ago its start was requested, without the time in which nobody led.
	Seconds float64 `json:"seconds"`
	// Phase is "starting" before a global state has shown the run, then "running", and
	// "cancelling" after the run was cancelled.
	Phase string `json:"phase"`
}
