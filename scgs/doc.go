// Package scgs finds strongly consistent global states online: which tuples of
// local states, one of each member, certainly held at the same time, given only
// stamps of clocks that are known within bounds.
//
// # Model
//
// Each member of a set is in a sequence of local states. An event starts a state and ends the
// one before it; it has a stamp of package clocksync: a reading of its clock domain's monotonic
// clock, and an interval of reference time. A state that starts with the event S and ends with
// T is held on [S, T), so a state whose S and T have equal readings never held.
//
// A tuple g of states is a strongly consistent global state if for any two of
// its states i and j, S of i certainly happened before T of j:
//
//	same clock domain        m(S of i) < m(T of j)
//	different clock domains  hi(S of i) < lo(T of j)
//
// and for i itself the first of the two. Then, and only then, the states have an instant in
// common in every reality that the stamps admit (intervals on a line that overlap pairwise
// share a point). This is the modality Inst of Stoller (Detecting Global Predicates in
// Distributed Systems with Clocks, Distributed Computing 13(2), 2000), after the inevitable
// global states of Fromentin and Raynal (1994), and the PEGASUS paper builds its control on it
// (section 2.1). It is tested pair by pair: requiring an instant outside all uncertainty would
// miss many of them.
//
// The core of a global state, [max hi(S), min lo(T)), are the instants at which
// all its states certainly hold. It may be empty though the state is certain.
// The envelope, [max lo(S), min hi(T)), are those at which they can hold.
//
// # Modalities
//
// States that held at the same time are a stronger claim than conditions that did: a condition
// may stay true from one state to the next, and then the instant need not be the same in all
// realities. So for conjunctions of local conditions [Options.Modality] has a [Detector] look
// at runs, the maximal sequences of states in which a member's condition holds.
//
//	Definitely  in every reality the conditions held at the same time:
//	            the test above, of the runs' first starts and last ends
//	Possibly    in some reality they did:
//	            lo(S of i) < hi(T of j) between different clock domains
//
// Each Inst is a Definitely and each Definitely a Possibly; without uncertainty
// they are the same. Possibly is for alarms that must not miss anything: a tuple is
// found whenever there is one, and further ones greedily, since tuples that possibly
// overlap form no chain.
//
// Predicates that are not conjunctions can have the modality Possibly too: [Extents] gives the
// possible range of a sum, a count, the least and the greatest of the members' values at each
// instant of reference time.
//
// # Open states
//
// A state need not have ended. Evidence, a later stamp at which it still held,
// stands for its end: a global state is delivered as soon as evidence is late
// enough, which is the earliest moment at which it can be known, and it is never
// taken back. Silence is no evidence. One stamp can be evidence for all members whose
// reports come over one connection ([Detector.Held]). [Detector.Needs] says whose
// evidence would decide more.
//
// # Losses
//
// Reports carry sequence numbers. A jump is a loss: from the newest evidence to the next known
// start the member is UNKNOWN. So loss, delay, duplication and restarts cost global states and
// never make a false one. A tuple with UNKNOWN members is delivered as a partial one; it is no
// strongly consistent global state, but its known states certainly overlap. A member that stays
// silent can be given up with [Detector.Lost], and members come and go with [Detector.Epoch].
//
// # Levels
//
// A set may be too large, or too far apart, for one detector. Then groups of it have detectors
// of their own, and a detector above them has the groups for members: a global state of a group
// is a state that lasts from the latest start to the least end of its parts.
// [Detector.Summarize] reports it, [Detector.Summary] takes the report, and a network may lie
// between the two. Levels may be stacked, and groups and plain members mixed.
//
// The levels find the same as one detector of all members, at any moment at which all reports
// have arrived (hierarchical detection, as in Shen and Kshemkalyani 2014, but by clocks). The
// reason: all pairs of states in two groups overlap certainly if and only if the latest start
// in each group is certainly before the least end in the other. For that to hold of members
// that share a clock, a group tells its starts and ends by row: one for each clock domain that
// is used outside of the group too, which [Detector.Share] lists, and one for all the others
// together. Rows in one domain are compared by readings, others by intervals.
//
// A group advances when the first of its states has ended, while the others may last: so the
// end of a reported tuple is not reported. The tuple holds no longer than any state that the
// group has left since, nor than the evidence of its present states. Rows carry both, and
// update the tuples that still wait above.
//
//   - Between its tuples a group is nothing above: they do not follow each other
//     without a break.
//   - A lost summary loses a tuple, or some of how long others held. So do lost groups. An
//     epoch of a group, or a member of it that moves to another clock, loses all undecided
//     tuples of the group.
//   - The evidence that a level lacks is asked for at each level and, by
//     [Detector.NeedsFor], of the members below.
//   - The value of a group's tuple is its owner's choice. Predicates above can read nothing
//     else of it.
//   - Possibly does not compose, as possible tuples are no chain; runs are reported
//     to one detector.
//
// # Rules
//
//   - Each member's reports arrive in their order, reports of different members in any order.
//     The results do not depend on it.
//   - Along the readings of a clock domain, over all its members, neither end of
//     the stamps' intervals decreases (clocksync.Monotone); infinite upper ends
//     are left out of that. If that is broken, global states may be missed.
//   - Evidence is read while the state is held, under the lock under which it changes. If that
//     is broken, results may be false.
//   - A start without upper bound is in no global state of several domains.
//   - Two things are not found: a fact that only a combination of several tuples makes certain
//     ("this one or that one"), and a fact that follows from messages between members.
//
// The package is pure: times are arguments, equal inputs give equal outputs, and
// a steady run of reports allocates nothing. A report costs O(log members), least
// where all members are in one clock domain, under Inst, with no level above and
// taken out by [Detector.Advance]: then only readings are compared, and
// [Detector.Held] costs the same for any number of members. The states' values never
// pass through a [Detector]: it carries a [Ref] for each. [Schema] and [Value]
// describe the values.
package scgs
