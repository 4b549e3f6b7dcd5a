//go:build !linux && !darwin

package procnode

import "errors"

// supported refuses where a process cannot be ended with all that it has started.
func supported() error {
	return errors.New("executables run as blocks on Linux and macOS only: write the block in Go, with agent.Block")
}

func hold() (release func()) { return func() {} }

func (p *process) start() error { return supported() }

func (p *process) terminate() {}

func (p *process) kill() {}

func (p *process) await() {}
