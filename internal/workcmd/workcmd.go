// Package workcmd has the commands work plan, work advise and work sim: they read files and print what the packages
// workplan and worksim find.
package workcmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/internal/workplan"
	"github.com/gopegasus/pegasus/internal/yamlconf"
)

// Shell is what the commands have in common with the others of the program.
type Shell struct {
	Fail     func(error) error                             // marks an error of a command that was used rightly
	Refuse   func(stderr io.Writer, why error) error       // prints why a file is refused, and gives the error to return
	Read     func(path string) ([]byte, error)             // reads a file of YAML, up to its limit
	Complete cobra.CompletionFunc                          // completes names of configurations
	Journals func(path string) (files []string, err error) // the journals of the newest run in a directory, or the one file
}

const planHelp = `plan says what the section work of a configuration does before it runs: whether it
can be built for given members and, if not, why; the neighbours of each member, the
paths of tasks, the first split, and the time that it should take by theory. It
warns of slow members that let the others wait, and of rings of links.

It knows members by the names in the file. --members gives other ones, or only how
many. --speeds has the tasks a second of each. The time is for --tasks tasks of
--bytes bytes, where a message takes --cost and --per-byte for each byte. pegasus
work sim tries the same with simulated nodes.

Exit codes: 0 it can be built, 1 it cannot, or the file is refused, 2 wrong usage.`

const planExample = `  pegasus work plan farm.yaml
  pegasus work plan farm.yaml --speeds 24:51:58:100 --tasks 200
  pegasus work plan farm.yaml --members harvey,bugs,thumper --cost 100us --bytes 3200
  pegasus work plan farm.yaml --dot | dot -Tsvg > farm.svg`

// planFlags are the flags of plan.
type planFlags struct {
	members, speeds string
	tasks, bytes    int
	cost, perByte   time.Duration
	svg             string
	dot, json       bool
}

// New returns the commands, for the command work.
func New(sh Shell) []*cobra.Command { return []*cobra.Command{newPlan(sh), newAdvise(sh), newSim(sh)} }

func newPlan(sh Shell) *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:     "plan CONFIG",
		Short:   "Say what a section work does with given members",
		Long:    planHelp,
		Example: planExample,
		Args:    oneFile("plan", "a configuration file: pegasus work plan farm.yaml"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opt, err := f.options()
			if err != nil {
				return err
			}
			return f.run(sh, args[0], opt, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.members, "members", "", "`N` members, or their names with commas between them")
	flags.StringVar(&f.speeds, "speeds", "", "tasks a second of each member, `A:B:C`, in the order of --members, or of their names in the file")
	flags.IntVar(&f.tasks, "tasks", workplan.DefaultTasks, "spread `N` tasks, or calls of each function")
	flags.IntVar(&f.bytes, "bytes", 0, "each task has `N` bytes")
	flags.DurationVar(&f.cost, "cost", 0, "a message takes `DURATION`")
	flags.DurationVar(&f.perByte, "per-byte", 0, "a message takes `DURATION` more for each byte of a task")
	flags.StringVar(&f.svg, "svg", "", "write a drawing to `FILE` as well")
	flags.BoolVar(&f.dot, "dot", false, "print the drawing for Graphviz instead of the text")
	flags.BoolVar(&f.json, "json", false, "print one JSON object for each synchronizer")
	cmd.MarkFlagsMutuallyExclusive("dot", "json")
	return cmd
}

// oneFile refuses other numbers of arguments than one.
func oneFile(command, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("work %s takes %s", command, what)
		}
		return nil
	}
}

// options reads the flags.
func (f *planFlags) options() (*workplan.Options, error) {
	opt := &workplan.Options{
		Tasks: f.tasks, Bytes: float64(f.bytes),
		Cost: workplan.Cost{Message: f.cost.Seconds(), PerByte: f.perByte.Seconds()},
	}
	if n, err := strconv.Atoi(f.members); err == nil {
		if opt.Count = n; n < 1 || n > workplan.MaxMembers {
			return nil, fmt.Errorf("--members %d: it must be from 1 to %d", n, workplan.MaxMembers)
		}
	} else if f.members != "" {
		opt.Names = strings.Split(f.members, ",")
		for i, name := range opt.Names {
			opt.Names[i] = strings.TrimSpace(name)
		}
	}
	if f.speeds != "" {
		for part := range strings.SplitSeq(f.speeds, ":") {
			speed, err := yamlconf.ParseFloat(strings.TrimSpace(part))
			if err != nil {
				return nil, fmt.Errorf("--speeds: %q is no number: write tasks a second with colons between them, such as 24:51:58:100", part)
			}
			opt.Speeds = append(opt.Speeds, speed)
		}
	}
	if f.cost < 0 || f.perByte < 0 {
		return nil, errors.New("--cost and --per-byte: a message takes no time below 0: give 0s or more")
	}
	return opt, nil
}

// refusal is a file that is refused.
type refusal struct {
	File   string           `json:"file"`
	OK     bool             `json:"ok"`
	Faults []yamlconf.Fault `json:"faults"`
}

// run plans for one file and prints what is asked for.
func (f *planFlags) run(sh Shell, file string, opt *workplan.Options, stdout, stderr io.Writer) error {
	src, err := sh.Read(file)
	if err != nil {
		return sh.Fail(err)
	}
	plans, err := workplan.New(file, src, opt)
	if faulty, placed := errors.AsType[*yamlconf.Error](err); placed {
		if f.json {
			if _, err := io.WriteString(stdout, show.JSONLine(refusal{file, false, faulty.Faults})); err != nil {
				return sh.Fail(err)
			}
		}
		return sh.Refuse(stderr, err)
	}
	if err != nil {
		return err // Of the flags.
	}
	if f.svg != "" {
		if len(plans) != 1 {
			return sh.Fail(fmt.Errorf("%s: it has %d sections work, and a drawing shows one: use --dot", file, len(plans)))
		}
		if err := os.WriteFile(filepath.Clean(f.svg), []byte(plans[0].SVG()), 0o600); err != nil {
			return sh.Fail(err)
		}
	}
	var text strings.Builder
	for _, p := range plans {
		switch {
		case f.dot:
			text.WriteString(p.DOT())
		case f.json:
			text.WriteString(show.JSONLine(p))
		default:
			text.WriteString(planText(p, opt))
		}
		for _, warning := range p.Warnings {
			if !f.json {
				_, _ = fmt.Fprintln(stderr, show.Printable("warning: "+warning))
			}
		}
	}
	_, err = io.WriteString(stdout, text.String())
	return sh.Fail(err)
}

// planText is a plan for people.
func planText(p *workplan.Plan, opt *workplan.Options) string {
	var b strings.Builder
	b.WriteString(p.Head() + "\n" + show.Table(p.MemberRows()))
	if rows := p.PathRows(); rows != nil {
		b.WriteString(show.Table(rows))
	}
	b.WriteString(strings.Join(p.WayLines(opt.Cost, opt.Bytes), "\n") + "\n")
	return show.PrintableLines(b.String())
}
