package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/internal/sim"
)

var simHelp = `sim tries the rules of a configuration in simulated time: members that have states
of the declared types, often with the values that the predicates compare with,
and enter and leave the regions that signals go to, a network between them and
their synchronizer, and the faults that the flags ask for. The decisions come from the
code that agents and synchronizers run. Judges that know true time, all true states
and all effects compare each statement with the truth. Nothing is started, no time is
waited for, and the same seed gives the same output.

A predicate that reads memory, prev or a signal of the level above is judged by
the states of its witness alone; any other is computed again from the true states.

The first trial that breaks a promise ends the run. The output has the promise's letter:
` + "  " + strings.Join(sim.Promises, "\n  ") + `

Values are drawn around those that predicates compare with, and around parameters,
their bounds, and just above and below. A predicate that never fires was not tried:
the run names it, and ends with exit code 4 unless --allow-untried is given. Nor are
the predicates of a thread-level synchronizer tried.

Exit codes: 0 no promise was broken, 1 one was, or the file is refused or does not
take a value of --set, 2 wrong usage, 4 no promise was broken, and some predicate
was not tried.`

// Limits of the trials.
const (
	maxTrials       = 1_000_000
	minTrial        = 50 * time.Millisecond
	maxTrialMembers = 1000
)

// trialFlags are the flags of sim.
type trialFlags struct {
	sim.Options

	file, name string
	faults     faultKinds
	set        []string
	untried    bool // is accepted
	json       bool
	try        func(sim.Options, func() error) (*sim.Report, error)
}

// faultKinds is a flag of its own type, so that the help shows --faults[=all].
type faultKinds string

func (k *faultKinds) String() string        { return string(*k) }
func (k *faultKinds) Set(text string) error { *k = faultKinds(text); return nil }
func (k *faultKinds) Type() string          { return "kinds" }

func newSim() *cobra.Command {
	flags := trialFlags{try: sim.Try}
	cmd := &cobra.Command{
		Use:   "sim CONFIG",
		Short: "Try the rules of a configuration under faults",
		Long:  simHelp,
		Example: `  pegasus sim pegasus.yaml
  pegasus sim pegasus.yaml --faults --trials 1000
  pegasus sim pegasus.yaml --faults=drop,crash --seed 17 --time 5s --members 8
  pegasus sim pegasus.yaml --set limit=90 --allow-untried`,
		Args:              oneArgument("sim needs a configuration file: pegasus sim pegasus.yaml --faults", "sim takes one configuration file, and kinds of faults stand behind =, as in --faults=drop,crash"),
		ValidArgsFunction: configFiles(),
		RunE: func(cmd *cobra.Command, args []string) error {
			flags.file = args[0]
			return tryRules(cmd, &flags)
		},
	}
	f := cmd.Flags()
	flags.faults = "none"
	f.Var(&flags.faults, "faults", "``faults: "+strings.Join(sim.FaultNames(), ",")+"; all; or none")
	f.Lookup("faults").NoOptDefVal = "all"
	f.Uint64Var(&flags.Seed, "seed", 1, "`N` is the seed of the first trial; each next trial has the next seed")
	f.IntVar(&flags.Trials, "trials", 100, "run `N` trials")
	f.DurationVar(&flags.Time, "time", 0, "each trial has faults for `DURATION` (default 2s, or more if the configuration has longer times, up to 1m)")
	f.IntVar(&flags.Members, "members", 0, "`N` members take part (default the count of the configuration, or one or two more)")
	f.StringVar(&flags.name, "name", "", "try only this `SYNCHRONIZER` (default all that are not thread-level)")
	f.StringArrayVar(&flags.set, "set", nil, "give a parameter of the configuration a value instead of its default, `NAME=VALUE`; once for each parameter")
	f.BoolVar(&flags.untried, "allow-untried", false, "end with exit code 0 even if some predicate never fired")
	f.BoolVar(&flags.json, "json", false, "print one JSON object for each synchronizer")
	return cmd
}

func tryRules(cmd *cobra.Command, flags *trialFlags) error {
	var err error
	if flags.Faults, err = sim.ParseFaults(string(flags.faults)); err != nil {
		return fmt.Errorf("--faults: %w", err)
	}
	switch {
	case flags.Trials < 1 || flags.Trials > maxTrials:
		return fmt.Errorf("--trials %d: it must be from 1 to %d", flags.Trials, maxTrials)
	case cmd.Flags().Changed("time") && (flags.Time < minTrial || flags.Time > sim.MaxTime):
		return fmt.Errorf("--time %v: it must be from %v to %v", flags.Time, minTrial, sim.MaxTime)
	case cmd.Flags().Changed("members") && (flags.Members < 1 || flags.Members > maxTrialMembers):
		return fmt.Errorf("--members %d: it must be from 1 to %d", flags.Members, maxTrialMembers)
	}
	given, err := assignments(flags.set)
	if err != nil {
		return err
	}
	src, err := readYAML(flags.file)
	if err != nil {
		return fail(err)
	}
	plans, err := configfile.Parse(flags.file, src, given...)
	if err != nil {
		return told(cmd.ErrOrStderr(), err)
	}
	levels, err := flags.choose(plans)
	if err != nil {
		return err
	}
	broken, untried := false, false
	for _, level := range levels {
		o := flags.Options
		o.Level = level
		for _, p := range plans {
			if p.Parent == level.Name {
				o.Threads = p
			}
		}
		r, err := flags.try(o, func() error { return context.Cause(cmd.Context()) })
		if err != nil {
			return fail(err)
		}
		broken, untried = broken || r.Least != nil, untried || len(r.Unfired) > 0
		if err := flags.print(cmd.OutOrStdout(), r); err != nil {
			return fail(err)
		}
	}
	if broken {
		return errTold
	} else if untried && !flags.untried {
		return errUntried
	}
	return nil
}

// choose lists the synchronizers that are tried.
func (f *trialFlags) choose(plans plan.Levels) (levels []*plan.Level, err error) {
	var names []string
	for _, p := range plans {
		if p.Parent == "" {
			names = append(names, p.Name)
		}
		switch {
		case f.name == "" && p.Parent == "" || p.Name == f.name && p.Parent == "":
			levels = append(levels, p)
		case p.Name == f.name:
			return nil, fmt.Errorf("--name %s: it is thread-level, and members are tried as a whole: try %s", f.name, p.Parent)
		}
	}
	if len(levels) == 0 {
		return nil, fmt.Errorf("--name %s: there is no such synchronizer in %s: there are %s", f.name, f.file, strings.Join(names, ", "))
	}
	for _, p := range levels {
		switch least := max(p.Members.Count, p.Members.Min); {
		case f.Members > 0 && f.Members < least:
			return nil, fmt.Errorf("--members %d: %s awaits %d", f.Members, p.Name, least)
		case f.Members > p.Members.Max:
			return nil, fmt.Errorf("--members %d: %s takes %d at most", f.Members, p.Name, p.Members.Max)
		case f.Members == 0 && least > maxTrialMembers:
			return nil, fmt.Errorf("%s awaits %d members, and sim has %d at most", p.Name, least, maxTrialMembers)
		}
	}
	return levels, nil
}

// command repeats a trial.
func (f *trialFlags) command(synchronizer string, o *sim.Options) string {
	var set strings.Builder
	for _, text := range f.set {
		set.WriteString(" --set " + shellQuoted(text))
	}
	return fmt.Sprintf("pegasus sim %s --name %s%s --faults=%s --seed %d --trials 1 --time %v --members %d", f.file, synchronizer, &set, o.Faults, o.Seed, o.Time, o.Members)
}

// shellPlain are words that a shell takes as they are.
var shellPlain = regexp.MustCompile(`^[\w./:,=+-]*$`)

// shellQuoted is a word as a shell takes it.
func shellQuoted(word string) string {
	if shellPlain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func (f *trialFlags) print(out io.Writer, r *sim.Report) error {
	repeat, found := "", ""
	if r.Least != nil {
		repeat, found = f.command(r.Synchronizer, r.Least), f.command(r.Synchronizer, r.Found)
	}
	text := show.Trials(r, f.Seed, repeat, found)
	if f.json {
		text = show.JSONLine(struct {
			*sim.Report

			OK     bool   `json:"ok"`
			Seed   uint64 `json:"seed"`
			Repeat string `json:"repeat,omitempty"` // the command that repeats the broken promise, in the smallest trial
			Found  string `json:"found,omitempty"`  // the same in the trial in which it was found
		}{r, r.Least == nil && (f.untried || len(r.Unfired) == 0), f.Seed, repeat, found})
	}
	_, err := io.WriteString(out, text)
	return err
}
