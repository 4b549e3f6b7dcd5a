// Package callcore is a member's part in calls: it sends calls to servers, and it serves calls of others.
//
// The caller chooses a server for each call, sends the call until the server has it, and asks about it from then on.
// The server runs calls in an order, and sends each answer until the caller has taken it. A call of a server that is
// lost begins again at another one. So a function may run more than once; each call has exactly one outcome.
//
// A chain is a call of several stages. A server that has run a stage sends the result to a server of the next
// stage, and tells the origin of the call where it is.
//
// The package is pure: it has no goroutine, clock or connection. The caller of its methods carries out the [Output].
package callcore
