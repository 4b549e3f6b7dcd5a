package source

import (
	"errors"

	"golang.org/x/sys/unix"
)

// bootID names what shares mach_absolute_time: the boot session.
func bootID() (string, error) {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return "", err
	}
	if id == "" {
		return "", errors.New("kern.bootsessionuuid is empty")
	}
	return id, nil
}
