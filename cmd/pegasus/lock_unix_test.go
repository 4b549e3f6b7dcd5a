//go:build linux || darwin

package main

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/gopegasus/pegasus/synchronizer"
)

// TestLockEndsWithTheRun: a process that is being started has copies of all files until
// it is another program. Such a copy must not keep a journal from who carries it on.
func TestLockEndsWithTheRun(t *testing.T) {
	first := journals{dir: t.TempDir()}
	if err := first.add(&synchronizer.Options{Name: "s"}); err != nil {
		t.Fatal(err)
	}
	file := first.files[0]
	if _, err := file.WriteString("{}\n"); err != nil {
		t.Fatal(err)
	}
	second := journals{resume: filepath.Clean(file.Name())}
	if err := second.add(&synchronizer.Options{}); err == nil || err.Error() != "resume "+file.Name()+": "+errLocked.Error() {
		t.Errorf("while the run goes on: %v", err)
	}
	held, err := syscall.Dup(int(file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(held) }()
	if err := first.close(); err != nil {
		t.Fatal(err)
	}
	if err := second.add(&synchronizer.Options{}); err != nil {
		t.Errorf("after its end: %v", err)
	}
	if err := second.close(); err != nil {
		t.Error(err)
	}
}
