// Package testwait waits in tests for what has no event to wait for.
package testwait

import (
	"testing"
	"time"
)

// patience is far above what any condition takes on a machine with other work.
const patience = time.Minute

// Until waits until a condition holds, and fails the test if it does not within
// a minute. It is for conditions that no channel tells of.
func Until(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	if !Within(patience, holds) {
		tb.Fatalf("waited %v for %s", patience, what)
	}
}

// Within reports whether a condition comes to hold within a limit. It asks at
// least once.
func Within(limit time.Duration, holds func() bool) bool {
	for end := time.Now().Add(limit); !holds(); Elapse(time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// Elapse lets real time pass. It is for the few places where time is not waited
// for but is what a test is about: the delay of a simulated link, the length of a
// piece of work, the pace of a measurement, and room for a fault that has no
// event, as one more worker than allowed. No test may need more than the time
// itself to have passed: what is to happen meanwhile is waited for with Until.
func Elapse(d time.Duration) { time.Sleep(d) }
