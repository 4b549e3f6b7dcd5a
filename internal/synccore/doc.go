// Package synccore is one synchronizer's machine: it takes members in, keeps their reports in
// order, finds strongly consistent global states, judges the predicates on each, decides on
// signals, and sends its parent the summary.
//
// It is pure: [Core.Step] gets the present instant and one input, and leaves the actions to
// take in an [Output]. Questions are inputs, too ([InAsk]). The same machine runs in a
// synchronizer on NATS and, for the threads of a process, inside an agent.
//
// A machine is made of a plan.Level and does not know where that comes from. Signals
// are followed to their fates by internal/outbox, the section balance is applied by
// internal/planner, and a program, if the level has one, is carried out behind the
// interface plan.Executor. What a step did is recorded and replayed by
// internal/journal.
package synccore
