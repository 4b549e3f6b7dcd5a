//go:build !linux

package observe

import (
	"errors"
	"runtime"
	"time"
)

var errLinux = errors.New("the time is known on Linux only")

func threadTime() (time.Duration, error) { return 0, errLinux }

func processTime() (time.Duration, error) { return 0, errLinux }

// usable numbers the cores that Go counts, none of which can be named here.
func usable() ([]int, error) {
	cores := make([]int, runtime.NumCPU())
	for i := range cores {
		cores[i] = i
	}
	return cores, nil
}

func pin(int) error { return nil }

func probe(int) (ran, waited, cost time.Duration, err error) { return 0, 0, 0, errLinux }
