// Package lookahead tells a synchronizer whom it need not ask: whether evidence that is missing can
// change where a predicate stands ([Ahead]), and past what a question is to be, so that its answers
// decide all that waits ([Begins]). docs/model.md, "Evidence on demand", has the argument.
//
// It is pure, and its types are for one goroutine.
package lookahead
