package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const wantJUnit = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="testdata/tests/bad_test.yaml" tests="2" failures="1" errors="0">
    <testcase name="idle &amp; &lt;alone&gt;" classname="testdata/tests/bad_test.yaml" file="testdata/tests/bad_test.yaml" line="4">
      <failure message="expected a firing from 1s to 1.1s; got no firing">testdata/tests/bad_test.yaml:10:9: not as expected&#xA;  |       - {predicate: all-idle, fired: [1s]}&#xA;  |         ^&#xA;  - expected a firing from 1s to 1.1s&#xA;  + got      no firing&#xA;  what happened:&#xA;    1.005ms    epoch 1: w1, w2&#xA;    1.005ms    all-idle is false&#xA;</failure>
    </testcase>
    <testcase name="overload" classname="testdata/tests/bad_test.yaml" file="testdata/tests/bad_test.yaml" line="11"></testcase>
  </testsuite>
  <testsuite name="testdata/tests/missing.yaml" tests="1" failures="0" errors="1">
    <testcase name="testdata/tests/missing.yaml" classname="testdata/tests/missing.yaml" file="testdata/tests/missing.yaml" line="0">
      <error message="the file is refused">rule tests: open testdata/tests/missing.yaml: no such file or directory: give the path of a YAML file</error>
    </testcase>
  </testsuite>
</testsuites>
`

func TestJUnit(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.xml")
	code, _, _ := execute(t, "test", "--junit", file, "testdata/tests/bad_test.yaml", "testdata/tests/missing.yaml")
	got, err := os.ReadFile(file)
	if err != nil || code != exitFailure {
		t.Fatalf("exit %d, %v", code, err)
	}
	if d := cmp.Diff(wantJUnit, string(got)); d != "" {
		t.Error(d)
	}
}

// TestPicturesOfFailures: --svg writes a file for each failure, and says which; a directory that cannot be made is refused.
func TestPicturesOfFailures(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pictures")
	code, stdout, _ := execute(t, "test", "--svg", dir, "testdata/tests/bad_test.yaml")
	file := filepath.Join(dir, "testdata_tests_bad_test.yaml-10-9.svg")
	if want := "  + got      no firing\n  picture: " + file + "\n"; code != exitFailure || !strings.Contains(stdout, want) {
		t.Errorf("exit %d, %s", code, stdout)
	}
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "expected a firing from 1s to 1.1s<") {
		t.Errorf("%v: %s", err, text)
	}
	if _, stdout, _ := execute(t, "test", "--json", "--svg", dir, "testdata/tests/bad_test.yaml"); !strings.Contains(stdout, `"picture":"`+file+`"`) {
		t.Error(stdout)
	}
	code, stdout, stderr := execute(t, "test", "--svg", filepath.Join(file, "x"), "testdata/tests/bad_test.yaml")
	if code != exitFailure || stdout != "" || stderr != "pegasus: --svg: mkdir "+file+": not a directory\n" {
		t.Errorf("exit %d, %s%s", code, stdout, stderr)
	}
}

// TestVerboseFailure: the events are printed once, below their heading.
func TestVerboseFailure(t *testing.T) {
	code, stdout, _ := execute(t, "test", "-v", "testdata/tests/bad_test.yaml")
	failures := strings.Count(stdout, "FAIL testdata")
	if n := strings.Count(stdout, "  what happened:\n"); code == exitOK || failures == 0 || n != failures {
		t.Errorf("exit %d, %d failures, %d histories:\n%s", code, failures, n, stdout)
	}
}
