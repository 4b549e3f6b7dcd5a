// Package bustest helps tests that use a bus: a synctest bubble that nats.go
// survives, and a server inside the process.
package bustest

import (
	"runtime"
	"testing"
	"testing/synctest"
)

// Bubble runs f as synctest.Test does. Before and after, it empties the pool of
// timers that nats.go keeps for the whole process: the runtime ends a process
// that uses the timer of one bubble in another, or in none. For the same reason
// no test that uses NATS may run in parallel with it.
func Bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	forgetTimers()
	defer forgetTimers()
	synctest.Test(t, f)
}

// forgetTimers collects twice, since a sync.Pool gives up its content in two
// steps.
func forgetTimers() {
	runtime.GC()
	runtime.GC()
}
