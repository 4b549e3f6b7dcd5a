package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gopegasus/pegasus/internal/detectcmd"
	"github.com/gopegasus/pegasus/internal/keyscmd"
	"github.com/gopegasus/pegasus/internal/version"
)

const rootHelp = `pegasus watches a group of processes: it builds global states that certainly
held, judges the predicates of a configuration file on each, and signals into
the regions of the processes' code. It shows a run and explains its predicates
during the run. It also finds such global states in traces.

Exit codes: 0 done, 1 failure, 2 wrong usage.`

// Execute runs the command line args, without the program's name, and returns
// the exit code. It ends soon after the context does.
func Execute(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()                         //nolint:contextcheck // Cobra hands ctx to the commands.
	root.SetArgs(append([]string{}, args...)) // Cobra takes nil for os.Args.
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	return report(stderr, cmd, err)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "pegasus",
		Short: "Global states and signals for groups of processes",
		Long:  rootHelp,
		Example: `  pegasus check pegasus.yaml
  pegasus run pegasus.yaml
  pegasus watch
  pegasus why all-idle
  pegasus detect trace.jsonl`,
		Version:           version.Own().String(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().Bool("version", false, "print the version and end") // Declared here, or cobra takes -v for it.
	root.SetFlagErrorFunc(suggestFlag)
	root.AddCommand(newRun(), newStatus(), newWhy(), newWatch(), newUI(), newSet(), newReload(), newReplay())
	root.AddCommand(newCheck(), newTest(), newSim(), newConfig(), newProgram(), newNode(), newBalance(), newWork(), detectcmd.New(fail), newClock(openSources))
	root.AddCommand(newHealth(), keyscmd.New(fail, time.Now), newBench(), newVersion())
	root.AddCommand(newCompletion(), newMan())
	completeFlags(root)
	refuseUnknownTopics(root)
	return root
}

// refuseUnknownTopics has "pegasus help nonsense" fail; cobra's own prints the
// whole help and succeeds.
func refuseUnknownTopics(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil {
		panic(fmt.Sprintf("pegasus: cobra has no help command: %v", err))
	}
	help.Run = nil
	help.RunE = func(_ *cobra.Command, args []string) error {
		about, _, err := root.Find(args)
		if err != nil {
			return err
		}
		return fail(about.Help())
	}
}

// suggestFlag says of which kind the value of a flag is, and adds the flags that an unknown
// one may stand for.
func suggestFlag(cmd *cobra.Command, err error) error {
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return invalidValue(invalid)
	}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return err
	}
	// Cobra compares names of commands only, so flags take their place here.
	names := &cobra.Command{SuggestionsMinimumDistance: 2}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		names.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
	})
	if near := names.SuggestionsFor(unknown.GetSpecifiedName()); len(near) > 0 && len(unknown.GetSpecifiedName()) > 1 {
		return fmt.Errorf("%w; did you mean --%s?", err, strings.Join(near, " or --"))
	}
	return err
}

// invalidValue says it in our words where a flag has one of the usual types.
func invalidValue(err *pflag.InvalidValueError) error {
	kind := ""
	switch err.GetFlag().Value.Type() {
	case "int", "int64", "uint64":
		kind = "a whole number, such as 10"
	case "float64":
		kind = "a number, such as 0.5"
	case "float64Slice":
		kind = "numbers, such as 0.5 or 0.5,0.8"
	case "duration":
		kind = "a duration, such as 300ms or 1m30s"
	case "bool":
		kind = "true or false"
	default:
		return err
	}
	if errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("--%s %s: it is out of range", err.GetFlag().Name, err.GetValue())
	}
	return fmt.Errorf("--%s %q: it must be %s", err.GetFlag().Name, err.GetValue(), kind)
}

// configFiles completes the names of configuration files.
func configFiles() cobra.CompletionFunc {
	return cobra.FixedCompletions([]string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt)
}
