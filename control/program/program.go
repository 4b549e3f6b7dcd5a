package program

import "time"

// The limits of a program.
const (
	MaxBlocks      = 1_000_000 // block instances: a program of so many, counted once a loop, is refused
	MaxDepth       = 500       // constructs inside each other
	MaxRetry       = 100       // further attempts at one block
	MaxNameBytes   = 64        // of every name
	MaxResultBytes = 1 << 20   // of a block's result; larger results go by reference
	MaxInputBytes  = 1 << 20   // of a block's input, put together from results
)

// Program is the flow of a distributed program. It must not change while it is
// in use. The tags of its parts are the keys of a program file.
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
	Count int `yaml:"count"`
	// Labels are what each of its nodes must carry.
	Labels []string `yaml:"labels"`
	// Cores are reserved on a node for each block, which waits until so many are
	// free. 0 reserves none: any number of blocks share a node.
	Cores int `yaml:"cores"`
}

// Block declares code that runs in a process on a node.
type Block struct {
	Name string // unique among the blocks; nodes know its code by it
	// Group is the group of members whose synchronizer hears the states of the
	// block; empty if it reports none.
	Group  string `yaml:"group"`
	Input  Type   `yaml:"input,type"`  // of the value it is given; the zero Type is no value
	Output Type   `yaml:"output,type"` // of the value it returns; the zero Type is no value
	// Threads is how many threads the block runs inside its process, with the
	// thread-level synchronizer Synchronizer above them (PEGASUS paper, figure
	// 2.5), or none. The block ends when all of them have. It runs only on nodes that
	// name it in [Node.Threaded], and one without threads only on the others.
	Threads      int    `yaml:"threads"`
	Synchronizer string `yaml:"synchronizer"` // the thread-level synchronizer of its threads; empty for none
}

// Construct is a part of a program: [Seq], [Par], [If], [Case], [While],
// [DoUntil] or [Do].
//
// Each has a name, which references use; the deadline from its start to its end,
// 0 for none, after which it fails; and all but switches have an Else that runs
// in its place when it has failed and everything inside it has ended. Else is not
// under the deadline.
type Construct interface{ construct() }

// Seq runs constructs one after another. Its result is the result of the last.
type Seq struct {
	Name     string        `yaml:"name"`           // for references; empty for none
	Of       []Construct   `yaml:"seq,constructs"` // at least one, in order
	Deadline time.Duration `yaml:"deadline"`       // from its start to its end; 0 for none
	Else     Construct     `yaml:"else,construct"` // runs in its place after it failed; nil for none
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
	Name     string        `yaml:"name"`           // for references; empty for none
	Of       []Construct   `yaml:"par,constructs"` // the branches; exactly one if Times is not 0
	Times    int           `yaml:"times"`          // replicas of the one branch, 0 for a Par of named branches
	Join     string        `yaml:"join"`           // a predicate that ends it early; empty: all branches have to end
	Deadline time.Duration `yaml:"deadline"`       // from its start to its end; 0 for none
	Else     Construct     `yaml:"else,construct"` // runs in its place after it failed; nil for none
}

// If runs Then if the predicate When is true, Else if it is false. Else may be
// nil.
type If struct {
	Name     string        `yaml:"name"`                    // for references; empty for none
	When     string        `yaml:"if"`                      // a predicate, "NAME" or "SYNCHRONIZER.NAME"
	Then     Construct     `yaml:"then,required,construct"` // the branch for true
	Else     Construct     `yaml:"else,construct"`          // the branch for false; nil for none
	Deadline time.Duration `yaml:"deadline"`                // from its start to its end; 0 for none
}

// Case runs the first of the branches whose predicate is true, once all before
// it are false, or Else, which may be nil, if all are false.
type Case struct {
	Name     string        `yaml:"name"`           // for references; empty for none
	Of       []When        `yaml:"case"`           // the branches, in order
	Else     Construct     `yaml:"else,construct"` // the branch if no predicate is true; nil for none
	Deadline time.Duration `yaml:"deadline"`       // from its start to its end; 0 for none
}

// When is a branch of a [Case].
type When struct {
	When string    `yaml:"when,required"`           // a predicate, as in [If]
	Then Construct `yaml:"then,required,construct"` // what runs if it is the first that is true
}

// While runs Do again and again as long as the predicate When is true. From or Input give the
// value of "NAME.previous" the first time; later it is the result of the time before. The
// result is the result of the last time.
type While struct {
	Name     string        `yaml:"name"`                  // for references; empty for none
	When     string        `yaml:"while"`                 // a predicate, as in [If], read before each iteration
	Do       Construct     `yaml:"do,required,construct"` // the body of the loop
	From     string        `yaml:"from"`                  // a reference to what NAME.previous is in the first iteration; empty for none
	Input    string        `yaml:"input,json"`            // the same as compact JSON; at most one of From and Input is given
	Deadline time.Duration `yaml:"deadline"`              // from its start to its end, all iterations together; 0 for none
	Else     Construct     `yaml:"else,construct"`        // runs in its place after it failed; nil for none
}

// DoUntil runs Do once and then again until the predicate Until is true; else
// as [While].
type DoUntil struct {
	Name     string        `yaml:"name"`                  // for references; empty for none
	Do       Construct     `yaml:"do,required,construct"` // the body of the loop
	Until    string        `yaml:"until"`                 // a predicate, as in [If], read after each iteration
	From     string        `yaml:"from"`                  // as in [While]
	Input    string        `yaml:"input,json"`            // as in [While]
	Deadline time.Duration `yaml:"deadline"`              // from its start to its end, all iterations together; 0 for none
	Else     Construct     `yaml:"else,construct"`        // runs in its place after it failed; nil for none
}

// Do runs one block on a logical processor.
type Do struct {
	Block string `yaml:"do"` // which of Program.Blocks runs
	On    string `yaml:"on"` // a processor; empty: any node
	// From is where the input comes from: "NAME.result", or "NAME.previous" in the
	// loop of that name. At most one of From and Input is given.
	From string `yaml:"from"`
	// Input is the input itself, compact JSON.
	Input string `yaml:"input,json"`
	// Retry is how often a block that failed, or whose node was lost, is started
	// again, on another node if there is one.
	Retry int `yaml:"retry"`
	// Async names the predicates that the block is under while it runs: their signals go to
	// such blocks only, and only to the blocks that the signal is addressed to.
	Async    []string      `yaml:"async"`
	Name     string        `yaml:"name"`           // empty: references use the block's name
	Deadline time.Duration `yaml:"deadline"`       // from its start to its end, all attempts and waiting for a node included; 0 for none
	Else     Construct     `yaml:"else,construct"` // runs in its place after the last attempt failed; nil for none
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

// Predicate is a predicate that a switch can read or a block can be under.
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
