package workcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/internal/worksim"
)

const simHelp = `sim runs the distribution of tasks on simulated nodes and a simulated network, and
prints how near the time comes to a bound that no strategy can be below. What
decides is the code that members of a space run.

FILE is a scenario in YAML: the nodes and their speeds, the network, the tasks,
and the section work of a configuration. With --loops it has elastic loops, and
nodes whose owners come and go. docs/cli.md has the keys of both.

With --trace it runs the tasks of a real run, whose members wrote the lines with the
option work.Trace. FILE has no tasks and no data then.

Exit codes: 0 done, 1 failure (a file that is refused, work that is not done, or
a result that was recorded twice), 2 wrong usage.`

const simExample = `  pegasus work sim farm.yaml
  pegasus work sim farm.yaml --seeds 20
  pegasus work sim farm.yaml --nodes 64 --svg farm.svg
  pegasus work sim farm.yaml --strategy '{kind: chunk, cut: gss}' --json
  pegasus work sim nodes.yaml --trace tasks.jsonl
  pegasus work sim --loops owners.yaml --vary rows=10000,100000 --vary cost=1ms,10ms`

// simulation is one command.
type simulation struct {
	sh       Shell
	seed     uint64
	seeds    int
	strategy string
	loops    bool
	vary     []string
	nodes    int
	svg      string
	trace    string
	asJSON   bool
}

func newSim(sh Shell) *cobra.Command {
	w := simulation{sh: sh}
	cmd := &cobra.Command{
		Use:               "sim FILE",
		Short:             "Share tasks or loops on simulated nodes",
		Long:              simHelp,
		Example:           simExample,
		Args:              oneFile("sim", "a scenario: pegasus work sim farm.yaml"),
		ValidArgsFunction: sh.Complete,
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
			case w.loops && w.trace != "":
				return errors.New("--trace: a trace has tasks and no loops: leave out --trace or --loops")
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
	flags.StringVar(&w.svg, "svg", "", "draw a lane for each node into `FILE`: when it was busy, waited for data, and was idle")
	flags.StringVar(&w.trace, "trace", "", "run the tasks of a real run, whose members wrote these lines to `FILE`")
	flags.BoolVar(&w.asJSON, "json", false, "print one JSON object for each seed")
	return cmd
}

func (w *simulation) run(ctx context.Context, file string, flags *pflag.FlagSet, stdout io.Writer) error {
	src, err := os.ReadFile(file)
	if err != nil {
		return w.sh.Fail(err)
	}
	var trace *worksim.Trace
	if w.trace != "" {
		lines, err := os.ReadFile(w.trace)
		if err == nil {
			trace, err = worksim.ParseTrace(w.trace, lines)
		}
		if err != nil {
			return w.sh.Fail(err)
		}
	}
	s, err := worksim.ParseTraced(file, src, trace)
	if err != nil {
		return w.sh.Fail(err)
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
			return w.sh.Fail(err)
		}
		results = append(results, r)
	}
	if w.svg != "" {
		if err := os.WriteFile(w.svg, []byte(results[0].SVG(s.Work.Strategy)), 0o600); err != nil {
			return w.sh.Fail(err)
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
		if trace != nil {
			fmt.Fprintf(&text, "trace: the real run took %.3fs, and seed %d takes %.4f of it\n", trace.Took.Seconds(), r.Seed, r.Time.Seconds()/max(trace.Took.Seconds(), 1e-9))
		}
		fmt.Fprintf(&text, "strategy: %s\n%s", worksim.StrategyText(s.Work.Strategy), show.Table(worksim.Table(results)))
	}
	if _, err := io.WriteString(stdout, text.String()); err != nil {
		return w.sh.Fail(err)
	}
	return w.sh.Fail(workFaults(results))
}

// runLoops runs a scenario of loops with all combinations of parameters and seeds.
func (w *simulation) runLoops(ctx context.Context, file string, flags *pflag.FlagSet, stdout io.Writer) error {
	src, err := os.ReadFile(file)
	if err != nil {
		return w.sh.Fail(err)
	}
	s, err := worksim.ParseLoops(file, src)
	if err != nil {
		return w.sh.Fail(err)
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
				return w.sh.Fail(err)
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
		return w.sh.Fail(err)
	}
	if faults != "" {
		return w.sh.Fail(errors.New(show.Printable(faults)))
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
