package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/connect"
	"github.com/gopegasus/pegasus/internal/bench"
	"github.com/gopegasus/pegasus/internal/peers"
	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/internal/version"
)

const benchHelp = `bench measures what the framework adds to bare NATS on this machine: legs of both
take turns in one run, in three processes of this program and a NATS server that it
starts. A ratio is the median over the rounds, with the least and the greatest round.
Beside it stands the processor time of each state, message or round trip, summed over
all processes. The command takes about half a minute, at most 45 s unless --rounds or
--leg ask for more. Only the ratios can be compared between machines. No figure
means much while something else keeps this machine busy.

reports_ratio                 states a second of 10 members, judged, one in a message
                              and each over its own connection, over bare messages of
                              that size and over as many connections
reports_one_connection_ratio  the same over bare messages over one connection
batched_ratio                 states a second of 10 members on one connection, in
                              messages that have up to 64 of each of them, over the
                              bare messages of reports_ratio
signal_p50_ratio, p99         from a state to the handler of the signal it causes by
                              way of another process, over a bare round trip
probe_p50_ratio, probe_apart  the same with a second member that says nothing, in the
                              process of the first one and in a third one
thread_signal_us              from a thread's state to the handler in another thread
check_ns, atomic_load_ns      a check of a region with nothing to do; what it may cost
stamp_ns                      a stamp of the clock
allocs_per_report             allocations for one report, without NATS`

const loadHelp = `load starts members in other processes, which report states at a given rate, and a
synchronizer in this process, which judges predicates on every global state. It
prints how many reports were accepted, the age of verdicts when they were printed,
how many states were dropped, and the memory used. With --overload it also prints
how many reports of an overload were dropped, and how long the recovery took.
Without --nats it starts a server of its own; on another server it uses a tenant of
its own.`

const peersHelp = `peers compares Pegasus with controllers that people write by hand, on one job. Ten
worker processes alternate between busy (20 ms) and idle (100 ms). When all of them
are idle at one instant, each of them is to be informed. The controllers are Pegasus,
a latest-value view over bare NATS and over a bucket of NATS KV, and pollers every
100 ms over bare NATS and over the bucket. Each runs without a delay, and with
messages of 3 workers delayed by up to 20 ms. The comparison takes about two minutes.

false firings           the workers were at no time all idle
p50 over nats           the median latency over the one of bare NATS
missed over 5, 20 ms    all were idle for longer than that, and no worker was informed
late firings            the last worker was informed when not all were idle any more
known over              the signal said that the condition was over; Pegasus alone can say it
p50, p99                from the instant at which all were idle to each worker's receipt
cpu                     of all processes for each change of a worker, server included
messages                to the server for each change`

func newBench() *cobra.Command {
	var o bench.Options
	cmd := &cobra.Command{
		Use:     "bench",
		Short:   "Measure this machine against bare NATS",
		Long:    benchHelp,
		Example: "  pegasus bench\n  pegasus bench --json\n  pegasus bench load --members 1000 --rate 20000 --time 20s --predicates 50",
		Args:    noArguments,
	}
	flags := cmd.Flags()
	flags.IntVar(&o.Rounds, "rounds", 9, "each leg takes `N` turns")
	flags.DurationVar(&o.Leg, "leg", 300*time.Millisecond, "each turn takes `DURATION`")
	quick := flags.Bool("quick", false, "turns of 100ms, some 15 s in all, for a first look; not with --leg")
	runBench(cmd, &o.Program, show.Bench, func(ctx context.Context) (*bench.Result, error) {
		if *quick {
			if flags.Changed("leg") {
				return nil, errors.New("--quick and --leg exclude each other: leave out one")
			}
			o.Leg = 100 * time.Millisecond
		}
		switch {
		case o.Rounds < 1 || o.Rounds > 100:
			return nil, fmt.Errorf("--rounds %d: it must be 1 to 100", o.Rounds)
		case o.Leg < 10*time.Millisecond || o.Leg > time.Minute:
			return nil, fmt.Errorf("--leg %v: it must be 10ms to 1m", o.Leg)
		}
		r, err := bench.Run(ctx, o)
		return r, fail(err)
	})
	cmd.AddCommand(newBenchLoad(), newBenchPeers(), newBenchWorker())
	return cmd
}

func newBenchLoad() *cobra.Command {
	var o bench.LoadOptions
	var at connection
	cmd := &cobra.Command{
		Use:     "load",
		Short:   "Put a synchronizer under load",
		Long:    loadHelp,
		Example: "  pegasus bench load --members 1000 --processes 20 --rate 20000 --time 20s --predicates 50\n  pegasus bench load --nats nats://10.0.0.7:4222 --members 100",
		Args:    noArguments,
	}
	flags := cmd.Flags()
	at.add(cmd, "use the NATS server at `URL`, under a new tenant (default: the URL of --context, or a server of its own)", "`NAME` to show to the server (default NATS_USER)")
	flags.IntVar(&o.Members, "members", 100, "run `N` members; the members in a process share a connection")
	flags.IntVar(&o.Processes, "processes", 1, "`N` processes have the members, at most 100")
	flags.IntVar(&o.Rate, "rate", 10_000, "all members together send `N` reports a second")
	flags.DurationVar(&o.Time, "time", 10*time.Second, "measure for `DURATION`, after a second that does not count")
	flags.IntVar(&o.Predicates, "predicates", 10, "judge `N` predicates")
	flags.IntVar(&o.Counts, "counts", 0, "`N` of the predicates are thresholds of the members in a state that half of them are in (default none)")
	flags.IntVar(&o.Least, "least", 0, "the thresholds of --counts need `K` members (default all and one more, which is never reached)")
	flags.IntVar(&o.Overload, "overload", 0, "then send `TIMES` as many reports (default no overload)")
	flags.DurationVar(&o.OverloadTime, "overload-time", 10*time.Second, "the overload takes `DURATION`")
	runBench(cmd, &o.Program, show.Load, func(ctx context.Context) (*bench.LoadResult, error) {
		if at.Settings != (connect.Settings{}) {
			if at.URL == "" && at.Context == "" {
				return nil, errors.New("the credentials are for a server elsewhere: give that with --nats or --context")
			}
			server, err := at.find(connect.FromEnv(), cmd.ErrOrStderr())
			if err != nil {
				return nil, err
			}
			o.URL, o.Connect = server.shown(), at.Settings
		}
		switch {
		case o.Members < 1 || o.Members > 10_000:
			return nil, fmt.Errorf("--members %d: it must be 1 to 10000", o.Members)
		case o.Processes < 1 || o.Processes > min(o.Members, 100):
			return nil, fmt.Errorf("--processes %d: it must be 1 to 100, and at most --members, which is %d", o.Processes, o.Members)
		case o.Rate < 1 || o.Rate > 10_000_000:
			return nil, fmt.Errorf("--rate %d: it must be 1 to 10000000 reports a second", o.Rate)
		case o.Time < 100*time.Millisecond || o.Time > time.Hour:
			return nil, fmt.Errorf("--time %v: it must be 100ms to 1h", o.Time)
		case o.Predicates < 1 || o.Predicates > 200:
			return nil, fmt.Errorf("--predicates %d: it must be 1 to 200", o.Predicates)
		case o.Least < 0 || o.Least > 0 && o.Counts == 0:
			return nil, fmt.Errorf("--least %d: it must be 1 or more, and --counts says how many predicates it is of", o.Least)
		case o.Overload < 0 || o.Overload == 1 || o.Overload > 100:
			return nil, fmt.Errorf("--overload %d: it must be 2 to 100 times the rate, or 0", o.Overload)
		case o.OverloadTime < 100*time.Millisecond || o.OverloadTime > time.Hour:
			return nil, fmt.Errorf("--overload-time %v: it must be 100ms to 1h", o.OverloadTime)
		case o.Counts < 0 || o.Counts >= o.Predicates:
			return nil, fmt.Errorf("--counts %d: it must be 0 or more and below --predicates, which is %d", o.Counts, o.Predicates)
		}
		r, err := bench.Load(ctx, o)
		if err == nil {
			r.Server = o.URL
		}
		return r, fail(err)
	})
	return cmd
}

func newBenchPeers() *cobra.Command {
	var o peers.Options
	cmd := &cobra.Command{
		Use:     "peers",
		Short:   "Compare with controllers that people write by hand",
		Long:    peersHelp,
		Example: "  pegasus bench peers\n  pegasus bench peers --time 1m --json",
		Args:    noArguments,
	}
	flags := cmd.Flags()
	flags.DurationVar(&o.Time, "time", 20*time.Second, "measure each controller for `DURATION`, half of it without a delay")
	flags.Uint64Var(&o.Seed, "seed", 1, "the times of the workers and the delays follow from this `NUMBER`")
	runBench(cmd, &o.Program, show.Peers, func(ctx context.Context) (*peers.Result, error) {
		if o.Time < 200*time.Millisecond || o.Time > 10*time.Minute {
			return nil, fmt.Errorf("--time %v: it must be 200ms to 10m", o.Time)
		}
		o.Command = append(o.Command, "peers")
		r, err := peers.Run(ctx, o)
		return r, fail(err)
	})
	return cmd
}

// runBench has a command measure and print. It sets this to the version and machine of this program.
func runBench[R any](cmd *cobra.Command, this *bench.Program, text func(R) string, measure func(context.Context) (R, error)) {
	asJSON := cmd.Flags().Bool("json", false, "print one JSON object")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		program, err := os.Executable()
		if err != nil {
			return fail(fmt.Errorf("the executable of this program cannot be found to start more processes: %w", err))
		}
		*this = bench.Program{Command: []string{program, "bench", "worker"}, Pegasus: version.Own().Build(), Machine: bench.ThisMachine()}
		r, err := measure(cmd.Context())
		if err != nil {
			return err
		}
		out := cmd.OutOrStdout()
		if *asJSON {
			return fail(json.NewEncoder(out).Encode(r))
		}
		_, err = io.WriteString(out, show.Machine(&this.Machine)+"\n"+cmd.CommandPath()+setFlags(cmd)+"\n\n"+text(r))
		return fail(err)
	}
}

// newBenchWorker is the second process of a measurement, and below it each worker of a comparison. It ends with its input.
func newBenchWorker() *cobra.Command {
	serve := func(work func(context.Context, io.Reader, io.Writer) error) func(*cobra.Command, []string) error {
		return func(cmd *cobra.Command, _ []string) error {
			err := work(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
			if errors.Is(err, context.Canceled) {
				err = nil
			}
			return fail(err)
		}
	}
	cmd := &cobra.Command{Use: "worker", Short: "Be the second process of a measurement", Hidden: true, Args: noArguments, RunE: serve(bench.Worker)}
	cmd.AddCommand(&cobra.Command{Use: "peers", Short: "Be a worker of a comparison", Hidden: true, Args: noArguments, RunE: serve(peers.Worker)})
	return cmd
}
