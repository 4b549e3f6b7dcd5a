package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/internal/yamlconf"
	"github.com/gopegasus/pegasus/synchronizer"
)

const checkHelp = `check reads configuration files as run does and prints every fault of each on
stderr, with line, column and a caret. For a good file it prints one line. A
warning names a likely mistake in a file that can be run. A note names a part
that is better written in another way.

Exit codes: 0 all files are good, 1 a file is refused or cannot be read,
2 wrong usage, 3 there are only warnings, with --strict.`

func newCheck() *cobra.Command {
	var asJSON, strict bool
	cmd := &cobra.Command{
		Use:   "check CONFIG...",
		Short: "Check configuration files",
		Long:  checkHelp,
		Example: `  pegasus check pegasus.yaml
  pegasus check --strict configs/*.yaml`,
		Args:              someArguments("check needs a configuration file: pegasus check pegasus.yaml"),
		ValidArgsFunction: configFiles(),
		RunE: func(cmd *cobra.Command, files []string) error {
			return check(cmd, files, asJSON, strict)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&asJSON, "json", false, "print one JSON object a file on stdout, and nothing on stderr")
	f.BoolVar(&strict, "strict", false, "end with exit code 3 if there are warnings")
	return cmd
}

// check looks at all files even if the first is refused.
func check(cmd *cobra.Command, files []string, asJSON, strict bool) error {
	warned, refused := false, false
	for _, file := range files {
		cfg, err := synchronizer.LoadConfig(file)
		var warnings, notes []synchronizer.Warning
		if err == nil {
			warnings, notes = cfg.Warnings(), cfg.Notes()
		}
		refused, warned = refused || err != nil, warned || len(warnings) > 0
		if asJSON {
			if err := checkJSON(cmd.OutOrStdout(), file, err, warnings, notes); err != nil {
				return fail(err)
			}
			continue
		}
		tellAdvice(cmd, "warning", warnings)
		tellAdvice(cmd, "note", notes)
		if err != nil {
			_ = told(cmd.ErrOrStderr(), err) // The others are checked all the same.
			continue
		}
		more := ""
		if n := len(warnings); n > 0 {
			more = "; " + show.Count(n, "warning")
		}
		if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: ok: %s%s\n", file, describe(cfg.Levels()), more); err != nil {
			return fail(err)
		}
	}
	switch {
	case refused:
		return errTold
	case warned && strict:
		return errWarned
	}
	return nil
}

func tellAdvice(cmd *cobra.Command, what string, list []synchronizer.Warning) {
	for _, w := range list {
		w.Message = what + ": " + w.Message
		_, _ = fmt.Fprintln(cmd.ErrOrStderr(), w.String())
	}
}

func checkJSON(w io.Writer, file string, refused error, warnings, notes []synchronizer.Warning) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(struct {
		File     string           `json:"file"`
		OK       bool             `json:"ok"`
		Faults   []yamlconf.Fault `json:"faults"`
		Warnings []yamlconf.Fault `json:"warnings"`
		Notes    []yamlconf.Fault `json:"notes"`
	}{file, refused == nil, faultList(file, refused), append([]yamlconf.Fault{}, warnings...), append([]yamlconf.Fault{}, notes...)})
}

// describe lists levels as "gsync (group workers, 3 members, 2 predicates)".
func describe(levels []synchronizer.Level) string {
	list := make([]string, len(levels))
	for i, l := range levels {
		who := "group " + l.Group + ", " + show.Count(l.Count, "member")
		if l.Group == "" {
			who = show.Count(l.Count, "thread") + " of each member of " + l.Parent
		}
		what := show.Count(len(l.Predicates), "predicate")
		if l.Work {
			what += ", with end of the section work"
		}
		if len(l.Redacted) > 0 {
			what += "; redacted: " + strings.Join(l.Redacted, ", ")
		}
		list[i] = fmt.Sprintf("%s (%s, %s)", l.Name, who, what)
	}
	return strings.Join(list, ", ")
}
