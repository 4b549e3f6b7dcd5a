// Package clocksync gives every event a time that can be trusted: a reading of
// the host's monotonic clock, exact inside one clock domain, and a closed
// interval that contains the true time, for comparison between domains.
//
// # Model
//
// A clock domain is a set of processes that read one and the same monotonic
// clock: the processes of one boot of one kernel in one time namespace. Two
// stamps of one domain are ordered exactly by their readings. Two stamps of
// different domains are ordered only when their intervals are disjoint; if they
// are not, the order is unknown, and nothing here guesses.
//
// The two relations everything else is built on are
//
//	CertainlyBefore(a, b)   a happened before b in every admissible reality
//	PossiblyBefore(a, b)    not CertainlyBefore(b, a)
//
// "Admissible" means: each stamp's true time lies inside its interval, and
// stamps of one domain have the order of their readings (Stoller, Detecting
// Global Predicates in Distributed Systems with Clocks, Distributed Computing
// 13(2), 2000; PEGASUS paper, section 2.1).
//
// # Rules
//
//   - Times are arguments. Nothing in this package reads a clock; the readers
//     are in the package source below it.
//   - An unknown bound is infinite ([Unbounded]), never a default number.
//     Members of one domain are still compared exactly by their readings.
//   - Along increasing readings of a domain, the ends of the intervals never
//     decrease. [Monotone] makes them so and keeps them valid.
//
// All types are values; they may be copied and compared freely. Only a [Clock]
// is shared between goroutines.
package clocksync
