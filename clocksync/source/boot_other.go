//go:build !linux && !darwin

package source

import "errors"

// bootID is unknown here: nothing promises that processes share a clock.
func bootID() (string, error) { return "", errors.ErrUnsupported }
