// Package workcore is the pure core of work distribution.
//
// # A record in a log
//
// All that has to be agreed on is a record in a log. A task is put once; each record of it says
// what was found since the record before (Result), what is left (Rest), and which tasks it puts
// (Children). A record counts if it is the first, in the order of the log, that builds on the last
// record that counted. So two holders may run the same task, and nothing counts twice: neither a
// result, nor a child, nor a part that was given away.
//
// The truth is the fold of the log: [Account]. It takes entries in their order and says of each
// whether it counts. Where the log lies is not its concern: in the process that puts the tasks, or
// in a stream that every member can read. Nothing in the account says who holds a task: a holder
// that is lost costs time, never a result.
//
// # Tasks that split
//
// A plain task has a rest of one: its record leaves no rest. A divisible task, a bag, is saved,
// split and withdrawn at any record: the rest goes on under the same name, and a part that is
// given away is a child. So the open tasks always cover all that is not done, as in a
// branch-and-bound search the open subtrees do.
//
// # The end
//
// A phase ends by an entry that counts only if no task is open at its place in the log. What is put
// behind it, in the phase that is over, is void.
//
// The package has no goroutine, clock, lock or connection. The same entries lead to the same account.
package workcore
