// Integration: a program of four processes that refine an integral side by side
// until their errors are together below a bound, by DO-UNTIL around a PAR (PEGASUS
// paper, section 2.2). With -kills it ends processes on its way: nodes, and the
// synchronizer that runs the program, which continues from its journal.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

//go:embed program.yaml
var config []byte

type flags struct {
	role    string
	url     string
	name    string
	journal string
	kills   int
	slow    time.Duration
	seed    uint64
}

func main() {
	var f flags
	flag.StringVar(&f.role, "role", "", "role of this process: node or synchronizer (default: it starts them)")
	flag.StringVar(&f.url, "url", "", "`URL` of the server, of a node or synchronizer")
	flag.StringVar(&f.name, "name", "", "`NAME` of a node")
	flag.StringVar(&f.journal, "journal", "", "journal `FILE` of a synchronizer, which continues from it if the file exists")
	flag.IntVar(&f.kills, "kills", 0, "end `N` processes while the program runs")
	flag.DurationVar(&f.slow, "slow", 0, "`TIME` that each block takes besides")
	flag.Uint64Var(&f.seed, "seed", 1, "`SEED` of which processes are ended, and when")
	flag.Parse()
	log.SetFlags(0)
	if err := run(&f); err != nil {
		log.Fatalf("integration: %v", err)
	}
}

func run(f *flags) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	switch f.role {
	case "":
		return start(ctx, f)
	case "node":
		return node(ctx, f)
	case "synchronizer":
		return synchronize(ctx, f)
	}
	return fmt.Errorf("-role %s: use node or synchronizer", f.role)
}

// state is what a process tells of the round that it has worked on last.
type state struct {
	Round, Parts int
	Error        float64
}

// ran is the event by which a node tells a run of a block.
const ran = "run"

// node is a process that runs blocks.
func node(ctx context.Context, f *flags) error {
	var now state
	out := json.NewEncoder(os.Stdout)
	// Each run is told before it does anything, so that one that is killed counts.
	begun := func(ctx context.Context, r *agent.Run) error {
		if err := out.Encode(map[string]string{"event": ran, "block": r.Block()}); err != nil {
			return err
		}
		select {
		case <-time.After(f.slow):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	n, err := agent.JoinNode(ctx, f.url, agent.NodeConfig{Group: "parts", Name: f.name, JoinTimeout: time.Hour},
		agent.Block("divide", func(ctx context.Context, r *agent.Run, l limits) (work, error) {
			if err := begun(ctx, r); err != nil {
				return work{}, err
			}
			w := divide(l)
			w.Used = []use{{Block: "divide", Run: r.Number()}}
			return w, nil
		}),
		agent.Block("integrate", func(ctx context.Context, r *agent.Run, w work) (work, error) {
			if err := begun(ctx, r); err != nil {
				return work{}, err
			}
			part := r.Replicas()[0]
			mine := integrate(w, part)
			mine.Used = []use{{"integrate", w.Round, part, r.Number()}}
			if part == 0 { // What came before is handed on once.
				mine.Used = append(mine.Used, w.Used...)
			}
			if now.Round != w.Round {
				now = state{Round: w.Round}
			}
			now.Parts++
			now.Error += mine.Error
			return mine, r.Set(now)
		}),
		agent.Block("refine", func(ctx context.Context, r *agent.Run, done []work) (work, error) {
			if err := begun(ctx, r); err != nil {
				return work{}, err
			}
			w, err := refine(done)
			w.Used = append(w.Used, use{Block: "refine", Round: w.Round, Run: r.Number()})
			return w, err
		}))
	if err != nil {
		return err
	}
	<-ctx.Done()
	return n.Close()
}

// synchronize runs the program, from its beginning or from where its journal ends,
// and prints each event of it as a line of JSON.
func synchronize(ctx context.Context, f *flags) error {
	cfg, err := synchronizer.ParseProgram("program.yaml", config)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(f.journal, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // Each line is written before it counts.
	out := json.NewEncoder(os.Stdout)
	opt := synchronizer.Options{Observe: func(e monitor.Event) {
		if p, ok := e.(monitor.ProgramEvent); ok {
			l := p.Line()
			_ = out.Encode(&l) // A reader that is gone has ended us.
		}
	}}
	if info, err := file.Stat(); err != nil {
		return err
	} else if info.Size() > 0 {
		opt.Resume = file
	} else {
		opt.Journal = file
	}
	s, err := synchronizer.Start(ctx, f.url, cfg, opt)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-s.Done():
	}
	if err := s.Close(); err != nil {
		return err
	}
	return s.Err()
}
