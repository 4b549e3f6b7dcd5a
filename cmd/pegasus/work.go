package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/internal/workcmd"
	"github.com/gopegasus/pegasus/internal/worklog"
	"github.com/gopegasus/pegasus/internal/worksim"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

const workHelp = `work is about the tasks that the members of a group share.
Its subcommands run them in a simulator, and tell how those of a run stand.`

const workSimHelp = `sim runs the distribution of tasks on simulated nodes and a simulated network, and
prints how near the time comes to a bound that no strategy can be below. What
decides is the code that members of a space run.

FILE is a scenario in YAML: the nodes and their speeds, the network, the tasks,
and the section work of a configuration. With --loops it has elastic loops, and
nodes whose owners come and go. docs/cli.md has the keys of both.

Exit codes: 0 done, 1 failure (a file that is refused, work that is not done, or
a result that was recorded twice), 2 wrong usage.`

const workSimExample = `  pegasus work sim farm.yaml
  pegasus work sim farm.yaml --seeds 20
  pegasus work sim farm.yaml --nodes 64 --svg farm.svg
  pegasus work sim farm.yaml --strategy '{kind: chunk, cut: gss}' --json
  pegasus work sim --loops owners.yaml --vary rows=10000,100000 --vary cost=1ms,10ms`

func newWork() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "work",
		Short: "Try how tasks are shared, and see how they stand",
		Long:  workHelp,
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return fail(cmd.Help()) },
	}
	cmd.AddCommand(append(workcmd.New(workcmd.Shell{Fail: fail, Refuse: told, Read: readYAML, Journals: journalFiles}), newWorkSim(), newWorkStatus(), newWorkRemove())...)
	return cmd
}

// workSim is one command.
type workSim struct {
	seed     uint64
	seeds    int
	strategy string
	loops    bool
	vary     []string
	nodes    int
	svg      string
	asJSON   bool
}

func newWorkSim() *cobra.Command {
	var w workSim
	cmd := &cobra.Command{
		Use:               "sim FILE",
		Short:             "Share tasks or loops on simulated nodes",
		Long:              workSimHelp,
		Example:           workSimExample,
		Args:              oneArgument("work sim needs a scenario file", "work sim takes one scenario file"),
		ValidArgsFunction: configFiles(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if w.seeds < 1 || w.seeds > 10_000 {
				return fmt.Errorf("--seeds %d: it must be from 1 to 10000", w.seeds)
			}
			switch {
			case !w.loops && len(w.vary) > 0:
				return errors.New("--vary: only loops vary: add --loops, with a scenario of loops")
			case w.loops && cmd.Flags().Changed("strategy"):
				return errors.New("--strategy: loops have no strategy: leave out --strategy or --loops")
			case w.loops && (cmd.Flags().Changed("nodes") || w.svg != ""):
				return errors.New("--nodes and --svg are of tasks: leave them out, or --loops; --vary nodes=N runs the first N nodes of loops")
			case w.seeds > 1 && w.svg != "":
				return errors.New("--svg is for one run: leave it out, or run one seed")
			case w.loops:
				return w.runLoops(cmd.Context(), args[0], cmd.Flags(), cmd.OutOrStdout())
			}
			return w.run(cmd.Context(), args[0], cmd.Flags(), cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.Uint64Var(&w.seed, "seed", 0, "the first seed, `N`, in place of the scenario's")
	flags.IntVar(&w.seeds, "seeds", 1, "run `N` seeds and print the least, the median and the largest of each figure")
	flags.StringVar(&w.strategy, "strategy", "", "a strategy in `YAML` in place of the scenario's, such as '{kind: chunk, cut: gss}'")
	flags.BoolVar(&w.loops, "loops", false, "FILE is a scenario of elastic loops on nodes whose owners come and go")
	flags.StringArrayVar(&w.vary, "vary", nil, "run loops with each `PARAMETER=VALUE,VALUE` and print a row for each; more such flags: all combinations")
	flags.IntVar(&w.nodes, "nodes", 0, "run `N` nodes in place of the scenario's, with as many tasks and objects for each")
	flags.StringVar(&w.svg, "svg", "", "draw what each node did and when into `FILE`")
	flags.BoolVar(&w.asJSON, "json", false, "print one JSON object for each run")
	return cmd
}

func (w *workSim) run(ctx context.Context, file string, flags *pflag.FlagSet, stdout io.Writer) error {
	src, err := os.ReadFile(file)
	if err != nil {
		return fail(err)
	}
	s, err := worksim.Parse(file, src)
	if err != nil {
		return fail(err)
	}
	if flags.Changed("strategy") {
		if err := s.Strategy("--strategy", w.strategy); err != nil {
			return err
		}
	}
	if flags.Changed("seed") {
		s.Seed = w.seed
	}
	if flags.Changed("nodes") {
		if err := s.Resize(w.nodes); err != nil {
			return fmt.Errorf("--nodes: %w", err)
		}
	}
	var results []*worksim.Result
	for first := s.Seed; len(results) < w.seeds; {
		s.Seed = first + uint64(len(results))
		r, err := worksim.Run(s, func() error { return context.Cause(ctx) })
		if err != nil {
			return fail(err)
		}
		results = append(results, r)
	}
	if w.svg != "" {
		if err := os.WriteFile(w.svg, []byte(results[0].SVG(s.Work.Strategy)), 0o600); err != nil {
			return fail(err)
		}
	}
	var text strings.Builder
	if w.asJSON {
		for _, r := range results {
			text.WriteString(show.JSONLine(r.Fields(s.Work.Strategy)))
		}
	} else {
		r := results[0]
		fmt.Fprintf(&text, "%s, %s, ", show.Count(r.Nodes, "node"), show.Count(r.Tasks, "task"))
		if w.seeds > 1 {
			fmt.Fprintf(&text, "seeds %d to %d\n", r.Seed, s.Seed)
		} else {
			fmt.Fprintf(&text, "%.6g units of work, seed %d\n", r.Work, r.Seed)
		}
		fmt.Fprintf(&text, "strategy: %s\n%s", worksim.StrategyText(s.Work.Strategy), show.Table(worksim.Table(results)))
	}
	if _, err := io.WriteString(stdout, text.String()); err != nil {
		return fail(err)
	}
	return fail(workFaults(results))
}

// runLoops runs a scenario of loops with all combinations of parameters and seeds.
func (w *workSim) runLoops(ctx context.Context, file string, flags *pflag.FlagSet, stdout io.Writer) error {
	src, err := os.ReadFile(file)
	if err != nil {
		return fail(err)
	}
	s, err := worksim.ParseLoops(file, src)
	if err != nil {
		return fail(err)
	}
	if flags.Changed("seed") {
		s.Seed = w.seed
	}
	scenarios, values, err := s.Vary(w.vary)
	if err != nil {
		return fmt.Errorf("--vary: %w", err)
	}
	var results []*worksim.LoopResult
	var ofResults [][]string
	faults := ""
	for i, o := range scenarios {
		for k := range w.seeds {
			o.Seed = s.Seed + uint64(k) //nolint:gosec // Not negative.
			r, err := worksim.RunLoops(o, func() error { return context.Cause(ctx) })
			if err != nil {
				return fail(err)
			}
			results, ofResults = append(results, r), append(ofResults, values[i])
			if len(r.Faults) > 0 && faults == "" {
				faults = fmt.Sprintf("seed %d: %s: this is a fault of Pegasus: please report it with the scenario", r.Seed, strings.Join(r.Faults, "; "))
			}
		}
	}
	var parameters []string
	for _, text := range w.vary {
		parameter, _, _ := strings.Cut(text, "=")
		parameters = append(parameters, strings.ToUpper(parameter))
	}
	var text strings.Builder
	if w.asJSON {
		for i, r := range results {
			fields := r.Fields()
			for k, parameter := range parameters {
				fields["vary_"+strings.ToLower(parameter)] = ofResults[i][k]
			}
			text.WriteString(show.JSONLine(fields))
		}
	} else {
		text.WriteString(show.Table(worksim.LoopTable(parameters, ofResults, results)))
	}
	if _, err := io.WriteString(stdout, text.String()); err != nil {
		return fail(err)
	}
	if faults != "" {
		return fail(errors.New(show.Printable(faults)))
	}
	return nil
}

// workFaults is the error of what must never happen, or nil.
func workFaults(results []*worksim.Result) error {
	for _, r := range results {
		if len(r.Faults) > 0 {
			return errors.New(show.Printable(fmt.Sprintf("seed %d: %s: this is a fault of Pegasus: please report it with the scenario", r.Seed, strings.Join(r.Faults, "; "))))
		}
	}
	return nil
}

const workStatusHelp = `status tells how the tasks of a running group stand: for each member the phase that
it is in, the tasks that it has put and that are open, those that wait and run there,
and who has its tasks. The members themselves are asked; those that do not answer
within a second are named.

` + liveHelp + `

Exit codes: 0 told, 1 no synchronizer or no member answers, 2 wrong usage.`

const workStatusExample = `  pegasus work status
  pegasus work status --nats nats://127.0.0.1:4222 --tenant blue
  pegasus work status --json | jq '.members[] | select(.stuck > 0) | .member'`

func newWorkStatus() *cobra.Command {
	var f liveFlags
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Tell how the tasks of a running group stand",
		Long:    workStatusHelp,
		Example: workStatusExample,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			spaces, err := spacesOf(cmd, &f)
			return printAnswers(cmd, &f, spaces, show.SpaceText, err)
		},
	}
	f.add(cmd)
	return cmd
}

// spacesOf asks the members of each synchronizer's group.
func spacesOf(cmd *cobra.Command, f *liveFlags) (spaces []*show.Space, err error) {
	errs := f.each(cmd, func(ctx context.Context, l *live, p synchronizer.Presence) error {
		var status monitor.Status
		if err := l.asker.Ask(ctx, p, wire.VerbStatus, "", &status); err != nil {
			return err
		}
		reports, silent, err := l.asker.Space(ctx, &status)
		if err == nil {
			spaces = append(spaces, &show.Space{Synchronizer: status.Synchronizer, Group: status.Group, Epoch: status.Epoch, Members: reports, Silent: silent})
		}
		return err
	})
	return spaces, errors.Join(errs...)
}

const workRemoveHelp = `remove deletes the stream of a group whose tasks lie in JetStream, with all tasks and
results in it. It cannot be undone. Members that have it open are named, and it stays:
stop them first. A stream that no group has made is left alone.

` + liveHelp + `

Exit codes: 0 removed, 1 failure, 2 wrong usage.`

const workRemoveExample = `  pegasus work remove pegasus+default+solvers
  pegasus work remove solvers --nats nats://127.0.0.1:4222`

func newWorkRemove() *cobra.Command {
	var f liveFlags
	cmd := &cobra.Command{
		Use:     "remove STREAM",
		Short:   "Delete the stream that the tasks of a group lie in",
		Long:    workRemoveHelp,
		Example: workRemoveExample,
		Args:    oneArgument("work remove needs a stream: pegasus work remove STREAM", "work remove takes one stream"),
		RunE:    func(cmd *cobra.Command, args []string) error { return fail(removeStream(cmd, &f, args[0])) },
	}
	f.add(cmd)
	return cmd
}

// removeStream deletes a stream that no member has open.
func removeStream(cmd *cobra.Command, f *liveFlags, stream string) error {
	ctx := cmd.Context()
	l, err := f.open(ctx, cmd.ErrOrStderr(), bus.Options{})
	if err != nil {
		return err
	}
	defer l.close() //nolint:errcheck // All answers are there.
	all, err := l.asker.Present(ctx)
	if err != nil {
		return err
	}
	for _, p := range all {
		var status monitor.Status
		if err := l.asker.Ask(ctx, p, wire.VerbStatus, "", &status); err != nil {
			return fmt.Errorf("whether the stream is in use cannot be told: %w", err)
		}
		reports, _, err := l.asker.Space(ctx, &status)
		if err != nil {
			continue // Nobody there has opened a space.
		}
		for _, r := range reports {
			if r.Log != nil && r.Log.Stream == stream {
				return fmt.Errorf("stream %s: member %s of group %s has it open: stop the members first", stream, r.Member, status.Group)
			}
		}
	}
	messages, err := worklog.Remove(ctx, l.bus.NATS(), stream)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "stream %s is removed, with %s\n", stream, show.Count(int(messages), "message")) //nolint:gosec // It fits.
	return err
}
