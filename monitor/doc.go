// Package monitor has the types in which a synchronizer tells what it finds, does
// and knows. It runs nothing: it is what package synchronizer hands out and what
// the command prints.
//
//   - An [Event] is something that has happened: a [Verdict], an [Epoch], the
//     [Fate] of a signal, a [Plan] of moves, a [ProgramEvent], a [Clock], a
//     [Rejection], a [Reload].
//   - A [Status] is where a synchronizer stands at one instant.
//   - An [Explanation] says why a predicate fired last, what it comes to now and
//     what it lacks.
//   - A [GlobalState] is what a predicate written in Go is shown.
//
// Values of these types may be kept, and read by any goroutine, if their text does not
// say otherwise.
package monitor
