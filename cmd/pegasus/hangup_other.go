//go:build !unix

package main

import "os"

// hangups delivers nothing: this system has no SIGHUP.
func hangups() (signals <-chan os.Signal, stop func()) { return nil, func() {} }
