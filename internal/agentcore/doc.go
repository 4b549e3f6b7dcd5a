// Package agentcore is the machine of one member, a process or a thread,
// towards its synchronizer: it numbers the member's states, keeps the last of
// them for resending, groups them into batches, answers probes, knows which
// regions are open, and follows each signal to its fate.
//
// It is pure. The present instant, on the local monotonic clock, and the stamps
// of the member's clock are arguments. What is to be sent comes out of
// [Core.Flush]; when to call it next says [Core.Wake]. A shell that calls Flush
// late, or loses what it returned, costs time and completeness, not truth:
// what is lost shows as a gap in the numbers, and is sent again from the ring or
// is gone.
//
// The states come from the program ([Core.Set]), or the member is the summary of
// a level below it ([Core.Virtual]). Then states also end without a next one
// ([Core.End]), and the evidence that one holds comes from outside as well
// ([Core.Alive]), where it is otherwise the stamp of the flush.
package agentcore
