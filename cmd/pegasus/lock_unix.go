//go:build linux || darwin

package main

import (
	"errors"
	"os"
	"syscall"
)

// lockJournal keeps a journal for this process as long as the file is open.
func lockJournal(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) //nolint:gosec // A descriptor.
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errLocked
	}
	return nil // A file system without locks has nobody kept out.
}

// unlockJournal gives a journal free. To close the file is not enough: a process that is just
// being started has a copy of it.
func unlockJournal(f *os.File) {
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) //nolint:gosec // A descriptor. A lock that fails to go goes with the file.
}
