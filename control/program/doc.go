// Package program holds the outer flow of a distributed program as a value, and
// the interpreter that carries it out (PEGASUS paper, section 2.2, figures 2.4
// to 2.6).
//
// # Programs
//
// A [Program] is a tree of constructs. Its leaves are blocks, which run in
// processes on nodes:
//
//	Seq      one construct after another
//	Par      constructs side by side, or one of them many times, up to a JOIN
//	If       one of two, by a predicate
//	Case     the first whose predicate is true
//	While    again and again while a predicate is true, judged before each time
//	DoUntil  again and again until a predicate is true, judged after each time
//	Do       one block
//
// A switch (If, Case, While, DoUntil) names predicates of synchronizers. They
// are judged on strongly consistent global states of whatever processes the
// synchronizer has as members: those of the construct, or of blocks elsewhere in
// the program. Beside that, a block can be under asynchronous predicates, whose
// signals reach it while it runs.
//
// [Compile] refuses what cannot be meant and gives a [Compiled] program. [Graph] draws it.
//
// # Interpretation
//
// A [Run] is one execution of a compiled program. It is pure: [Run.Step] takes the present
// instant and one input and leaves what is to be done in an [Output]. It has one
// owner. The same inputs give the same outputs: whoever records what its own
// inputs were can be rebuilt, with the run inside.
//
// The inputs of a run come in the order of the global states they rest on: the
// verdicts on a global state before the ends of blocks that hold in it. So what
// a switch after a JOIN reads is the verdict on the global state that passed the
// JOIN, or a later one. A verdict holds until the next one on its predicate, or
// until its synchronizer has begun a newer epoch. Unknown never switches: a
// switch that reads it waits.
//
// Every switch and every JOIN that passes is told with the decision it passed on.
package program
