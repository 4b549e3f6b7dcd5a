// Package loopcore is the pure core of an elastic loop.
//
// The members of a loop share its rows. [Loop] is the machine of a member. The home of the loop divides the rows by
// the speeds of the members and counts each row once in each iteration. The members send each other
// [workcore.LoopFrame]. A frame may be lost, doubled, late and out of order: a later version replaces an earlier one.
//
// The package has no goroutine, clock, lock or connection. The same inputs lead to the same outputs.
package loopcore
