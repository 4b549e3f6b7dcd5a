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

// bind has what this thread starts run on some cores, until undo. A process that may not
// be bound runs on all.
func bind(cpus []int) (undo func()) {
	var before, set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	if len(cpus) == 0 || unix.SchedGetaffinity(0, &before) != nil || before == set || unix.SchedSetaffinity(0, &set) != nil {
		return func() {}
	}
	return func() { _ = unix.SchedSetaffinity(0, &before) } // It was so.
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
