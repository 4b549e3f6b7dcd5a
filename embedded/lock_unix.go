//go:build linux || darwin

package embedded

import (
	"errors"
	"os"
	"syscall"
)

// lock keeps a directory for one server, also within a process.
func lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) //nolint:gosec // A descriptor.
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errInUse
	}
	return nil // A file system without locks keeps nobody out.
}

// unlock gives the directory free. To close the file is not enough: a process that is just being
// started has a copy of it.
func unlock(f *os.File) {
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) //nolint:gosec // A descriptor. A lock that fails to go goes with the file.
}
