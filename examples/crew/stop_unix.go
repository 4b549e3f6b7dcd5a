//go:build unix

package crew

import (
	"os"
	"syscall"
)

// suspend stops a process, and resume lets it continue. It may have ended.
func suspend(p *os.Process) { _ = p.Signal(syscall.SIGSTOP) }
func resume(p *os.Process)  { _ = p.Signal(syscall.SIGCONT) }
