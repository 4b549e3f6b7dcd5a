// Package bench measures what the framework adds to bare NATS: legs of both
// take turns in one run, so that whatever else the machine does falls on both.
// Members and the bare client are in a second process, the program started again
// as a [Worker]; the NATS server, the synchronizers and the bare subscriber are
// in this one.
package bench
