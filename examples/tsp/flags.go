package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/examples/tsp/bnb"
)

// options are the flags.
type options struct {
	instance  string
	processes int
	threads   int
	nats      string
	run       string
	config    string
	gap       float64
	time      time.Duration
	seed      uint64
	subtasks  string
	strategy  string
	tour      string
	journal   string
	separate  bool
	verbose   bool
	worker    bool
	program   bool
	json      bool
}

// The limits of the flags.
const (
	maxProcesses = 256
	maxThreads   = 256
)

const usage = `tsp finds a shortest round trip (travelling salesman problem) by branch and bound
on several processes, under the control of global states: PEGASUS paper, section 4.

Usage: go run ./examples/tsp [flags]

It starts a NATS server of its own, a synchronizer, a coordinator that keeps the
account of all subtasks, and the worker processes. Package work carries the subtasks.
The predicates in configs/tsp.yaml decide who gets subtasks, who gives some away, who hears of a
better tour, and when the search is over. While it runs it shows the best tour,
the lower bound, the open subtasks, the load of each worker (an estimate of the
work it holds), and the signals that were applied (new best/new subtask/migrate);
it ends with the tour and a verdict.

Examples:
  go run ./examples/tsp                              kroA100 with 3 processes of 2 threads
  go run ./examples/tsp -instance list               the built-in instances
  go run ./examples/tsp -instance berlin52 -processes 2 -threads 1
  go run ./examples/tsp -instance my.tsp -time 60s   a TSPLIB file, at most a minute
  go run ./examples/tsp -instance random:200:7 -gap 0.01
  go run ./examples/tsp -program -instance bays29    as a program
  go run ./examples/tsp -nats nats://10.0.0.5:4222   on a server that is there
  go run ./examples/tsp -worker -nats nats://10.0.0.5:4222
                                                     a worker more, from anywhere

The first line names the run and its NATS server. Ask the run while it lasts:
  pegasus watch --nats URL --tenant RUN
  pegasus why NewSubtask --nats URL --tenant RUN

Flags:
  -instance NAME   built-in name, TSPLIB file, random:N:SEED, or list (default kroA100)
  -processes N     worker processes to start; 0 with -nats waits for others (default 3)
  -threads N       threads of each worker (default 2)
  -nats URL        use this NATS server instead of an embedded one
  -config FILE     predicates to use instead of configs/tsp.yaml
  -gap FRACTION    stop at a tour proven to be within FRACTION of the optimum (default 0)
  -time LIMIT      stop after that time, such as 30s; 0 is no limit (default 0)
  -seed N          of the first tours (default 1)
  -subtasks KIND   cut by required and forbidden edges, or by the first cities as the
                   paper does: edges or prefix (default edges)
  -strategy NAME   how subtasks move: by the signals of the predicates, or each process
                   asks others as a strategy of work has it: receiver, chunk, sender,
                   diffusion, tree, market, field, pegasus or greedy; the last two plan
                   objects, and for subtasks do as receiver (default signals)
  -tour FILE       begin with the tour in a file: the numbers of its cities, from 1, as
                   the tour line of a run has them
  -journal DIR     write DIR/RUN.jsonl: what the coordinator did, an event a line,
                   with the seconds since the start; and for "pegasus replay DIR" a
                   journal with all inputs of the synchronizer
  -separate-clocks let each process take the clock of the others for one it cannot
                   read, as if it ran on a host of its own: states are compared
                   within bounds that the processes measure
  -program         the same search as a program: its flow and its predicates are in
                   examples/tsp/program.yaml, and so is the number of processes; goes
                   with -instance, -seed, -subtasks, -time and -v only; it prints a
                   tour when that is proven, not before
  -v               tell of every decision, epoch and late signal
  -worker          be a worker of a run that is there; needs -nats
  -run ID          of which run, if the server has several
  -json            print the result as one JSON object to stdout, the rest to stderr
  -h               print this

Exit code: 0 proven or within -gap; 1 failure, or -time ran out (the best tour is
printed); 2 wrong usage; 130 interrupted (likewise). "go run" makes them all 1.
The embedded server listens on 127.0.0.1 only, on a random port,
and admits only programs of the same user.
`

// usageError is a wrong use of the flags.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// parseFlags reads the arguments; flag.ErrHelp asks for the usage.
func parseFlags(args []string) (*options, error) {
	o := &options{}
	fs := flag.NewFlagSet("tsp", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&o.instance, "instance", "kroA100", "")
	fs.IntVar(&o.processes, "processes", 3, "")
	fs.IntVar(&o.threads, "threads", 2, "")
	fs.StringVar(&o.nats, "nats", "", "")
	fs.StringVar(&o.run, "run", "", "")
	fs.StringVar(&o.config, "config", "", "")
	fs.Float64Var(&o.gap, "gap", 0, "")
	fs.DurationVar(&o.time, "time", 0, "")
	fs.Uint64Var(&o.seed, "seed", 1, "")
	fs.StringVar(&o.subtasks, "subtasks", bnb.Edges.String(), "")
	fs.StringVar(&o.strategy, "strategy", bySignals, "")
	fs.StringVar(&o.tour, "tour", "", "")
	fs.StringVar(&o.journal, "journal", "", "")
	fs.BoolVar(&o.separate, "separate-clocks", false, "")
	fs.BoolVar(&o.verbose, "v", false, "")
	fs.BoolVar(&o.worker, "worker", false, "")
	fs.BoolVar(&o.program, "program", false, "")
	fs.BoolVar(&o.json, "json", false, "")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, err
		}
		return nil, usageError{err}
	}
	if fs.NArg() > 0 {
		return nil, usageError{fmt.Errorf("unexpected argument %q: every setting is a flag", fs.Arg(0))}
	}
	var set []string
	fs.Visit(func(f *flag.Flag) { set = append(set, f.Name) })
	if err := o.check(set); err != nil {
		return nil, usageError{err}
	}
	return o, nil
}

func (o *options) check(set []string) error {
	goes, decides := set, ""
	switch {
	case o.program && o.worker: // Its nodes are started with what the run was.
		goes, decides = []string{"program", "instance", "seed", "subtasks", "time", "v", "worker", "nats", "run"}, "-program: examples/tsp/program.yaml"
	case o.program:
		goes, decides = []string{"program", "instance", "seed", "subtasks", "time", "v"}, "-program: examples/tsp/program.yaml"
	case o.worker:
		goes, decides = []string{"worker", "nats", "run", "v"}, "-worker: the run"
	}
	for _, name := range set {
		if !slices.Contains(goes, name) {
			return fmt.Errorf("-%s does not go with %s decides that", name, decides)
		}
	}
	least := 1
	if o.nats != "" {
		least = 0
	}
	switch {
	case o.worker && o.nats == "":
		return errors.New("-worker needs -nats URL: the server of the run, as its first line shows it")
	case o.run != "" && !o.worker:
		return errors.New("-run is for workers: add -worker")
	case o.instance == "":
		return errors.New("-instance is empty: name one, or leave it out")
	case o.processes < least || o.processes > maxProcesses:
		return fmt.Errorf("-processes %d: use %d to %d%s", o.processes, least, maxProcesses, map[bool]string{true: "; 0 needs -nats"}[o.processes == 0])
	case o.threads < 1 || o.threads > maxThreads:
		return fmt.Errorf("-threads %d: use 1 to %d", o.threads, maxThreads)
	case o.gap < 0 || math.IsNaN(o.gap) || o.gap > 1:
		return fmt.Errorf("-gap %v: use a fraction from 0 to 1, such as 0.01 for one percent", o.gap)
	case o.time < 0:
		return fmt.Errorf("-time %v: a limit is not negative", o.time)
	}
	if _, err := bnb.ParseKind(o.subtasks); err != nil {
		return fmt.Errorf("-subtasks %q: use edges or prefix", o.subtasks)
	}
	if _, err := newStrategy(o.strategy); err != nil {
		return fmt.Errorf("-strategy %q: use signals or a strategy that needs no keys, such as receiver: %w", o.strategy, err)
	}
	return nil
}
