// Package clocksync gives every event a time that can be trusted: a reading of
// the host's monotonic clock, exact inside one clock domain, and a closed
// interval that contains the true time, for comparison between domains.
//
// # Model
//
// A clock domain is a set of processes that read one and the same monotonic clock: the
// processes that share a boot, a kernel and a time namespace. Two stamps of the same domain are
// ordered exactly by their readings. Two stamps of different domains are ordered only when
// their intervals are disjoint; if they are not, the order is unknown, and this package never
// guesses.
//
// The two relations everything else is built on are
//
//	CertainlyBefore(a, b)   a happened before b in every admissible reality
//	PossiblyBefore(a, b)    not CertainlyBefore(b, a)
//
// "Admissible" means: each stamp's true time lies inside its interval, and stamps of the same
// domain have the order of their readings (Stoller, Detecting Global Predicates in Distributed
// Systems with Clocks, Distributed Computing 13(2), 2000; PEGASUS paper, section 2.1).
//
// # Bounds
//
// Where a bound is measured, each answer of a server is a [Sample]: limits of the
// reference time minus the reading of the domain's clock, at one reading. An
// [Exchange] gives them without assuming that the path is symmetric. A bound rests
// on readings of the monotonic clock, so a step of the wall clock cannot move it; a
// suspend, which stops the monotonic clock, invalidates all bounds.
//
// An [Estimator] fuses the samples of several servers, of which some may be wrong, into a
// [Bound]: a line that gives the interval of any reading and widens with the drift of the
// clock. Its [Quality] says what the bound rests on and when it expires. The bound is infinite
// when nothing can be claimed. A contradiction with earlier measurements is reported, and
// taints the stamps made since the bound was last confirmed. [Observation] and [Change]
// distinguish steps, suspends and slews.
//
//	e, err := clocksync.NewEstimator(clocksync.Config{Timeline: clocksync.UTC, Faults: 1})
//	...
//	e.Observe(observation) // after each exchange, and every second
//	e.Add(sample)
//	line := e.Bound(reading)
//	stamp := clocksync.Stamp{Domain: d, Mono: m, Within: line.Within(m)}
//
// # Rules
//
//   - Times are arguments. Nothing in this package reads a clock; the readers
//     are in the package source below it.
//   - An unknown bound is infinite ([Unbounded]), never a default number. Members of the same
//     domain are still compared exactly by their readings.
//   - Along increasing readings of a domain, the ends of the intervals never
//     decrease. [Monotone] ensures that and keeps them valid; [MonotoneMerger] does
//     so where several processes of a domain measured their bounds separately.
//   - Times of two timelines are never compared: see [Timeline].
//
// Stamps, intervals and the other small types are values; they may be copied and
// compared freely. Only a [Clock] and a finished [Bound] are shared between
// goroutines.
package clocksync
