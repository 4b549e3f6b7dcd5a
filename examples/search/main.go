// Search looks for the parameters of a pendulum that explain what was measured: eight
// blocks on four processes climb from random places, and when one of them has found
// parameters that are good enough, all others are stopped where they are, by a JOIN
// with a predicate (PEGASUS paper, section 2.2).
//
// The program is in program.yaml, the computation in pendulum.go; this file starts the
// processes and says what came of it.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/examples/nodes"
	"github.com/gopegasus/pegasus/monitor"
)

//go:embed program.yaml
var config []byte

const (
	processes = 4
	climbers  = 8 // on these nodes, as program.yaml says
	bound     = 0.004
)

func main() {
	seed := flag.Uint64("seed", 1, "of the places to climb from")
	nodes.Main("search", func(ctx context.Context) error { return lead(ctx, *seed) },
		func(url, name string) error { return node(url, name, *seed) })
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
	n, err := agent.JoinNode(context.Background(), url, agent.NodeConfig{Group: "climbers", Name: name, Processors: climbers / processes},
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
	nodes.Wait()
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
func lead(ctx context.Context, seed uint64) error {
	var w watch
	var f found
	printed, err := nodes.Run(ctx, config, processes, w.observe, &f, "-seed", strconv.FormatUint(seed, 10))
	if err != nil {
		return err
	}
	var lines []told
	for in := json.NewDecoder(bytes.NewReader(printed)); ; {
		var l told
		if in.Decode(&l) != nil { // The end, or half a line of one that was killed.
			return w.verdict(&f, lines)
		}
		lines = append(lines, l)
	}
}

// watch keeps what the synchronizer tells of the program.
type watch struct {
	join      monitor.ProgramEvent
	cancelled int // climbers
}

func (w *watch) observe(p monitor.ProgramEvent) {
	switch {
	case p.Kind == monitor.ProgramPass:
		w.join = p
	case p.Kind == monitor.ProgramEnd && p.Outcome == program.Canceled && p.Name == "climb":
		w.cancelled++
	}
}

// verdict compares what was found with what one process makes of it, and what the
// synchronizer knows of the others with what they know themselves.
func (w *watch) verdict(f *found, lines []told) error {
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
