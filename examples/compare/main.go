// Compare is "pegasus bench peers" with two more controllers: etcd, and Redis where a redis-server is on the PATH. It is
// a module of its own, so that Pegasus itself depends on neither of them.
//
//	cd examples/compare && go run .
//
// The comparison takes about three minutes. Package internal/peers brings the load, the delays and the judge.
// The table has the same columns. Both controllers keep the latest state of each worker, as people write them:
//
//   - etcd, one embedded server that does not wait for the disk. A worker puts its state into a key of its own. The
//     controller watches the prefix of these keys, and fires by a put into a key that all workers watch.
//   - redis, a redis-server without persistence. A worker sends SET and PUBLISH in one pipeline. The controller
//     subscribes to the channel, and fires by PUBLISH on another one. The column of messages counts commands.
//
// A call of either client waits for the answer of the server. So each worker and each controller sends in order on a
// goroutine of its own, and the worker does not wait. A delayed answer holds up the next message, unlike with bare NATS.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/internal/bench"
	"github.com/gopegasus/pegasus/internal/peers"
	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/internal/version"
)

// workerArgument has the program be a worker.
const workerArgument = "worker"

// patience is for what takes milliseconds.
const patience = 10 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, in io.Reader, out, help io.Writer) error {
	if len(args) == 1 && args[0] == workerArgument {
		return peers.WorkerWith(ctx, in, out, []peers.Controller{etcdController(), redisController("")})
	}
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	flags.SetOutput(help)
	duration := flags.Duration("time", 20*time.Second, "measure each controller for `DURATION`, half of it without a delay")
	seed := flags.Uint64("seed", 1, "`NUMBER` from which the times of the workers and the delays follow")
	asJSON := flags.Bool("json", false, "print one JSON object")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("argument %q: there are no arguments, only flags; see -help", flags.Arg(0))
	case *duration < 200*time.Millisecond || *duration > 10*time.Minute:
		return fmt.Errorf("-time %v: it must be 200ms to 10m", *duration)
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("executable of this program: not found, and the workers need it: %w", err)
	}
	c := comparison{}
	o := peers.Options{
		Program: bench.Program{Command: []string{program, workerArgument}, Pegasus: version.Own().Build(), Machine: bench.ThisMachine()},
		Time:    *duration, Seed: *seed,
	}
	o.More, c.LeftOut = available()
	if c.Result, err = peers.Run(ctx, o); err != nil {
		return err
	}
	return c.write(out, *asJSON)
}

// available returns the controllers that can run on this machine, and says which are left out.
func available() (more []peers.Controller, leftOut []string) {
	more = []peers.Controller{etcdController()}
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return more, []string{"redis: there is no redis-server on the PATH; install it to compare with Redis"}
	}
	return append(more, redisController(program)), nil
}

// comparison is what the program prints.
type comparison struct {
	*peers.Result

	// LeftOut names each controller that was not run, and why.
	LeftOut []string `json:"left_out,omitempty"`
}

func (c *comparison) write(out io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(c)
	}
	lines := []string{show.Machine(&c.Machine)}
	for _, left := range c.LeftOut {
		lines = append(lines, "left out: "+left)
	}
	_, err := io.WriteString(out, strings.Join(lines, "\n")+"\n\n"+show.Peers(c.Result))
	return err
}
