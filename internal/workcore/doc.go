// Package workcore is the pure core of work distribution.
//
// # A record in a log
//
// All that has to be agreed on is a record in a log. A task is put once; each record of it has the result since the
// record before (Result), the rest to do (Rest), and the tasks that it puts (Children). A record counts if it is the
// first, in the order of the log, that builds on the last record that counted. So two holders may run the same task,
// and nothing counts twice: neither a result, nor a child, nor a part that was given away.
//
// The truth is the fold of the log: [Account]. It takes entries in their order and says of each whether it counts.
// Where the log lies is not its concern: in the process that puts the tasks, or in a stream that every member can
// read. Nothing in the account says who holds a task: a holder that is lost costs time, never a result.
//
// # Tasks that split
//
// A plain task is a single piece: its record leaves no rest. A divisible task, a bag, is saved, split and withdrawn at
// any record: the rest continues under the same name, and a part that is given away is a child. So the open tasks
// always cover all that is not done, as in a branch-and-bound search the open subtrees do.
//
// # Tasks that run after others
//
// A task may name tasks of its account that it runs after. It is open and waits in its account, so it is neither
// handed out nor recorded, until all of these are done, with the parts that were split off them. If one of them fails,
// the [Store] records that it fails too. The account keeps the IDs of all tasks of the phase, so it knows which are
// over; it forgets them at the end of the phase. An ID that it does not know is waited for: the phase does not end
// before it comes. A put that closes a circle is refused, and a child that closes one fails.
//
// # Objects
//
// An object is a task of its creator's account that stays. Its rest is its state, and it has an inbox there. It runs
// when it has messages: its lease brings the state and the first of them, and its record is a save, which says how
// many messages are over. The save is the commit: the state, the messages that it has served and what it has sent
// count together, or none of it does.
//
// A message is a task of its sender's account. If the object is in the same account, the message is in its inbox at
// once. Else the member posts it to the member with the object's account ([Post]), which it finds by asking all. One
// post of an account for an object is on its way at a time, and begins with the first message that was not taken. So
// messages stay in their order, and the number of the last one that was taken tells copies.
//
// An object is at the member where it ran last, and its account brings it there with the next messages. It moves if
// that member gives it to another one before it runs, by the strategy, or if that member is gone. Each time the
// account hands out a state once more it has a new sequence, the fence: what was handed out before is stale.
//
// # The end
//
// A phase ends by an entry that counts only if no task is open at its place in the log. A task put behind it, in the
// phase that is over, is void.
//
// # A member
//
// [Member] is the machine of one member where the accounts lie in memory. It keeps the account of the tasks that its
// own program puts ([Store]), holds leases of all accounts, and runs them in its slots. A strategy of balance/local
// decides what it asks for and what it gives. It is driven by one call, [Member.Step], as the other machines are.
//
// Members send each other a [Frame]. Each may be lost, doubled, late and out of order:
//
//   - A [Demand] without an answer counts as refused after a time. So does a demand that offers tasks: the other member asks for them, or refuses.
//   - A [Parcel] counts only while its demand is open. If it is lost, the [Holds] of its receiver do
//     not list its leases, and the account puts the tasks again.
//   - A [Step] is sent again until a [Verdict] arrives. A record that counted on the way is stale then,
//     and its holder stops: the account hands the rest out once more.
//   - A frame of another phase, or of a life that is not in the roster, is ignored.
//
// A task is open at its account until its record counts, wherever it is. So a phase is over once every member of the
// roster is idle and settled at one instant, and no frame has to be counted for that.
//
// Without logs, the tasks of a member that leaves the roster are lost, and the others tell how many ([Lost]).
//
// # Logs
//
// Each account may lie in a log of its own. Its owner appends what changes the account, and nothing that rests on an
// entry leaves a [Member] before the log has the entry ([Member.Release]). A [Keeper] takes an account: it folds the
// log ([Recovery]) and appends that another life has it now, which the life before notices at its next message. Any
// member decides by the last messages of all logs whether a phase is over, and the first decision counts. The package
// is given the log as an interface, so the shell and the simulation run the same protocol.
//
// The package has no goroutine, clock, lock or connection. The same inputs lead to the same outputs.
package workcore
