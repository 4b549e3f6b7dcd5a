// Package program holds the outer flow of a distributed program as a value, and
// the interpreter that executes it (PEGASUS paper, section 2.2, figures 2.4
// to 2.6).
//
// # Programs
//
// A [Program] is a tree of constructs. Its leaves are blocks, which run in
// processes on nodes:
//
//	Seq      one construct after another
//	Par      constructs in parallel, or replicas of a construct, up to a JOIN
//	If       one of two, by a predicate
//	Case     the first whose predicate is true
//	While    repeated while a predicate is true, evaluated before each iteration
//	DoUntil  repeated until a predicate is true, evaluated after each iteration
//	Do       one block
//
// A switch (If, Case, While, DoUntil) names predicates of synchronizers. They
// are evaluated on strongly consistent global states of the synchronizer's members,
// which may run blocks of the construct or of other parts of the program. In
// addition, a block can be under asynchronous predicates, whose signals reach it
// while it runs.
//
// [Compile] refuses what makes no sense and gives a [Compiled] program; [Graph] is
// its drawing.
//
// # Interpretation
//
// A [Run] is one execution of a compiled program. It is pure: [Run.Step] takes the present
// instant and one input and puts its requests into an [Output]. It has one owner. The same
// inputs give the same outputs, so a run can be rebuilt from its recorded inputs.
//
// The inputs of a run come in the order of the global states they rest on: the verdicts on a
// global state before the ends of blocks that hold in it. So a switch after a JOIN reads the
// verdict on the global state that passed the JOIN, or a later verdict. A verdict holds until
// the next one on its predicate, or until its synchronizer has begun a newer epoch. A switch
// that reads unknown waits.
//
// Every switch and every JOIN that passes is reported with the decision it passed
// on.
package program
