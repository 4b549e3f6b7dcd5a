//go:build !linux

package agent

import "errors"

// divideCores refuses where the system cannot keep a thread on a core.
func (n *Node) divideCores() ([][]int, error) {
	if n.cfg.Pin {
		return nil, errors.New("processors can be pinned to cores on Linux only: leave out Pin")
	}
	return nil, nil
}

func (p *processor) pinThread() (unpin func()) { return func() {} }
