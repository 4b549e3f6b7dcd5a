package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/connect"
	"github.com/gopegasus/pegasus/internal/procnode"
	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/observe"
)

const nodeHelp = `node makes processors of this machine and joins them to the group of a program:
they run executables as blocks, each block in a process group of its own. The
command of a block is split at blanks; it gets

  - its input as JSON on stdin,
  - file descriptor 3 for states: a JSON object a line, with declared fields,
  - stdout for its result: one JSON value of at most 1 MiB, or nothing,
  - stderr, whose end is printed when the block fails.

Exit code 0 is done, every other one a failure. A block that is cancelled gets
SIGTERM, and SIGKILL after --grace; what it leaves in its process group is killed.
A predicate can cancel it, too, but not activate it: such a signal is refused.
An executable cannot be a block that the program gives threads; that needs a node in
Go with agent.ThreadBlock.

The node waits for the program's synchronizer. When the program has ended, the node
waits for the next program. SIGINT (Ctrl-C) or SIGTERM ends the node: its blocks are
cancelled, and lost to their program.

On Linux the processes of several processors that together offer all cores are kept
to the cores of their processor each; --unbound lets them run on all. --pin does so
with fewer cores, too, and with the threads of the node that serve the processors.

With --observe the node measures the power of the machine, and the share of it that
its blocks and the node can use: docs/observation.md. It fills float fields of these
names in the blocks' state, and begins a new state when a value has moved. A value
that cannot be measured has its default, or is unknown.

Exit codes: 0 ended by a signal, 1 failure, 2 wrong usage.`

const nodeExample = `  pegasus node --nats nats://127.0.0.1:4222 --group processors --name n1 --block resize=./resize.sh
  pegasus node --nats nats://nats.example:4222 --group parts --name n2 --processors 4 --label gpu --block "integrate=./integrate --rule simpson"`

// mostPower is what strategies believe.
const mostPower = 1e100

type nodeFlags struct {
	connection

	cfg      agent.NodeConfig
	blocks   []string
	grace    time.Duration
	patience time.Duration
	observe  bool
	power    float64
}

func newNode() *cobra.Command {
	var f nodeFlags
	cmd := &cobra.Command{
		Use:     "node",
		Short:   "Run executables as blocks of a program",
		Long:    nodeHelp,
		Example: nodeExample,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	f.add(cmd, "`URL` of the NATS server (default NATS_URL, or the URL of --context; required)", "`NAME` to show to the server (default NATS_USER)")
	flags.StringVar(&f.cfg.Group, "group", "processors", "`GROUP` of processors in the file of the program")
	flags.StringVar(&f.cfg.Name, "name", "", "`NAME` of the node, unique in the group (required)")
	flags.StringVar(&f.cfg.Tenant, "tenant", "default", "`NAME` that keeps runs on one server apart")
	flags.IntVar(&f.cfg.Processors, "processors", 1, "`N` blocks run here at once")
	flags.StringSliceVar(&f.cfg.Labels, "label", nil, "`LABEL` by which programs place blocks; any number")
	flags.IntVar(&f.cfg.Cores, "cores", 0, "`N` cores that each processor offers (default: the cores of the machine, divided)")
	flags.BoolVar(&f.cfg.Pin, "pin", false, "keep each processor on cores of its own (Linux)")
	flags.BoolVar(&f.cfg.Unbound, "unbound", false, "let every process run on all cores")
	flags.StringArrayVar(&f.blocks, "block", nil, "`NAME=COMMAND`: a block, and the command that runs it (at least one)")
	flags.DurationVar(&f.grace, "grace", procnode.DefaultGrace, "`TIME` between SIGTERM and SIGKILL")
	flags.DurationVar(&f.patience, "wait", 0, "wait `TIME` at most for the synchronizer of the program (default without limit)")
	flags.BoolVar(&f.observe, "observe", false, "measure this machine, and fill "+strings.Join(observe.Fields(), ", "))
	flags.Float64Var(&f.power, "power", 0, "`UNITS` of work that the machine does in a second (default measured; with --observe)")
	return cmd
}

// unlimited is longer than any node waits.
const unlimited = 10 * 365 * 24 * time.Hour

func (f *nodeFlags) run(cmd *cobra.Command) error {
	server, err := f.find(connect.FromEnv(), cmd.ErrOrStderr())
	switch {
	case err != nil:
		return err
	case server.URL == "" || f.cfg.Name == "":
		return errors.New("node needs --nats URL and --name NAME")
	case len(f.blocks) == 0:
		return errors.New("node needs at least one --block NAME=COMMAND")
	case f.cfg.Pin && f.cfg.Unbound:
		return errors.New("--pin and --unbound exclude each other: leave out one")
	case f.power != 0 && !f.observe:
		return errors.New("--power is for --observe")
	case !(f.power >= 0 && f.power <= mostPower): // Also NaN.
		return fmt.Errorf("--power %v: it is how many units of work the machine does in a second, above 0 and at most %g", f.power, mostPower)
	case f.grace <= 0 || f.patience < 0:
		return errors.New("--grace is more than 0, and --wait is not negative")
	}
	var blocks []agent.BlockCode
	for _, b := range f.blocks {
		name, command, ok := strings.Cut(b, "=")
		if !ok {
			return fmt.Errorf("--block %s: give NAME=COMMAND", b)
		}
		block, err := procnode.Block(name, strings.Fields(command), f.grace)
		if err != nil {
			return fail(err)
		}
		blocks = append(blocks, block)
	}
	if f.cfg.JoinTimeout = f.patience; f.patience == 0 {
		f.cfg.JoinTimeout = unlimited
	}
	f.cfg.Logger = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
	ctx := cmd.Context()
	var observer *observe.Observer
	if f.observe {
		o, err := observe.Start(ctx, observe.Options{Power: f.power, Children: true})
		if err != nil {
			return fail(err)
		}
		defer o.Close() //nolint:errcheck // It only reads.
		f.cfg.Observe, observer = o, o
	}
	f.cfg.NATS = server.options
	n, err := agent.JoinNode(ctx, server.URL, f.cfg, blocks...)
	if err != nil {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return nil
		}
		return fail(server.Explain(err))
	}
	names := n.Processors()
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "node %s on pid %d: %s in group %s: %s\n", f.cfg.Name, os.Getpid(), show.Count(len(names), "processor"), f.cfg.Group, show.Some(names))
	if err == nil && observer != nil {
		err = showReading(cmd.OutOrStdout(), observer)
	}
	if err == nil {
		<-ctx.Done()
	}
	return fail(errors.Join(err, n.Close()))
}

// showReading shows the fields observed at first, and why the others are not.
func showReading(w io.Writer, o *observe.Observer) error {
	r, missing := o.Reading(), o.Missing()
	var known, unknown []string
	for _, name := range observe.Fields() {
		switch v, ok := r.Field(name); {
		case ok:
			known = append(known, fmt.Sprintf("%s %.4g", name, v))
		case missing[name] != "":
			unknown = append(unknown, fmt.Sprintf("; %s is unknown: %s", name, missing[name]))
		}
	}
	_, err := fmt.Fprintf(w, "%s: %s%s\n", show.Count(r.Cores, "core"), strings.Join(known, ", "), strings.Join(unknown, ""))
	return err
}
