// Package agent is what a program links to take part in global control: it
// reports the program's local state, stamped with a time that can be trusted,
// and lets the signals of a synchronizer into the regions that ask for them.
//
// # Model
//
// A process joins a group as a member ([Join]). It tells its present state whenever that
// changes ([Member.Set]); a synchronizer puts the states of all members together to strongly
// consistent global states and decides predicates on them. A predicate that fires sends a
// signal into a region, a stretch of code that the program has marked ([Member.Region]; PEGASUS
// paper, section 2.1):
//
//   - an activation runs a handler at the region's next [Region.Check] or [Region.Wait], on the
//     goroutine of its work, and the work continues after it; a handler declared with
//     [OnActivateNow] runs at once beside the work;
//   - a cancellation ends the region's context with the cause [*Canceled]; when the work has
//     returned, the cancel handler runs, and the program continues after the region.
//
// A signal takes effect at most once, and only in the entry of the region that it was decided
// on; a later signal is ignored and counted ([Member.Stats]).
//
// A program without control continues, and waits for nothing. A region may ask to be held
// meanwhile, or to be cancelled ([OnControlLoss]).
//
// A process may have threads ([Member.Thread]), goroutines with a state and regions of their
// own, where the configuration declares a thread-level synchronizer below the group's. It then
// runs inside the process and the threads report to it through memory; the process's state in
// the group is its summary. The goroutine that sets a state may evaluate the predicates as well
// ([Thread.Set]): that takes less time than waking another goroutine.
//
// A node ([JoinNode]) is a process whose members are processors: they run the blocks of a
// program, which are functions with a name ([Block]). One with threads ([ThreadBlock]; figure
// 2.5) is a function that runs once for each of them, under a thread-level synchronizer that
// lives as long as they do, and a second function that joins their results. The program
// declares the number of threads and the predicates of the synchronizer; the node receives both
// with the answer to its hello.
//
// # Rules
//
//   - A member takes part from its first state on; where the configuration
//     declares no field, from Join on.
//   - Nothing here waits for the network but Join, [Member.Leave], and Close for at most a few
//     seconds. While the synchronizer or the server is away, states are kept in a ring of up to
//     1024 changes, and reported afterwards. States pushed out of the ring are unknown to the
//     synchronizer, never guessed.
//   - Members of the same group in a process share a connection, unless [OwnConn] is given: one
//     message carries the reports of all of them, and one stamp shows that all their states
//     still hold. Their names differ ([ErrNameTaken]). On a server with permissions they also
//     need to publish on pegasus.v1.TENANT.GROUP.st.p.MEMBER.* and to subscribe to
//     pr.p.MEMBER.* and sg.p.MEMBER.* there, else each of them sends for itself;
//     docs/operations.md has a whole list.
//   - A struct type is a state if its exported fields are the fields of the declared state:
//     named as in Go with a lower first letter, or as a tag `pegasus:"name"` says;
//     `pegasus:"-"` leaves one out. Types are bool, the integers, the floats, string,
//     time.Duration, types made of these, and slices of them for lists; a string also carries
//     an enum. A declared field that the struct lacks has its declared default; without a
//     default Join and Set fail and name the field.
//   - A program that sets states of the same type very often binds the type once ([StateOf]).
//   - A slice is copied by Set. It may have up to 64 elements, and the strings of a slice at
//     most 256 bytes together; nil is the empty list.
//   - Handlers may set states, enter other regions and block. They hold no lock.
//
// Config.MeterProvider and Config.TracerProvider take metrics, and spans of reports and of the
// handlers of signals; docs/operations.md lists them, and they are stable.
//
// Not promised: that a signal arrives. It is repeated until it is answered or its time is over,
// but the region may be left before. Its sender learns its fate.
//
// All methods may be called from any goroutine, except that [Region.Check] and [Region.Wait]
// belong to the goroutine of the region's work. A region is a stretch of code here, not a
// place. A synchronizer decides on global states; it is not the synchronizer of Awerbuch.
package agent
