package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"go.uber.org/goleak"

	"github.com/gopegasus/pegasus/internal/testnats"
)

// commandEnv makes this test binary the command itself.
const commandEnv = "PEGASUS_TEST_COMMAND"

// TestMain keeps the notes of runs, and their terms, out of this user's directories, and the
// servers of this user out of the tests.
func TestMain(m *testing.M) {
	testnats.RunNode()
	if os.Getenv(commandEnv) != "" || len(os.Args) > 1 && os.Args[1] == "bench" {
		main() // Of TestBinary, or the second process of a measurement.
	}
	for _, name := range []string{"URL", "CREDS", "NKEY", "CA", "CERT", "KEY", "TOKEN", "USER", "PASSWORD", "CONTEXT"} {
		_ = os.Unsetenv("NATS_" + name)
	}
	dir, err := os.MkdirTemp("", "pegasus")
	if err == nil {
		err = errors.Join(os.Setenv("XDG_RUNTIME_DIR", dir), os.Setenv("XDG_STATE_HOME", dir))
	}
	if err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// execute runs one command line to its end.
func execute(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Execute(t.Context(), args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

// TestGolden runs the command lines of testdata/golden.
func TestGolden(t *testing.T) {
	datadriven.Walk(t, filepath.Join("testdata", "golden"), func(t *testing.T, path string) {
		t.Helper()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			if d.Cmd != "pegasus" {
				d.Fatalf(t, "unknown command %s", d.Cmd)
			}
			code, stdout, stderr := execute(t, strings.Fields(d.Input)...)
			return fmt.Sprintf("exit %d\n%s%s", code, stream("stdout", stdout), stream("stderr", stderr))
		})
	})
}

func stream(name, text string) string {
	if text == "" {
		return ""
	}
	return "-- " + name + "\n" + strings.TrimSuffix(text, "\n") + "\n"
}

func TestCheckRefusesALargeFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "large.yaml")
	if err := os.WriteFile(file, bytes.Repeat([]byte("# 4567890\n"), 200_000), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := execute(t, "check", file)
	if code != exitFailure || stdout != "" || !strings.Contains(stderr, "larger than the limit of 1048576") {
		t.Errorf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

// brokenWriter stands for a full disk.
type brokenWriter struct{}

var errFull = errors.New("no space left")

func (brokenWriter) Write([]byte) (int, error) { return 0, errFull }

func TestOutputThatCannotBeWritten(t *testing.T) {
	for _, args := range []string{"version", "version --json", "check testdata/configs/fragile.yaml", "check --json testdata/configs/good.yaml", "config schema", "config show testdata/configs/good.yaml", "test testdata/tests/good_test.yaml", "sim --trials 1 testdata/configs/good.yaml", "work sim testdata/work/small.yaml", "work plan testdata/configs/work.yaml", "work advise ../../internal/workcmd/testdata/still.journal.jsonl", "keys permissions viewer vic --group g"} {
		var stderr bytes.Buffer
		code := Execute(t.Context(), strings.Fields(args), strings.NewReader(""), brokenWriter{}, &stderr)
		if code != exitFailure || stderr.String() != "pegasus: no space left\n" {
			t.Errorf("%s: exit %d, stderr %q", args, code, stderr.String())
		}
	}
}
