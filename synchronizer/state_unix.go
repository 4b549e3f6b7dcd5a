//go:build linux || darwin

package synchronizer

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lockDir keeps a directory for this process, which waits for others for a while: they
// hold it for one write.
func lockDir(path string) (*os.File, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	for waited := time.Duration(0); ; waited += lockAgain {
		err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) //nolint:gosec // A descriptor.
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return dir, nil // A file system without locks has nobody kept out.
		}
		if waited >= lockPatience {
			return nil, errors.Join(fmt.Errorf("%s is locked by another process for more than %v: end that, or give another directory", path, lockPatience), dir.Close())
		}
		time.Sleep(lockAgain)
	}
}

const (
	lockAgain    = 10 * time.Millisecond
	lockPatience = 2 * time.Second
)

// unlockDir gives the directory free. To close it is not enough: a process that is just
// being started has a copy of it.
func unlockDir(dir *os.File) {
	_ = syscall.Flock(int(dir.Fd()), syscall.LOCK_UN) //nolint:gosec // A descriptor. A lock that fails to go goes with the file.
	_ = dir.Close()                                   // Nothing was written to it.
}

// syncDir returns when the names in the directory are on disk.
func syncDir(dir *os.File) error { return dir.Sync() }
