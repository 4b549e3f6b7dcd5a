// Package control holds what a decision is and what becomes of it: signals, the
// fates they end in, and the rules of signal-sensitive regions.
//
// # Signals and regions
//
// A synchronizer that finds a predicate true on a global state sends signals. A
// signal goes to one region of one member: a delimited stretch of code that has
// said it wants to be interrupted (PEGASUS paper, section 2.1). It is of one of
// two kinds:
//
//   - [Activate]: the region's handler runs, then the region goes on where it
//     was.
//   - [Cancel]: the region is left, its cancel handler runs, and the program
//     goes on after the region.
//
// A signal may be late: the program went on while the message travelled. So a
// region has a new entry number every time it is entered, a signal names the
// entry it was decided on, and it takes effect in that entry or not at all.
//
// # Rules
//
// [Gate] is the pure form of these rules for one participant (a process or a
// thread): which signal waits, which is refused and why. Every signal ends in
// exactly one final [Fate]. A signal takes effect at most once: a second copy
// is answered with the fate of the first.
//
// Here a region is a stretch of code, not a place, and a synchronizer decides on
// global states; it has nothing to do with the network synchronizers of
// Awerbuch.
package control
