// Tsp solves travelling salesman problems by branch and bound on several worker
// processes and threads under global-state control, as section 4 of the PEGASUS
// paper describes it. Run it with -h for the flags.
//
// The parent process runs the NATS server, the global synchronizer gsync and the
// coordinator; it starts the workers, which are this program again. Each worker
// process hosts the thread-level synchronizer tsync. All decisions are
// predicates in configs/tsp.yaml. The solver is in bnb, the reader of instances
// in tsplib; package work carries the subtasks and keeps their account. This package ties them together:
//
//	main, flags     the command line
//	lead, spawn     the parent: what it starts and how it ends
//	coordinator     the account of the run: subtasks, tours, lower bound
//	service         the requests of the workers, protocol their form
//	observe         what the synchronizer decided and what became of it
//	worker, thread  the worker process and its threads, handlers their signals
//	tours, bags     bags of subtasks, and how a worker process hands them to its threads
//	strategy        how many subtasks a process gives another one
//	client, conn    the worker's side of the data connection
//	screen, verdict what people and programs read
//	program, blocks the same search as a program, program.yaml, by -program
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/gopegasus/pegasus/examples/tsp/tsplib"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// The exit codes.
const (
	exitGood        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// run is the program.
func run(args []string, stdout, stderr io.Writer) int {
	start := time.Now()
	o, err := parseFlags(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		say(stdout, "%s", usage)
		return exitGood
	case err != nil:
		say(stderr, "tsp: %v\n\n%s", err, usage)
		return exitUsage
	case o.worker:
		return takePart(o, stderr)
	case o.instance == "list":
		return list(stdout)
	}
	ctx, stop := interruptible()
	defer stop()
	out := stdout
	if o.json {
		out = stderr
	}
	sc := newScreen(out, o.verbose, start)
	if o.program {
		return exitCode(nil, leadProgram(ctx, o, sc, start), stderr)
	}
	res, err := lead(ctx, o, sc, start)
	if res != nil {
		err = errors.Join(err, res.print(o, stdout, sc))
	}
	return exitCode(res, err, stderr)
}

// say writes to people; where they cannot be reached there is nobody to tell.
func say(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }

func exitCode(res *result, err error, stderr io.Writer) int {
	if errors.Is(err, errInterrupted) {
		say(stderr, "tsp: interrupted\n")
		return exitInterrupted
	}
	if err != nil {
		say(stderr, "tsp: %v\n", err)
		return exitFailed
	}
	if res != nil && !res.good() {
		return exitFailed
	}
	return exitGood
}

// interruptible is a context that Ctrl-C and SIGTERM end; a second one ends the
// program at once.
func interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signalled, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(signalled, func() {
		stop()
		cancel(errInterrupted)
	})
	return ctx, stop
}

// list prints the built-in instances.
func list(w io.Writer) int {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	say(t, "NAME\tCITIES\tOPTIMUM\tSOURCE\n")
	for _, i := range tsplib.Embedded() {
		say(t, "%s\t%d\t%d\t%s\n", i.Name, i.N, i.Optimum, i.Source)
	}
	if t.Flush() != nil {
		return exitFailed
	}
	return exitGood
}

// takePart is the program with -worker.
func takePart(o *options, stderr io.Writer) int {
	name, child := os.LookupEnv(envName)
	level := slog.LevelError
	if o.verbose {
		level = slog.LevelInfo
	}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	var ctx context.Context
	if child {
		signal.Ignore(os.Interrupt) // It reaches the parent as well, which decides.
		go endWithParent(os.Stdin)
		ctx = context.Background()
	} else {
		var stop func()
		ctx, stop = interruptible()
		defer stop()
		name = outsideName()
	}
	err := promptly(ctx, func() error {
		if o.program {
			return runNode(ctx, o, name, log)
		}
		return findAndWork(ctx, o, name, child, log)
	})
	switch {
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case err != nil:
		say(stderr, "tsp: worker %s: %v\n", name, err)
		return exitFailed
	}
	return exitGood
}

func findAndWork(ctx context.Context, o *options, name string, child bool, log *slog.Logger) error {
	if o.run == "" {
		id, err := discover(ctx, o.nats)
		if err != nil {
			return err
		}
		o.run = id
	}
	return runWorker(ctx, o.nats, o.run, name, child, log)
}

// promptly leaves work behind that does not end soon after its context.
func promptly(ctx context.Context, work func() error) error {
	done := make(chan error, 1)
	go func() { done <- work() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return because(ctx, err)
	case <-time.After(time.Second):
		return context.Cause(ctx)
	}
}

// endWithParent ends this process when its parent does, however it does: the
// pipe it holds is closed then.
func endWithParent(stdin io.Reader) {
	_, _ = io.Copy(io.Discard, stdin)
	os.Exit(exitFailed)
}

// outsideName is a name that no other worker has.
func outsideName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "worker"
	}
	token := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, host)
	return token[:min(len(token), 40)] + "-" + strconv.Itoa(os.Getpid())
}
