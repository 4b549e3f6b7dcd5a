//go:build !unix

package main

import "time"

var started = time.Now()

// used is the time since the start: that of the processor is not at hand.
func used() time.Duration { return time.Since(started) }
