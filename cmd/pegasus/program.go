package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/internal/configfile"
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
processors that nobody declares or uses; what is never reached. Of a good file it
tells which blocks have threads, and which thread-level synchronizer is above them.

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
					count(plan.Blocks(), "block instance"), count(len(plan.Predicates()), "predicate"), count(len(p.Processors), "processor"), threadsText(p)); err != nil {
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
			file, err := configfile.ParseProgram(args[0], src) // It may be one that cannot be run.
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

// rehearse prints the processors of a plan and what starts on them.
func rehearse(w io.Writer, plan *program.Compiled) error {
	p := plan.Program()
	var b strings.Builder
	fmt.Fprintf(&b, "program %s: %s\n\n", p.Name, count(plan.Blocks(), "block instance"))
	rows := [][]string{{"PROCESSOR", "NODES", "LABELS", "CORES A BLOCK"}}
	for i := range p.Processors {
		q := &p.Processors[i]
		rows = append(rows, []string{q.Name, most(q.Count, "all that fit"), listed(q.Labels), most(q.Cores, "shared")})
	}
	if anywhere(plan) {
		rows = append(rows, []string{"(any)", "all", "-", "shared"})
	}
	r := rehearsal{plan, [][]string{{"BLOCK", "TIMES", "ON", "STARTS", "UNDER"}}}
	r.walk(0, 1, "", "at the start")
	b.WriteString(tabulate(rows) + "\n" + tabulate(r.rows))
	if text := threadsText(p); text != "" {
		b.WriteString("\n" + text)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// threadsText says which blocks have threads, and who is above these: a line each.
func threadsText(p *program.Program) string {
	var text strings.Builder
	for i := range p.Blocks {
		b := &p.Blocks[i]
		if b.Threads == 0 {
			continue
		}
		fmt.Fprintf(&text, "block %s: %s under %s; it runs on Go nodes that have it as an agent.ThreadBlock\n", b.Name, count(b.Threads, "thread"), cmp.Or(b.Synchronizer, "no synchronizer"))
	}
	return text.String()
}

func most(n int, none string) string {
	if n == 0 {
		return none
	}
	return strconv.Itoa(n)
}

func listed(words []string) string { return cmp.Or(strings.Join(words, " "), "-") }

// anywhere reports whether a block names no processor.
func anywhere(plan *program.Compiled) bool {
	for i := range plan.Constructs() {
		if info := plan.Info(i); info.On != nil && info.On.Name == "" {
			return true
		}
	}
	return false
}

type rehearsal struct {
	plan *program.Compiled
	rows [][]string
}

// walk prints the blocks of a construct: how often each starts at a time, under
// which switches, and after what.
func (r *rehearsal) walk(i, times int, when, after string) {
	info := r.plan.Info(i)
	under := func(more string) string {
		if when == "" {
			return more
		}
		return when + ", " + more
	}
	switch info.Kind {
	case program.KindDo:
		name := info.Block.Name
		if info.Name != name {
			name = info.Name + ": " + name
		}
		if info.Block.Threads > 0 {
			name += " (" + count(info.Block.Threads, "thread") + ")"
		}
		starts := after
		if when != "" {
			starts += "; " + when
		}
		r.rows = append(r.rows, []string{name, strconv.Itoa(times), cmp.Or(info.On.Name, "(any)"), starts, listed(info.Async)})
	case program.KindSeq:
		for k, kid := range info.Kids {
			if k > 0 {
				after = "after " + r.name(info.Kids[k-1])
			}
			r.walk(kid, times, when, after)
		}
	case program.KindPar:
		for _, kid := range info.Kids {
			r.walk(kid, times*max(1, info.Times), when, after)
		}
	case program.KindIf, program.KindCase:
		for k, kid := range info.Kids {
			cond := "if " + strings.Join(info.Reads, ", ") + " false"
			if len(info.Reads) > 1 {
				cond = "if none of " + strings.Join(info.Reads, ", ")
			}
			if k < len(info.Reads) {
				cond = "if " + info.Reads[k]
			}
			r.walk(kid, times, under(cond), after)
		}
	case program.KindWhile:
		r.walk(info.Kids[0], times, under("while "+info.Reads[0]), after)
	case program.KindUntil:
		r.walk(info.Kids[0], times, under("until "+info.Reads[0]), after)
	}
	if info.Else >= 0 {
		r.walk(info.Else, times, under("in its place"), r.name(i)+" failed")
	}
}

func (r *rehearsal) name(i int) string {
	info := r.plan.Info(i)
	return cmp.Or(info.Name, "the "+info.Kind.String())
}
