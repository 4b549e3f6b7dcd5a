// Package testprogram runs the program under test as a process of its own: the test
// binary again, which calls main instead of the tests. That saves a build of the program.
package testprogram

import (
	"os"
	"os/exec"
	"testing"
)

// env tells a test binary that it is the program.
const env = "PEGASUS_TEST_PROGRAM"

// Main is for TestMain. It calls main in a process that [Command] has started, and runs the
// tests otherwise. It does not return.
func Main(m *testing.M, main func()) {
	if os.Getenv(env) == "" {
		os.Exit(m.Run())
	}
	main()
	os.Exit(0)
}

// Command is the program with arguments. The process is killed when the test ends.
func Command(tb testing.TB, args ...string) *exec.Cmd {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), env+"=1")
	return cmd
}
