// Package plan compiles the section of one synchronizer into the [Level] that its
// machine follows: rules in the order in which they are judged, expressions that
// are checked against the declared state, signals with their targets. A level does
// not change once it is compiled and may be shared; a changed configuration is
// another level, and [Level.Changes] tells what is different and whether a machine
// can go over to it.
package plan
