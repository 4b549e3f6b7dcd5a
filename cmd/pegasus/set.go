package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

const setHelp = `set gives parameters of a run new values, all of them or none. The configuration
declares parameters below params, each with its range. Predicates keep their progress
and are judged with the new values at once. The values are recorded in the journal
and shown by status. They stay over reloads, takeovers and, where the run has a
directory --state, restarts. Without arguments set lists the parameters.

` + liveHelp + `

Exit codes: 0 set or listed, 1 refused or nobody answers, 2 wrong usage.`

const setExample = `  pegasus set
  pegasus set limit=90 hold=5s
  pegasus set --reset limit
  pegasus set --synchronizer gsync limit=90`

func newSet() *cobra.Command {
	var f liveFlags
	var reset []string
	cmd := &cobra.Command{
		Use:               "set [NAME=VALUE...]",
		Short:             "Give parameters of a run other values, or list them",
		Long:              setHelp,
		Example:           setExample,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			what := synchronizer.Setting{Values: map[string]string{}, Reset: reset, By: caller()}
			for _, arg := range args {
				name, value, err := assignment(arg)
				if err != nil {
					return err
				}
				if _, twice := what.Values[name]; twice || slices.Contains(reset, name) {
					return fmt.Errorf("%s is given twice: give it one value", name)
				}
				what.Values[name] = value
			}
			if len(what.Values) == 0 && len(reset) == 0 {
				all, err := answers[monitor.Status](cmd, &f, wire.VerbStatus, "")
				return printAnswers(cmd, &f, all, show.Params, err)
			}
			return f.set(cmd, &what)
		},
	}
	f.add(cmd)
	cmd.Flags().StringSliceVar(&reset, "reset", nil, "restore the values of the parameters `NAMES` from the file, or from pegasus run --set")
	return cmd
}

// assignment reads NAME=VALUE.
func assignment(arg string) (name, value string, err error) {
	name, value, ok := strings.Cut(arg, "=")
	if !ok || name == "" {
		return "", "", fmt.Errorf("%q is no assignment: write NAME=VALUE, such as limit=90", arg)
	}
	return strings.TrimPrefix(name, "params."), value, nil
}

// assignments reads the values of --set. A parameter has one value: the last of two would
// hide a mistake.
func assignments(texts []string) (list []synchronizer.Override, err error) {
	for _, text := range texts {
		name, value, err := assignment(text)
		if err != nil {
			return nil, fmt.Errorf("--set %w", err)
		}
		for _, o := range list {
			if o.Param == name {
				return nil, fmt.Errorf("--set %s=%s: %s is given twice, as %q and as %q: give it one value", name, value, name, o.Value, value)
			}
		}
		list = append(list, synchronizer.Set(name, value))
	}
	return list, nil
}

// set asks one synchronizer. With several, --synchronizer says which: half of a change is none.
func (f *liveFlags) set(cmd *cobra.Command, what *synchronizer.Setting) error {
	ctx := cmd.Context()
	l, err := f.open(ctx, cmd.ErrOrStderr(), bus.Options{})
	if err != nil {
		return err
	}
	defer l.close() //nolint:errcheck // The answer is there.
	all, err := l.who(ctx)
	if err != nil {
		return fail(err)
	}
	if len(all) > 1 {
		names := make([]string, len(all))
		for i := range all {
			names[i] = all[i].Synchronizer
		}
		return fail(fmt.Errorf("%d synchronizers run there, %s: say with --synchronizer which of them is meant", len(all), strings.Join(names, ", ")))
	}
	text, err := json.Marshal(what)
	if err != nil {
		return fail(err)
	}
	a := new(synchronizer.Changed)
	if err := l.asker.Ask(ctx, all[0], wire.VerbSet, string(text), a); err != nil {
		return fail(err)
	}
	return printAnswers(cmd, f, []*synchronizer.Changed{a}, changedText, nil)
}

func changedText(a *synchronizer.Changed) string {
	if len(a.Changes) == 0 {
		return a.Synchronizer + ": nothing changes\n"
	}
	return a.Synchronizer + ": " + strings.Join(a.Changes, "\n"+a.Synchronizer+": ") + "\n"
}

// caller names who asks, for people.
func caller() string {
	name, err := "", errors.New("unknown")
	if u, uerr := user.Current(); uerr == nil {
		name, err = u.Username, nil
	}
	if err != nil {
		name = "somebody"
	}
	host, err := os.Hostname()
	if err != nil {
		host = "a host without a name"
	}
	return name + "@" + host
}
