package agent

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// divideCores divides the cores that this process may use among its processors; nil if
// they have none of their own.
func (n *Node) divideCores() ([][]int, error) {
	if !n.cfg.Pin && (n.cfg.Unbound || n.cfg.Processors == 1) {
		return nil, nil
	}
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("the cores of this process cannot be told: %w", err)
	}
	var cpus []int
	for i := 0; len(cpus) < set.Count(); i++ {
		if set.IsSet(i) {
			cpus = append(cpus, i)
		}
	}
	switch need := n.cfg.Processors * n.cfg.Cores; {
	case !n.cfg.Pin && need != len(cpus):
		return nil, nil // Which of them are another node's cannot be told.
	case need > len(cpus):
		return nil, fmt.Errorf("%d processors of %d cores cannot be pinned: this process may use %d cores: ask for fewer", n.cfg.Processors, n.cfg.Cores, len(cpus))
	}
	pins := make([][]int, n.cfg.Processors)
	for i := range pins {
		pins[i] = cpus[i*n.cfg.Cores : (i+1)*n.cfg.Cores]
	}
	return pins, nil
}

// pinThread keeps the goroutine on one thread, and that on the processor's cores. It
// returns what ends that: the thread ends with it, for others must not inherit it.
func (p *processor) pinThread() (unpin func()) {
	if !p.node.cfg.Pin {
		return func() {}
	}
	runtime.LockOSThread()
	var set unix.CPUSet
	for _, cpu := range p.cpus {
		set.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		p.m.log.Warn("a processor cannot be pinned to its cores, and runs on all", "member", p.m.cfg.Name, "cores", p.cpus, "error", err)
	}
	return func() {} // A goroutine that ends locked takes its thread along.
}
