// Package tracedetect finds the global states of a trace. A [Core] is given the
// lines one by one, in order of arrival; it checks each participant's order,
// hands what it reports to a detector of package scgs, and emits what has become
// certain.
//
// The set of members does not change. Without epochs a member that has left has
// no state, so there are no global states until it comes back, in a higher
// incarnation. With epochs being gone for ever is the state that follows a leave:
// so the global states of the members that remain begin when the leave certainly
// has happened, they do not depend on the order of arrival, and their epoch is 1
// more than the number of those that are gone. A member that is gone does not
// come back; its later lines are passed over.
//
// The package is pure. It holds what is not decided yet: for each member the
// states that others are behind with, and with Final those that have not ended.
package tracedetect
