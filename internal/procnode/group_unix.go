//go:build linux || darwin

package procnode

import "syscall"

func supported() error { return nil }

// start starts the process as the first of a group.
func (p *process) start() error {
	defer bind(p.run.CPUs())() // The thread is held.
	p.cmd.SysProcAttr = attributes()
	return p.cmd.Start()
}

func (p *process) terminate() { p.signal(syscall.SIGTERM) }

func (p *process) kill() { p.signal(syscall.SIGKILL) }

// signal reaches the whole group, if there is any of it left.
func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.waited {
		_ = syscall.Kill(-p.cmd.Process.Pid, s)
	}
}
