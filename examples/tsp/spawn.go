package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

// envName tells a worker process which one it is, and that its parent holds the
// other end of its standard input: when that closes, it ends.
const envName = "PEGASUS_TSP_WORKER"

// The patience with the worker processes.
const (
	restarts  = 3               // of a worker that ends before the first epoch
	leaveWait = 2 * time.Second // for workers that were told to end
	killWait  = 300 * time.Millisecond
)

// crew is the worker processes that a run has started.
type crew struct {
	args     []string
	screen   *screen
	begun    func() bool // the first epoch has come
	deserted func(error) // the last worker process has ended by itself

	mu      sync.Mutex
	workers map[string]*process
	ending  bool
	all     sync.WaitGroup
}

// process is a worker process that runs.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
}

// start runs n workers: this program again.
func (c *crew) start(n int) error {
	c.workers = map[string]*process{}
	for i := range n {
		if err := c.launch("w"+strconv.Itoa(i+1), 0); err != nil {
			return err
		}
	}
	return nil
}

// launch starts one worker for the first or another time.
func (c *crew) launch(name string, again int) error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot start worker %s: %w", name, err)
	}
	cmd := exec.Command(exe, c.args...)
	cmd.Env = append(os.Environ(), envName+"="+name)
	cmd.Stderr = &prefixed{screen: c.screen, name: name}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("cannot start worker %s: %w", name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending {
		return nil
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot start worker %s: %w", name, err)
	}
	c.workers[name] = &process{cmd, stdin}
	c.screen.detail("%s is process %d", name, cmd.Process.Pid)
	c.all.Go(func() { c.watch(name, cmd, again) })
	return nil
}

// watch waits for the end of a worker. One that ends before the run has begun
// is started again, for the first epoch waits for it; later the others do its
// work.
func (c *crew) watch(name string, cmd *exec.Cmd, again int) {
	err := cmd.Wait()
	c.mu.Lock()
	delete(c.workers, name)
	ending, left := c.ending, len(c.workers)
	c.mu.Unlock()
	if ending {
		return
	}
	how := cmd.ProcessState.String()
	switch {
	case !c.begun() && again < restarts:
		c.screen.line("%s ended before the search began (%s): starting it again", name, how)
		if err = c.launch(name, again+1); err != nil {
			c.deserted(err)
		}
	case !c.begun():
		c.deserted(fmt.Errorf("worker %s ended %d times before the search began, the last time with %s", name, again+1, how))
	case left == 0:
		c.deserted(fmt.Errorf("all workers have ended, the last one with %s: nobody is left to search", how))
	case err != nil:
		c.screen.line("%s has ended: %s", name, how)
	}
}

// leave waits for the workers to end by themselves, then ends them.
func (c *crew) leave(wait time.Duration) {
	c.mu.Lock()
	c.ending = true
	c.mu.Unlock()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		c.all.Wait()
	}()
	for _, step := range []struct {
		wait time.Duration
		then func(*process)
	}{
		{wait, func(p *process) { _ = p.stdin.Close() }},
		{killWait, func(p *process) { _ = p.cmd.Process.Kill() }},
	} {
		select {
		case <-gone:
			return
		case <-time.After(step.wait):
			c.each(step.then)
		}
	}
	<-gone
}

func (c *crew) each(do func(*process)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.workers {
		do(p)
	}
}
