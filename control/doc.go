// Package control holds what a decision is and what becomes of it: signals, the
// fates they end in, and the rules of signal-sensitive regions.
//
// # Signals and regions
//
// A synchronizer that finds a predicate true on a global state sends signals. A signal goes to
// one region of a single member: a delimited part of its execution that accepts interruption
// (PEGASUS paper, section 2.1). There are two kinds:
//
//   - [Activate]: the region's handler runs, then the region resumes.
//   - [Cancel]: the region is left, its cancel handler runs, and the program
//     continues after the region.
//
// A signal may be late: the program continued while the message was in transit. So
// a region gets a new entry number every time it is entered, a signal names the
// entry it was decided on, and it takes effect in that entry or not at all.
//
// # Rules
//
// [Gate] is the pure form of these rules for one participant (a process or a
// thread): which signal waits, which is refused and why. Every signal ends in
// exactly one final [Fate]. A signal takes effect at most once: a second copy
// is answered with the fate of the first. Copies have the same [Decision], and those
// of a later term the same [Cause].
//
// A region here is a part of an execution, not a place, and a synchronizer decides
// on global states; it has nothing to do with Awerbuch's network synchronizers.
package control
