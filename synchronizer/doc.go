// Package synchronizer runs the process that decides: it takes the local states
// of a group's members over NATS, builds strongly consistent global states from
// them, judges the predicates of a configuration file on each, and sends
// signals into the members' regions.
//
//	cfg, err := synchronizer.LoadConfig("pegasus.yaml")
//	...
//	s, err := synchronizer.Start(ctx, "nats://127.0.0.1:4222", cfg, synchronizer.Options{})
//	...
//	defer s.Close()
//
// # Promises
//
//   - A predicate that fired was certainly true: the states of its witness held together at one
//     instant, in every reality that the members' stamps admit, whatever was lost, doubled,
//     delayed or reordered on the way. The exception is a predicate with the modality possibly:
//     its condition may have been true, and Modality of the [monitor.Verdict] says so.
//   - A signal takes effect at most once, and only in the region entry it was decided on. It is
//     repeated until its fate is known; the observer receives each fate, and it is counted.
//   - A member that falls silent is named. By default the next epoch is without
//     it after a while (silence in the configuration).
//
// It does not promise that a state too short for the members' clock bounds is
// found, and it takes members at their word: it guards against crashes and lost
// messages, not against lies.
//
// # Events
//
// Options.Observe receives the events of package monitor: a [monitor.Verdict] where a predicate
// fires, a [monitor.Epoch], the [monitor.Fate] of a signal and others. Line of an event gives
// its text and its JSON.
//
// [Start] fails with [ErrNotConnected], [ErrNameTaken], [ErrGroupTaken] or an [*OptionsError].
//
// # Journals and reloads
//
// Options.Journal records all inputs, one JSON object a line; [Replay] steps a synchronizer
// through them once more, to the same outputs byte for byte, or to the verdicts of a changed
// configuration. [Synchronizer.Reload] applies a changed configuration while the synchronizer
// runs.
//
// # Questions
//
// [Synchronizer.Status] returns its present state. [Synchronizer.Why] returns why a predicate
// fired last, its present value, and the missing inputs. It answers the same questions over NATS,
// to `pegasus status`, `pegasus why` and `pegasus watch`: every client that may connect to the
// server may ask, and learns the members' states. Events are published only while a client
// watches.
//
// # Metrics and traces
//
// Options.MeterProvider and Options.TracerProvider take metrics and a span for each decision;
// [Synchronizer.Readiness] is for probes. Names, units and meanings are in docs/operations.md;
// they are stable.
//
// # Concurrency
//
// One goroutine owns all of a synchronizer's state. Options.Observe is called
// on it and must not block. The methods of [Synchronizer] may be called from
// any goroutine.
package synchronizer
