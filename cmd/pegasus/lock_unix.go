//go:build linux || darwin

package main

import (
	"errors"
	"os"
	"syscall"
)

// lock keeps a journal for this process as long as the file is open.
func lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) //nolint:gosec // A descriptor.
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errLocked
	}
	return nil // A file system without locks has nobody kept out.
}
