package program

import "time"

// The limits of a program.
const (
	MaxBlocks      = 1_000_000 // block instances: a program of so many, counted once a loop, is refused
	MaxDepth       = 500       // constructs inside each other
	MaxRetry       = 100       // further attempts at one block
	MaxNameBytes   = 64        // of every name
	MaxResultBytes = 1 << 20   // of a block's result; what is larger has to go by reference
	MaxInputBytes  = 1 << 20   // of a block's input, put together from results
)

// Program is the flow of a distributed program. It must not change while it is
// in use.
type Program struct {
	Name       string      // as in the file; a name as [MaxNameBytes] allows
	Processors []Processor // the logical processors that Do.On can name
	Blocks     []Block     // the blocks that Do.Block can name
	Body       Construct   // what the program runs
	// Result names the construct whose result is the program's, as "NAME.result";
	// empty for none.
	Result string
}

// Processor is a logical processor: a set of nodes that blocks are placed on
// (PEGASUS paper, section 2.2: logical processors are assigned to physical ones).
type Processor struct {
	Name string // unique among the processors
	// Count is how many nodes it is mapped to; nothing starts on it before so many
	// have been there. 0 stands for all that fit, one at least.
	Count int
	// Labels are what each of its nodes must carry.
	Labels []string
	// Cores are reserved on a node for each block, which waits until so many are
	// free. 0 reserves none: any number of blocks share a node.
	Cores int
}

// Block declares code that runs in a process on a node.
type Block struct {
	Name string // unique among the blocks; nodes know its code by it
	// Group is the group of members whose synchronizer hears the states of the
	// block; empty if it reports none.
	Group         string
	Input, Output Type // of the values it is given and returns; the zero Type is no value
	// Threads is how many threads the block runs inside its process, with the
	// thread-level synchronizer Synchronizer above them (PEGASUS paper, figure
	// 2.5), or none. The block ends when all of them have. It runs only on nodes that
	// name it in [Node.Threaded], and one without threads only on the others.
	Threads      int
	Synchronizer string // the thread-level synchronizer of its threads; empty for none
}

// Construct is a part of a program: [Seq], [Par], [If], [Case], [While],
// [DoUntil] or [Do].
//
// Each has a name, which references use; the deadline from its start to its end,
// 0 for none, after which it fails; and all but switches have an Else that runs
// in its place when it has failed and everything inside it has ended. Else is not
// under the deadline.
type Construct interface{ construct() }

// Seq runs constructs one after another. Its result is that of the last.
type Seq struct {
	Name     string        // for references; empty for none
	Of       []Construct   // at least one, in order
	Deadline time.Duration // from its start to its end; 0 for none
	Else     Construct     // runs in its place after it failed; nil for none
}

// Par runs constructs side by side. Its JOIN passes when all have ended; if one
// fails, the others are cancelled, and it fails when they have ended.
//
// If Times is not 0 there is one construct, which runs so often (replicated
// blocks: the same code, separate data).
//
// If Join names a predicate, and that is found true after the start, what still
// runs is cancelled and the JOIN passes when it has ended.
//
// The result is the record of the branches' results by their names, or, of a
// replicated Par, the list in the order of replicas. null stands for a branch
// that was cancelled.
type Par struct {
	Name     string        // for references; empty for none
	Of       []Construct   // the branches; exactly one if Times is not 0
	Times    int           // replicas of the one branch, 0 for a Par of named branches
	Join     string        // a predicate that ends it early; empty: all branches have to end
	Deadline time.Duration // from its start to its end; 0 for none
	Else     Construct     // runs in its place after it failed; nil for none
}

// If runs Then if the predicate When is true, Else if it is false. Else may be
// nil.
type If struct {
	Name       string        // for references; empty for none
	When       string        // a predicate, "NAME" or "SYNCHRONIZER.NAME"
	Then, Else Construct     // the branches for true and for false; Else may be nil
	Deadline   time.Duration // from its start to its end; 0 for none
}

// Case runs the first of the branches whose predicate is true, once all before
// it are false, or Else, which may be nil, if all are false.
type Case struct {
	Name     string        // for references; empty for none
	Of       []When        // the branches, in order
	Else     Construct     // the branch if no predicate is true; nil for none
	Deadline time.Duration // from its start to its end; 0 for none
}

// When is a branch of a [Case].
type When struct {
	When string    // a predicate, as in [If]
	Then Construct // what runs if it is the first that is true
}

// While runs Do again and again as long as the predicate When is true. From or
// Input give what "NAME.previous" stands for the first time; later it is the
// result of the time before. The result is that of the last time.
type While struct {
	Name     string        // for references; empty for none
	When     string        // a predicate, as in [If], read before each iteration
	Do       Construct     // the body of the loop
	From     string        // a reference to what NAME.previous is in the first iteration; empty for none
	Input    string        // the same as compact JSON; at most one of From and Input is given
	Deadline time.Duration // from its start to its end, all iterations together; 0 for none
	Else     Construct     // runs in its place after it failed; nil for none
}

// DoUntil runs Do once and then again until the predicate Until is true; else
// as [While].
type DoUntil struct {
	Name     string        // for references; empty for none
	Do       Construct     // the body of the loop
	Until    string        // a predicate, as in [If], read after each iteration
	From     string        // as in [While]
	Input    string        // as in [While]
	Deadline time.Duration // from its start to its end, all iterations together; 0 for none
	Else     Construct     // runs in its place after it failed; nil for none
}

// Do runs one block on a logical processor.
type Do struct {
	Name  string // empty: references use the block's name
	Block string // which of Program.Blocks runs
	On    string // a processor; empty: any node
	// From is where the input comes from: "NAME.result", or "NAME.previous" in the
	// loop of that name. At most one of From and Input is given.
	From string
	// Input is the input itself, compact JSON.
	Input string
	// Retry is how often a block that failed, or whose node was lost, is started
	// again, on another node if there is one.
	Retry int
	// Async names the predicates that the block is under while it runs: their signals
	// go to such blocks only, to those of them that the signal is addressed to.
	Async    []string
	Deadline time.Duration // from its start to its end, all attempts and waiting for a node included; 0 for none
	Else     Construct     // runs in its place after the last attempt failed; nil for none
}

func (Seq) construct()     {}
func (Par) construct()     {}
func (If) construct()      {}
func (Case) construct()    {}
func (While) construct()   {}
func (DoUntil) construct() {}
func (Do) construct()      {}

// Kind tells the constructs apart.
type Kind uint8

// The kinds of constructs.
const (
	KindSeq Kind = iota
	KindPar
	KindIf
	KindCase
	KindWhile
	KindUntil
	KindDo
)

// String gives the word that program files use.
func (k Kind) String() string {
	return [...]string{"seq", "par", "if", "case", "while", "until", "do"}[k]
}

// Env is what a program refers to in the configuration beside it.
type Env struct {
	Predicates   []Predicate   // of all synchronizers in the file
	Groups       []string      // the groups of members that have a synchronizer in the file
	ThreadLevels []ThreadLevel // the thread-level synchronizers in the file
}

// Predicate is one that a switch can read or a block can be under.
type Predicate struct {
	Synchronizer string // whose predicate it is
	Name         string // within that synchronizer
	Constant     string // "true" or "false" if it is that whatever happens
	Signals      bool   // it sends signals
	Threads      bool   // its synchronizer is thread-level: no switch can read it
}

// ThreadLevel is a thread-level synchronizer and the number of threads it takes.
type ThreadLevel struct {
	Name     string // of the synchronizer
	Min, Max int    // numbers of threads, both included
}
