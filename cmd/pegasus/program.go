package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/synchronizer"
)

const programHelp = `program works on program files: the outer flow of a distributed program, with
the synchronizers whose predicates its switches read. docs/control.md tells what
each construct means.

Exit codes: 0 done, 1 a file is refused or cannot be read, 2 wrong usage.`

func newProgram() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "program",
		Short: "Check, draw and run programs",
		Long:  programHelp,
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("program needs one of its commands: check, graph, run or show")
		},
	}
	cmd.AddCommand(newProgramCheck(), newProgramGraph(), newProgramRun(), newProgramShow())
	return cmd
}

// oneFile wants one program file.
func oneFile(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("%s needs one program file, and these are %d: pegasus %s program.yaml", what, len(args), what)
		}
		return nil
	}
}

const programCheckHelp = `check reads program files and tells every fault of each on stderr, with line,
column and a caret: faults of the synchronizers beside the program; references
that make cycles or whose results may not be there; types that do not fit;
switches without predicates, and predicates that nobody declares; blocks and
processors that nobody declares or uses; constructs that are never reached. For a good
file it prints which blocks have threads, and the thread-level synchronizer above them.

Exit codes: 0 all files are good, 1 a file is refused or cannot be read,
2 wrong usage.`

func newProgramCheck() *cobra.Command {
	return &cobra.Command{
		Use:               "check FILE...",
		Short:             "Check program files",
		Long:              programCheckHelp,
		Example:           "  pegasus program check configs/programs/*.yaml",
		Args:              someArguments("program check needs a program file: pegasus program check program.yaml"),
		ValidArgsFunction: configFiles(),
		RunE: func(cmd *cobra.Command, args []string) error {
			var result error
			for _, path := range args {
				cfg, err := synchronizer.LoadProgram(path)
				if err != nil {
					result = told(cmd.ErrOrStderr(), err)
					continue
				}
				tellAdvice(cmd, "note", cfg.Notes())
				plan := cfg.Program()
				p := plan.Program()
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: ok: %s (%s, %s, %s)\n%s", path, p.Name,
					show.Count(plan.Blocks(), "block instance"), show.Count(len(plan.Predicates()), "predicate"), show.Count(len(p.Processors), "processor"), show.Threads(p)); err != nil {
					return fail(err)
				}
			}
			return result
		},
	}
}

const programGraphHelp = `graph draws the flow of a program. The formats are text (a tree), dot (for
Graphviz), mermaid (a flowchart) and svg (a drawing that needs nothing else).

Exit codes: 0 done, 1 the file is refused or cannot be read, 2 wrong usage.`

// drawings are the formats of graph.
var drawings = map[string]func(*program.Compiled) string{
	"text":    (*program.Compiled).Text,
	"dot":     func(p *program.Compiled) string { return p.Draw().DOT() },
	"mermaid": func(p *program.Compiled) string { return p.Draw().Mermaid() },
	"svg":     func(p *program.Compiled) string { return p.Draw().SVG() },
}

func newProgramGraph() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:               "graph FILE",
		Short:             "Draw a program",
		Long:              programGraphHelp,
		Example:           "  pegasus program graph --format svg program.yaml > program.svg",
		Args:              oneFile("program graph"),
		ValidArgsFunction: configFiles(),
		RunE: func(cmd *cobra.Command, args []string) error {
			draw, ok := drawings[format]
			if !ok {
				return fmt.Errorf("--format %q: use text, dot, mermaid or svg", format)
			}
			src, err := readYAML(args[0])
			if err != nil {
				return told(cmd.ErrOrStderr(), fmt.Errorf("program: %w", err))
			}
			file, err := configfile.ParseProgram(args[0], src) // The program may be unable to run.
			if err != nil {
				return told(cmd.ErrOrStderr(), err)
			}
			_, err = io.WriteString(cmd.OutOrStdout(), draw(file.Plan))
			return fail(err)
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "`FORMAT` of the drawing: text, dot, mermaid or svg")
	return cmd
}
