// Package testcount says how many random cases a test tries. A change tries few, and
// "make nightly" many: it sets PEGASUS_NAME in the environment. The number is read while
// the test runs, and not from a flag, so that Go's test cache knows it.
package testcount

import (
	"os"
	"strconv"
	"testing"
)

// Of returns the value of PEGASUS_name, a number of at least 1, or usual if it is not set.
func Of(tb testing.TB, name string, usual int) int {
	tb.Helper()
	text, set := os.LookupEnv("PEGASUS_" + name)
	if !set || text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		tb.Fatalf("PEGASUS_%s is %q: set it to a number of at least 1", name, text)
	}
	return n
}
