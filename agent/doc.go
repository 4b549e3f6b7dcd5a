// Package agent is what a program links to take part in global control: it
// reports the program's local state, stamped with a time that can be trusted,
// and lets the signals of a synchronizer into the regions that ask for them.
//
// # Model
//
// A process joins a group as a member ([Join]). It tells its present state
// whenever that changes ([Member.Set]); a synchronizer puts the states of all
// members together to strongly consistent global states and decides predicates
// on them. What a predicate has to say comes as a signal into a region, a
// stretch of code that the program has marked ([Member.Region]; PEGASUS paper,
// section 2.1):
//
//   - an activation runs a handler at the region's next [Region.Check] or
//     [Region.Wait], on the goroutine of its work, and the work goes on after it;
//     a handler declared with [OnActivateNow] runs at once beside the work;
//   - a cancellation ends the region's context with the cause [*Canceled]; when
//     the work has returned, the cancel handler runs, and the program goes on
//     after the region.
//
// A signal takes effect at most once, and only in the entry of the region that
// it was decided on; one that comes later is ignored and counted
// ([Member.Stats]).
//
// A program that nobody controls goes on, and waits for nothing. A region may ask to be held
// meanwhile, or to be cancelled ([OnControlLoss]).
//
// A process may have threads ([Member.Thread]), goroutines with a state and
// regions of their own, where the configuration declares a thread-level
// synchronizer below the group's. It then runs inside the process and the threads
// report to it through memory; the process's state in the group is its summary. Whoever
// sets a state may evaluate its predicates as well ([Thread.Set]): that is sooner done
// than another goroutine wakes.
//
// A node ([JoinNode]) is a process whose members are processors: they run the blocks
// of a program, which are functions with a name ([Block]). One with threads
// ([ThreadBlock]; figure 2.5) is a function that runs once for each of them, under a
// thread-level synchronizer that lives as long as they do, and one that joins what they
// came to. How many threads there are, and what the synchronizer decides, stands in the
// program, and comes to the node with the answer to its hello.
//
// # Rules
//
//   - A member takes part from its first state on; where the configuration
//     declares no field, from Join on.
//   - Nothing here waits for the network but Join, [Member.Leave], and Close for at most a
//     few seconds. While the synchronizer or the server is away states are kept in a
//     ring of up to 1024 changes, and told when it is back; what was pushed out of the
//     ring is unknown there, never guessed.
//   - The members of one group in a process share a connection, unless [OwnConn] is given:
//     one message has what all of them have to say, and one stamp shows that all their
//     states still hold. Their names differ ([ErrNameTaken]). On a server with permissions
//     they also need to publish on pegasus.v1.TENANT.GROUP.st.p.MEMBER.* and to subscribe to
//     pr.p.MEMBER.* and sg.p.MEMBER.* there, else each of them sends for itself;
//     docs/operations.md has a whole list.
//   - A struct type is a state if its exported fields are the fields of the
//     declared state: named as in Go with a lower first letter, or as a tag
//     `pegasus:"name"` says; `pegasus:"-"` leaves one out. Types are bool, the
//     integers, the floats, string, time.Duration, types made of these, and slices
//     of them for lists; a string also carries an enum. A declared field that the
//     struct lacks has its declared default, or Join and Set fail and name it.
//   - Who sets states of one type very often binds it once ([StateOf]).
//   - A slice is copied by Set. It may have up to 64 elements, and the strings of
//     one at most 256 bytes together; nil is the empty list.
//   - Handlers may set states, enter other regions and block. They hold no lock.
//
// Config.MeterProvider and Config.TracerProvider take metrics, and spans of what was
// told and of the handlers of signals; docs/operations.md lists them, and they are
// stable.
//
// Not promised: that a signal arrives. It is repeated until it is answered or
// its time is over, but the region may be left before. Its sender learns which.
//
// All methods may be called from any goroutine, except that [Region.Check] and
// [Region.Wait] belong to the goroutine of the region's work. A region is a
// stretch of code here, not a place; a synchronizer decides on global states, it
// is not the one of Awerbuch.
package agent
