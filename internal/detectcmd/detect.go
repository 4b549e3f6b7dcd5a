// Package detectcmd is the command "pegasus detect": it reads the flags and the trace, has package tracedetect find the global
// states, and prints them.
package detectcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/internal/tracedetect"
	"github.com/gopegasus/pegasus/scgs"
)

const detectHelp = `detect reads a trace, what the participants of a system reported of their local
states, and prints the global states that certainly held, one JSON object a
line, each as soon as it is certain. A line of the trace is one JSON object:

  {"participant":"p1","domain":"h0","mono":51,"earliest":15,"latest":87,"type":"state","seq":1,"state":{"role":"leader"}}

Without FILE, or with -, it reads standard input. Without --members the members
are all participants of the input, which is read twice then (standard input is
kept in a temporary file meanwhile); with --members it streams.

Modalities:
  inst         local states that were held at the same time
  definitely   runs of states in which --where holds overlapped
  possibly     they may have overlapped
  atleast      the runs of any --k members overlapped

Exit codes: 0 done, 1 failure (a line that is no line of a trace or not in its
participant's order, a file that cannot be read), 2 wrong usage.`

const detectExample = `  pegasus detect trace.jsonl
  pegasus detect trace.jsonl --when 'count(members, .role == "leader") > 1' --format text
  pegasus detect trace.jsonl --modality atleast --k 2 --where 'state.role == "leader"' --final
  pegasus detect trace.jsonl --schema role:string --svg trace.svg
  tail -f trace.jsonl | pegasus detect --members p1,p2,p3 --modality possibly --where state.busy`

// detectFlags are the flags of detect.
type detectFlags struct {
	members                        []string
	modality, where, when          string
	schema, format, svg            string
	k                              int
	final, epochs, lenient, stats  bool
	membersGiven, kGiven, hasWhere bool
	fail                           func(error) error
}

// New returns the command. It hands the error of whatever fails with a right command line to fail, which marks it; the
// command returns that.
func New(fail func(error) error) *cobra.Command {
	f := detectFlags{fail: fail}
	cmd := &cobra.Command{
		Use:     "detect [FILE|-]",
		Short:   "Find the global states of a trace",
		Long:    detectHelp,
		Example: detectExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("detect takes one trace, and these are %d: %s", len(args), strings.Join(args, " "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			changed := cmd.Flags().Changed
			f.membersGiven, f.kGiven, f.hasWhere = changed("members"), changed("k"), changed("where")
			file := "-"
			if len(args) == 1 {
				file = args[0]
			}
			return f.run(cmd.Context(), file, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&f.members, "members", nil, "`NAMES` of the members, separated by commas (default every participant of the input)")
	flags.StringVar(&f.modality, "modality", "inst", "`MODALITY` of the global states: inst, definitely, possibly or atleast")
	flags.IntVar(&f.k, "k", 0, "atleast needs `N` members")
	flags.StringVar(&f.where, "where", "", "`EXPR` on a participant's state, such as 'state.role == \"leader\"'")
	flags.StringVar(&f.when, "when", "", "print only the global states on which `EXPR` on members holds")
	flags.StringVar(&f.schema, "schema", "", "`TYPES` of the fields, such as role:string,load:float (default: the types of their first values)")
	flags.BoolVar(&f.final, "final", false, "print each line when all its states have ended, or at the end")
	flags.BoolVar(&f.epochs, "epochs", false, "continue without members that have left, in the next epoch")
	flags.BoolVar(&f.lenient, "lenient", false, "skip refused lines; stderr has their number and the first of them")
	flags.StringVar(&f.format, "format", "json", "`FORMAT` of the lines: json, or text for a table")
	flags.StringVar(&f.svg, "svg", "", "draw the states and the global states into `FILE`")
	flags.BoolVar(&f.stats, "stats", false, "print a summary on stderr")
	for name, words := range map[string][]string{"modality": modalities, "format": formats} {
		if err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(fmt.Sprintf("pegasus: completion of --%s: %v", name, err))
		}
	}
	return cmd
}

var (
	modalities = []string{"inst", "definitely", "possibly", "atleast"}
	formats    = []string{"json", "text"}
)

// run is the whole subcommand: it checks the command line before it reads.
func (f *detectFlags) run(ctx context.Context, file string, stdin io.Reader, stdout, stderr io.Writer) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	d := detection{flags: f, options: o, stdout: stdout, stderr: stderr}
	return d.run(ctx, file, stdin)
}

// options reads the flags. Where the participants are not named the conditions
// are tried for one.
func (f *detectFlags) options() (tracedetect.Options, error) {
	o := tracedetect.Options{K: f.k, Where: f.where, When: f.when, Final: f.final, Epochs: f.epochs}
	for _, check := range []func(*tracedetect.Options) error{f.checkModality, f.checkK, f.checkMembers, f.checkRest} {
		if err := check(&o); err != nil {
			return o, err
		}
	}
	trial := o
	if len(trial.Participants) == 0 {
		trial.Participants = []tracedetect.Participant{{Name: "p1"}}
	}
	if _, err := tracedetect.New(trial, nil); err != nil {
		return o, fmt.Errorf("--%w", err)
	}
	return o, nil
}

func (f *detectFlags) checkModality(o *tracedetect.Options) error {
	switch f.modality {
	case "inst":
		if f.hasWhere {
			return errors.New("--where is the condition of runs of states: use it with --modality definitely, possibly or atleast; --when is for global states")
		}
		return nil
	case "definitely":
		o.Modality = scgs.Definitely
	case "possibly":
		o.Modality = scgs.Possibly
	case "atleast":
	default:
		return fmt.Errorf("--modality %s: it is %s", f.modality, strings.Join(modalities, ", "))
	}
	if strings.TrimSpace(f.where) == "" {
		return fmt.Errorf("--modality %s needs a condition on the states: --where 'state.role == \"leader\"'", f.modality)
	}
	return nil
}

func (f *detectFlags) checkK(*tracedetect.Options) error {
	switch {
	case f.modality != "atleast" && f.kGiven:
		return errors.New("--k says how many members: use it with --modality atleast")
	case f.modality == "atleast" && f.k < 1:
		return errors.New("--modality atleast needs --k N, the number of members, at least 1")
	case f.modality == "atleast" && f.epochs:
		return errors.New("--epochs: --modality atleast waits for no member that has left: leave --epochs out")
	case f.membersGiven && f.k > len(f.members):
		return fmt.Errorf("--k %d is more than the %s of --members", f.k, show.Count(len(f.members), "name"))
	}
	return nil
}

func (f *detectFlags) checkMembers(o *tracedetect.Options) error {
	if !f.membersGiven {
		return nil
	}
	names := slices.Sorted(slices.Values(f.members))
	if len(names) == 0 || names[0] == "" {
		return errors.New("--members has an empty name: give the names of participants, separated by commas")
	}
	for i, name := range names {
		if i > 0 && names[i-1] == name {
			return fmt.Errorf("--members names %s twice", name)
		}
		o.Participants = append(o.Participants, tracedetect.Participant{Name: name})
	}
	return nil
}

func (f *detectFlags) checkRest(o *tracedetect.Options) (err error) {
	if !slices.Contains(formats, f.format) {
		return fmt.Errorf("--format %s: it is %s", f.format, strings.Join(formats, " or "))
	}
	if f.schema != "" {
		if o.Schema, err = tracedetect.ParseSchema(f.schema); err != nil {
			return fmt.Errorf("--%w", err)
		}
	}
	return nil
}
