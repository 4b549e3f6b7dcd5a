// Package agentcore is the machine of a member, a process or a thread, towards its
// synchronizer: it numbers the member's states, keeps the last of them for resending, groups
// them into batches, answers probes, knows which regions are open, and follows each signal to
// its fate.
//
// It is pure, and has the contract of both cores (docs/architecture.md): [Core.Step] gets the
// present instant, on the local monotonic clock, and one [Input], and fills an [Output]. The
// stamps of the member's clock are part of the inputs. Messages come out of a step with
// [InTick], as that brings the reading that is the evidence; when the next one is due says
// [Due.Wake] after each step, and nothing else is asked for that. A shell that is late, or
// loses what it was given, costs time and completeness, not truth: a lost report shows as a gap
// in the numbers, and is sent again from the ring or is gone.
//
// The states come from the program ([InState]), or the member is the summary of a
// level below it ([InSummary]). Then states also end without a next one ([InEnd]),
// and the evidence that one holds comes from outside as well ([InAlive]), where it
// is otherwise the stamp of the tick.
package agentcore
