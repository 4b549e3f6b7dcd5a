// Package synccore is one synchronizer's machine: it takes members in, keeps
// their reports in order, finds strongly consistent global states, judges the
// predicates on each, sends signals and follows them to their fates, and tells
// its parent the summary of what it found.
//
// It is pure: [Core.Step] gets the present instant and one input, and leaves
// what is to be done in an [Output]. The same machine runs in a synchronizer on
// NATS and, for the threads of one process, inside an agent.
//
// The configuration of all levels is one file; a synchronizer hands the sections of the
// levels below it to its members, so that they need no file.
package synccore
