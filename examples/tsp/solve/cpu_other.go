//go:build !unix

package main

import "time"

var started = time.Now()

// used is the time since the start: the time of the processor is not known.
func used() time.Duration { return time.Since(started) }
