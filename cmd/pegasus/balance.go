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

	"github.com/gopegasus/pegasus/balance"
	"github.com/gopegasus/pegasus/internal/balancesim"
	"github.com/gopegasus/pegasus/internal/show"
)

const balanceHelp = `balance is about the strategies that decide which load moves to which node.
Its subcommand runs them in a simulator.`

const balanceSimHelp = `sim runs strategies of load balancing on simulated nodes and links and prints
how near they come to the bound of the instance, a time that no strategy can be
below. What decides is the code that synchronizers run.

Without SCENARIO it is 16 nodes of unequal and changing speed with 100
irregular tasks each; a scenario is a YAML file over these defaults. Lists in
--strategy, --alpha, --beta and --gamma give one row for each combination.

Exit codes: 0 done, 1 failure (a file that cannot be read or is refused), 2 wrong
usage.`

const balanceSimExample = `  pegasus balance sim
  pegasus balance sim --nodes 128 --seeds 20 --strategy none,largest,greedy,pegasus
  pegasus balance sim --seeds 20 --alpha 1.5,2,2.5
  pegasus balance sim --groups 4 --beta 0,0.5,1 --gamma 0,0.5,1 --seeds 10
  pegasus balance sim scenario.yaml --svg run.svg --record run.jsonl
  pegasus balance sim --trace run.jsonl --explain`

func newBalance() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "balance",
		Short: "Try strategies of load balancing",
		Long:  balanceHelp,
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return fail(cmd.Help()) },
	}
	cmd.AddCommand(newBalanceSim())
	return cmd
}

// simFlags are the flags of balance sim. A flag of the scenario overrides the file.
type simFlags struct {
	balancesim.Scenario

	seeds              int
	strategies         []string
	alpha, beta, gamma []float64
	trace, record, svg string
	asJSON, explain    bool
}

// ofInstance are the flags that a trace takes the place of.
var ofInstance = []string{"nodes", "tasks", "shape", "groups", "seed", "seeds"}

func newBalanceSim() *cobra.Command {
	f := simFlags{Scenario: balancesim.Default()}
	cmd := &cobra.Command{
		Use:               "sim [SCENARIO]",
		Short:             "Run strategies on simulated nodes and links",
		Long:              balanceSimHelp,
		Example:           balanceSimExample,
		Args:              optionalArgument("balance sim takes one scenario"),
		ValidArgsFunction: configFiles(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.read(args, cmd.Flags()); err != nil {
				return err
			}
			run := balanceSim{flags: &f, stdout: cmd.OutOrStdout()}
			return run.run(cmd.Context())
		},
	}
	d := f.Scenario
	flags := cmd.Flags()
	flags.IntVar(&f.Nodes.Count, "nodes", d.Nodes.Count, "simulate `N` nodes")
	flags.IntVar(&f.Tasks.Count, "tasks", d.Tasks.Count, "simulate `N` tasks (without a scenario 100 for each node)")
	flags.StringVar(&f.Tasks.Shape, "shape", d.Tasks.Shape, "`WORD` for the work of the tasks: "+strings.Join(balancesim.Shapes, ", "))
	flags.StringVar(&f.Tasks.Order, "order", d.Tasks.Order, "`WORD` for the order in which a node takes its tasks: "+strings.Join(balancesim.Orders, ", "))
	flags.IntVar(&f.Tasks.Groups, "groups", 0, "tasks talk in groups of `N` (default they do not)")
	flags.StringVar(&f.Links.Topology, "topology", d.Links.Topology, "`WORD` for the links between nodes: "+strings.Join(balancesim.Topologies, ", "))
	flags.StringVar(&f.Plans.View, "view", d.Plans.View, "plan on a `VIEW`: consistent, or the latest report of each node")
	flags.StringVar(&f.Balance.Waiting, "waiting", d.Balance.Waiting, "count waiting loads by `WORD`: weight, or count as the paper prints it")
	flags.StringSliceVar(&f.strategies, "strategy", []string{d.Balance.Strategy}, "`NAMES` of "+strings.Join(balance.Names, ", ")+"; several with commas")
	flags.Float64SliceVar(&f.alpha, "alpha", []float64{d.Balance.Alpha}, "`NUMBERS` above 1 for pegasus: the thresholds of imbalance; several with commas")
	flags.Float64SliceVar(&f.beta, "beta", []float64{d.Balance.Beta}, "`NUMBERS` from 0 to 1: attraction in the choice of the load; several with commas")
	flags.Float64SliceVar(&f.gamma, "gamma", []float64{d.Balance.Gamma}, "`NUMBERS` from 0 to 1: attraction in the choice of the target; several with commas")
	flags.Uint64Var(&f.Seed, "seed", d.Seed, "the first seed, `N`")
	flags.IntVar(&f.seeds, "seeds", 1, "run `N` seeds and print medians, the worst efficiency, and totals")
	flags.StringVar(&f.trace, "trace", "", "replay the nodes and tasks of `FILE` instead of drawing them")
	flags.StringVar(&f.record, "record", "", "write the nodes and tasks that were drawn to `FILE`")
	flags.StringVar(&f.svg, "svg", "", "draw into `FILE` when each node was busy; for a single run")
	flags.BoolVar(&f.asJSON, "json", false, "print one JSON object for each row")
	for name, value := range map[string]float64{"alpha": d.Balance.Alpha, "beta": d.Balance.Beta, "gamma": d.Balance.Gamma} {
		flags.Lookup(name).DefValue = fmt.Sprint(value) // Not as 1.500000.
	}
	flags.BoolVar(&f.explain, "explain", false, "print each plan that moves or refuses anything; for a single run")
	return cmd
}

// read reads the scenario, if there is one, and puts the flags over it.
func (f *simFlags) read(args []string, flags *pflag.FlagSet) error {
	changed := flags.Changed
	if len(args) == 1 {
		src, err := os.ReadFile(args[0])
		if err != nil {
			return fail(err)
		}
		s, err := balancesim.Parse(args[0], src)
		if err != nil {
			return fail(err)
		}
		given := map[string]string{}
		flags.Visit(func(one *pflag.Flag) {
			if _, list := one.Value.(pflag.SliceValue); !list {
				given[one.Name] = one.Value.String()
			}
		})
		f.Scenario = s
		for name, value := range given {
			if err := flags.Set(name, value); err != nil {
				return err
			}
		}
	} else if !changed("tasks") {
		f.Tasks.Count = 100 * f.Nodes.Count
	}
	if changed("nodes") && len(f.Nodes.Powers) > 0 {
		return errors.New("--nodes: the scenario lists the powers of its nodes: leave one out")
	}
	if f.trace != "" {
		for _, name := range ofInstance {
			if changed(name) {
				return fmt.Errorf("--trace has the nodes and tasks: leave --%s out", name)
			}
		}
	}
	if changed("groups") && f.Tasks.Traffic == 0 {
		f.Tasks.Traffic = 10_000
	}
	if !changed("strategy") {
		f.strategies = []string{f.Balance.Strategy}
	}
	for name, list := range map[string]struct {
		values *[]float64
		file   float64
	}{"alpha": {&f.alpha, f.Balance.Alpha}, "beta": {&f.beta, f.Balance.Beta}, "gamma": {&f.gamma, f.Balance.Gamma}} {
		if !changed(name) {
			*list.values = []float64{list.file}
		}
	}
	return f.check()
}

// check tries every combination before the first runs.
func (f *simFlags) check() error {
	if f.seeds < 1 || f.seeds > 10_000 {
		return fmt.Errorf("--seeds %d: it must be from 1 to 10000", f.seeds)
	}
	rows := f.combinations()
	if len(rows) == 0 {
		return errors.New("--strategy, --alpha, --beta and --gamma each need a value")
	}
	if many := len(rows)*f.seeds > 1; many && (f.svg != "" || f.explain) {
		return errors.New("--svg and --explain are for one run: leave them out, or run one combination and one seed")
	}
	if f.record != "" && (f.trace != "" || f.seeds > 1) {
		return errors.New("--record writes the random choices of a single seed: leave --trace and --seeds out")
	}
	s := f.Scenario
	for _, s.Balance = range rows {
		if list := s.Faults(); len(list) > 0 {
			return fmt.Errorf("%s: %s", list[0].Key, list[0].Message)
		}
	}
	return nil
}

func (f *simFlags) combinations() []balance.Config {
	return balancesim.Combinations(f.Balance, f.strategies, f.alpha, f.beta, f.gamma)
}

// balanceSim is one command.
type balanceSim struct {
	flags  *simFlags
	stdout io.Writer
}

func (b *balanceSim) run(ctx context.Context) error {
	replayed, err := b.replayed()
	if err != nil {
		return fail(err)
	}
	var rows []balancesim.Row
	for _, c := range b.flags.combinations() {
		row := balancesim.Row{Config: c}
		for i := range b.flags.seeds {
			if err := ctx.Err(); err != nil {
				return fail(err)
			}
			s := b.flags.Scenario
			s.Balance, s.Seed = c, b.flags.Seed+uint64(i)
			in := replayed
			if in == nil {
				in = balancesim.Generate(&s)
			}
			r, err := b.one(ctx, in, &s)
			if err != nil {
				return fail(err)
			}
			row.Results = append(row.Results, r)
		}
		rows = append(rows, row)
	}
	text := simTable
	if b.flags.asJSON {
		text = simJSON
	}
	_, err = io.WriteString(b.stdout, text(rows))
	return fail(err)
}

// replayed is the instance of --trace, or nil.
func (b *balanceSim) replayed() (*balancesim.Instance, error) {
	if b.flags.trace == "" {
		return nil, nil //nolint:nilnil // There is none to replay.
	}
	file, err := os.Open(b.flags.trace)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return balancesim.ReadTrace(b.flags.trace, file)
}

// one runs an instance and writes the requested files beside the table.
func (b *balanceSim) one(ctx context.Context, in *balancesim.Instance, s *balancesim.Scenario) (*balancesim.Result, error) {
	if b.flags.record != "" {
		var text strings.Builder
		if err := in.WriteTrace(&text); err != nil {
			return nil, err
		}
		if err := os.WriteFile(b.flags.record, []byte(text.String()), 0o600); err != nil {
			return nil, err
		}
	}
	set := balancesim.Settings{Scenario: s}
	set.Spans = b.flags.svg != ""
	set.Stop = func() error { return context.Cause(ctx) }
	var told error
	if b.flags.explain {
		set.Plan = func(p *balance.Plan) {
			if told == nil {
				_, told = fmt.Fprintln(b.stdout, show.PrintableLines(p.String()))
			}
		}
	}
	r, err := balancesim.Run(in, set)
	if err = errors.Join(err, told); err != nil {
		return nil, err
	}
	if b.flags.svg != "" {
		return r, os.WriteFile(b.flags.svg, []byte(r.SVG(in.Nodes)), 0o600)
	}
	return r, nil
}

// simTable has a line for each combination, below a line of headings.
func simTable(rows []balancesim.Row) string {
	first := rows[0].Results[0]
	head := fmt.Sprintf("%s, %s", show.Count(first.Nodes, "node"), show.Count(first.Tasks, "task"))
	if n := len(rows[0].Results); n > 1 {
		head += fmt.Sprintf("; medians of %d seeds, the worst efficiency, and totals of A-B-A and what follows", n)
	}
	table := [][]string{balancesim.Header()}
	for i := range rows {
		table = append(table, rows[i].Cells())
	}
	return head + "\n" + show.Table(table)
}

// simJSON has an object a line.
func simJSON(rows []balancesim.Row) string {
	var b strings.Builder
	for i := range rows {
		b.WriteString(show.JSONLine(rows[i].Fields()))
	}
	return b.String()
}
