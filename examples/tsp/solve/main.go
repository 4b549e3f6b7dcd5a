// Solve proves instances optimal with the bare solver, in one thread and
// without anything of the product, and prints how long each took and how many
// of them were proven within 0.1, 1, 10 and 60 seconds.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

const usage = `Solve proves travelling salesman instances optimal with the bare solver.

Usage: go run ./examples/tsp/solve [flags] [instance ...]

An instance is a TSPLIB file, a directory of them, random:N:SEED, or the name of
an embedded one; without any, all embedded ones are solved. Published optima are
taken from the INDEX.csv of a directory and from the embedded list.

`

// run is the program.
func run(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("solve", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() {
		fmt.Fprint(stderr, usage) //nolint:errcheck // Nothing is left to tell that to.
		fs.PrintDefaults()
	}
	limit := fs.Duration("cap", time.Minute, "CPU `time` an instance may take")
	most := fs.Int("most", 229, "leave out instances of more `towns`")
	runs := fs.Int("runs", 1, "solve each this many `times` and take the quickest")
	seed := fs.Uint64("seed", 1, "`number` the first tour is made from")
	if err := fs.Parse(args); err != nil {
		if err == flag.ErrHelp {
			return 0
		}
		return 2
	}
	list, err := gather(fs.Args(), *most)
	if err == nil {
		err = table(stdout, list, *limit, max(1, *runs), *seed)
	}
	if err != nil {
		fmt.Fprintln(stderr, "solve:", strings.TrimSpace(err.Error())) //nolint:errcheck // As above.
		return 1
	}
	return 0
}
