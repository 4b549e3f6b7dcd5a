package procnode

import (
	"errors"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes make a group, and have the process killed when the thread that started
// it ends, which hold keeps as long as the process.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func hold() (release func()) {
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}

// await returns when the process has ended. It is still there to be waited for, so
// that its number names no other group.
func (p *process) await() {
	for {
		err := unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
