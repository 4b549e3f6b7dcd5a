// Search looks for the parameters of a pendulum that explain what was measured: eight
// blocks on four processes climb from random places, and when one of them has found
// parameters that are good enough, all others are stopped where they are, by a JOIN
// with a predicate (PEGASUS paper, section 2.2).
//
// The program is in program.yaml, the computation in pendulum.go; this file starts the
// processes and says what came of it.
package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

//go:embed program.yaml
var config []byte

const (
	nodes    = 4
	climbers = 8 // on these nodes, as program.yaml says
	bound    = 0.004
)

func main() {
	url := flag.String("url", "", "`URL` of the server: be a node (default: start the server and the nodes)")
	name := flag.String("name", "", "`NAME` of the node")
	seed := flag.Uint64("seed", 1, "of the places to climb from")
	flag.Parse()
	log.SetFlags(0)
	run := func() error { return lead(*seed) }
	if *url != "" {
		run = func() error { return node(*url, *name, *seed) }
	}
	if err := run(); err != nil {
		log.Fatalf("search: %v", err)
	}
}

// found is what a climber hands over.
type found struct {
	parameters
	Error float64
	By    string
}

// told is what a node prints, a line for each climber that has ended.
type told struct {
	Climber string
	Climbs  int
	Stopped bool // inside its region, by a cancellation; else it has found something
}

// node is a process that runs blocks, two at a time, until its standard input is
// closed.
func node(url, name string, seed uint64) error {
	out := json.NewEncoder(os.Stdout)
	var mu sync.Mutex // of out
	n, err := agent.JoinNode(context.Background(), url, agent.NodeConfig{Group: "climbers", Name: name, Processors: climbers / nodes},
		agent.Block("climb", func(ctx context.Context, r *agent.Run, in struct{ Bound float64 }) (found, error) {
			best, climbs, err := search(ctx, r, seed, in.Bound)
			_, stopped := errors.AsType[*agent.Canceled](err)
			mu.Lock()
			defer mu.Unlock()
			return best, errors.Join(err, out.Encode(told{r.Processor(), climbs, stopped}))
		}),
		agent.Block("choose", func(_ context.Context, _ *agent.Run, all []*found) (*found, error) {
			var best *found
			for _, f := range all { // Null for those that were stopped.
				if f != nil && (best == nil || f.Error < best.Error) {
					best = f
				}
			}
			if best == nil {
				return nil, errors.New("the JOIN has passed, and nobody has found anything")
			}
			return best, nil
		}))
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return n.Close()
}

// search climbs again and again, until it has found what is good enough or is
// cancelled.
func search(ctx context.Context, r *agent.Run, seed uint64, enough float64) (best found, climbs int, err error) {
	random := rand.New(rand.NewPCG(seed, uint64(r.Replicas()[0]))) //nolint:gosec // It is to be repeatable.
	best = found{Error: math.Inf(1), By: r.Processor()}
	for ; best.Error >= enough; climbs++ {
		p, e := climb(random, func() bool { return ctx.Err() != nil })
		if ctx.Err() != nil {
			return best, climbs, context.Cause(ctx)
		}
		if e < best.Error {
			best.parameters, best.Error = p, e
			if err := r.Set(struct{ Error float64 }{e}); err != nil {
				return best, climbs, err
			}
		}
	}
	return best, climbs, nil
}

// lead runs the program on child processes and gives the verdict.
func lead(seed uint64) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	server, err := embedded.Start(embedded.Options{})
	if err != nil {
		return err
	}
	defer server.Close()
	cfg, err := synchronizer.ParseProgram("program.yaml", config)
	if err != nil {
		return err
	}
	w := watch{finished: make(chan struct{})}
	s, err := synchronizer.Start(ctx, server.URL(), cfg, synchronizer.Options{Observe: w.observe})
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // The program has ended, or failed for another reason.
	var c crew
	defer c.close()
	for i := range nodes {
		if err := c.start("-url", server.URL(), "-name", "n"+strconv.Itoa(i), "-seed", strconv.FormatUint(seed, 10)); err != nil {
			return err
		}
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.Done():
		return s.Err()
	case <-w.finished:
	}
	c.close() // So that all lines are there.
	return w.verdict(c.lines)
}

// watch keeps what the synchronizer tells of the program.
type watch struct {
	finished  chan struct{}
	end       monitor.ProgramEvent
	join      monitor.ProgramEvent
	cancelled int // climbers
}

func (w *watch) observe(e monitor.Event) {
	p, ok := e.(monitor.ProgramEvent)
	switch {
	case !ok:
	case p.Kind == monitor.ProgramPass:
		w.join = p
	case p.Kind == monitor.ProgramEnd && p.Outcome == program.Canceled && p.Name == "climb":
		w.cancelled++
	case p.Kind == monitor.ProgramFinish:
		w.end = p
		close(w.finished)
	}
}

// verdict compares what was found with what one process makes of it, and what the
// synchronizer knows of the others with what they know themselves.
func (w *watch) verdict(lines []told) error {
	if w.end.Outcome != program.Done {
		return fmt.Errorf("the program did not end well: %s", w.end.Reason)
	}
	var f found
	if err := json.Unmarshal([]byte(w.end.Result), &f); err != nil {
		return err
	}
	if alone := distance(f.parameters); alone != f.Error || alone >= bound {
		return fmt.Errorf("%s has found an error of %v; one process finds %v there, to be below %v", f.By, f.Error, alone, bound)
	}
	stopped, climbs := 0, 0
	for _, l := range lines {
		climbs += l.Climbs
		if l.Stopped {
			stopped++
		}
	}
	// Who has found nothing was cancelled, and most of them while they climbed; so were those
	// that found something at that moment.
	if hits := len(lines) - stopped; len(lines) > climbers || w.cancelled < climbers-hits || w.cancelled >= climbers {
		return fmt.Errorf("%d climbers have ended, %d of them say that they were stopped, and the synchronizer says %d of %d", len(lines), stopped, w.cancelled, climbers)
	}
	fmt.Printf("%s has found pull %.4f, drag %.4f, start %.4f after %d climbs of all\n", f.By, f.Pull, f.Drag, f.Start, climbs)
	fmt.Printf("ok: error %.6f, below %v, and the same in one process; by decision %s %d others of %d climbers were stopped inside their regions\n",
		f.Error, bound, w.join.Decision, stopped, climbers)
	return nil
}

// crew is the child processes, and what they have printed.
type crew struct {
	lines   []told
	mu      sync.Mutex // of lines
	stdins  []io.Closer
	readers sync.WaitGroup
	cmds    []*exec.Cmd
}

// start runs this program once more.
func (c *crew) start(args ...string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(exe, args...) //nolint:gosec,noctx // It is this program, and close ends it.
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	c.stdins, c.cmds = append(c.stdins, in), append(c.cmds, cmd)
	c.readers.Go(func() {
		for text := bufio.NewScanner(out); text.Scan(); {
			var l told
			if json.Unmarshal(text.Bytes(), &l) == nil {
				c.mu.Lock()
				c.lines = append(c.lines, l)
				c.mu.Unlock()
			}
		}
	})
	return nil
}

// close lets the processes end, and makes those end that do not.
func (c *crew) close() {
	for _, in := range c.stdins {
		_ = in.Close()
	}
	kill := time.AfterFunc(5*time.Second, func() {
		for _, cmd := range c.cmds {
			_ = cmd.Process.Kill()
		}
	})
	defer kill.Stop()
	c.readers.Wait()
	for _, cmd := range c.cmds {
		_ = cmd.Wait()
	}
	c.stdins, c.cmds = nil, nil
}
