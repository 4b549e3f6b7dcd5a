// Solve measures the search for shortest round trips: how long the bare solver takes
// to prove instances optimal in one thread, what global control costs one thread, and
// what two worker processes gain on the bare search. Run it with -h for the flags.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

const usage = `Solve measures the search for shortest round trips (travelling salesman problem).

The bare solver:
  go run ./examples/tsp/solve DIR                    time to proof, one thread

Under global control, as examples/tsp, which it builds:
  go run ./examples/tsp/solve -show cost DIR         one worker process against the bare search
  go run ./examples/tsp/solve -show speed DIR        two against it
  go run ./examples/tsp/solve -show control DIR      proofs by two worker processes

cost and speed give the same good tour to both sides, which take their turns in
every run. A column of good and NOT says whether the figure is as wanted.

Arguments are TSPLIB files, directories of them, random:N:SEED, and names of
embedded instances; without any, all embedded ones are taken. Published optima
come from the INDEX.csv in a directory and from the embedded list.

Flags:
  -show WHAT    one of the above (default proofs)
  -cap LIMIT    time for the proof of an instance (default 1m0s)
  -skip NAMES   leave out these, with commas between them
  -most CITIES   leave out larger instances (default 229)
  -runs N       measure N times and show the least (default 1)
  -seed N       of the first tours (default 1)
`

// options are what the flags say.
type options struct {
	show  string
	skip  string
	limit time.Duration
	most  int
	runs  int
	seed  uint64
}

// The exit codes.
const (
	exitGood   = 0
	exitFailed = 1
	exitUsage  = 2
)

// run is the program.
func run(args []string, stdout, stderr io.Writer) int {
	o, specs, err := parseFlags(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		say(stdout, "%s", usage)
		return exitGood
	case err != nil:
		say(stderr, "solve: %v\n%s", err, usage)
		return exitUsage
	}
	list, err := gather(specs, o.most, o.skip)
	if err == nil {
		say(stdout, "%s/%s, %d processors, %s; best of %d, cap %v; ", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), o.runs, o.limit)
		err = shows[o.show](stdout, list, o)
	}
	if err != nil {
		say(stderr, "solve: %v\n", err)
		return exitFailed
	}
	return exitGood
}

// say writes to people; where they cannot be reached there is nobody to tell.
func say(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }

var shows = map[string]func(io.Writer, []task, options) error{
	"proofs": proofs, "cost": cost.measure, "speed": speed.measure, "control": control,
}

func parseFlags(args []string) (o options, specs []string, err error) {
	fs := flag.NewFlagSet("solve", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&o.show, "show", "proofs", "")
	fs.DurationVar(&o.limit, "cap", time.Minute, "")
	fs.StringVar(&o.skip, "skip", "", "")
	fs.IntVar(&o.most, "most", 229, "")
	fs.IntVar(&o.runs, "runs", 1, "")
	fs.Uint64Var(&o.seed, "seed", 1, "")
	if err := fs.Parse(args); err != nil {
		return o, nil, err
	}
	switch {
	case shows[o.show] == nil:
		return o, nil, fmt.Errorf("-show %q: use proofs, cost, speed or control", o.show)
	case o.limit <= 0:
		return o, nil, fmt.Errorf("-cap %v: use a time above 0, such as 60s", o.limit)
	case o.most < 1:
		return o, nil, fmt.Errorf("-most %d: use a number of cities from 1", o.most)
	case o.runs < 1:
		return o, nil, fmt.Errorf("-runs %d: use a number from 1", o.runs)
	}
	for _, arg := range fs.Args() {
		if strings.HasPrefix(arg, "-") {
			return o, nil, fmt.Errorf("%s stands behind an instance: put flags first", arg)
		}
	}
	return o, fs.Args(), nil
}
