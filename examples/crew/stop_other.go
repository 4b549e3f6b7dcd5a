//go:build !unix

package crew

import "os"

// suspend and resume do nothing where a process cannot be stopped: it runs on until it is killed.
func suspend(*os.Process) {}
func resume(*os.Process)  {}
