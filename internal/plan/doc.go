// Package plan compiles a synchronizer's section into the [Level] that its machine follows:
// rules in the order in which they are judged, expressions that are checked against the
// declared state, signals with their targets. A level does not change once it is compiled and
// may be shared; a changed configuration is another level, and [Level.Changes] lists the
// differences and tells whether a machine can change to it.
package plan
