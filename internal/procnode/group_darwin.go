package procnode

import (
	"errors"
	"syscall"
	"unsafe"
)

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func hold() (release func()) { return func() {} }

func bind([]int) (undo func()) { return func() {} }

// await returns when the process has ended. It is still there to be waited for, so
// that its number names no other group.
func (p *process) await() {
	const byPID = 1
	var info [16]uint64 // More than a siginfo_t.
	for {
		//nolint:gosec // The buffer outlives the call.
		_, _, err := syscall.Syscall6(syscall.SYS_WAITID, byPID, uintptr(p.cmd.Process.Pid),
			uintptr(unsafe.Pointer(&info[0])), syscall.WEXITED|syscall.WNOWAIT, 0, 0)
		if !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}
