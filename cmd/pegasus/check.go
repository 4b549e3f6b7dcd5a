package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/internal/yamlconf"
	"github.com/gopegasus/pegasus/synchronizer"
)

const checkHelp = `check reads configuration files as run does and tells every fault of each on
stderr, with line, column and a caret. For a good file it prints one line. What
can be run and is likely a mistake is told as a warning, and what is better
written in another way is noted.

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
			tell := checkText
			if asJSON {
				tell = checkJSON
			}
			return check(cmd, files, tell, strict)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&asJSON, "json", false, "print one JSON object a file")
	f.BoolVar(&strict, "strict", false, "end with exit code 3 if there are warnings")
	return cmd
}

// checkResult is what the check of one file came to.
type checkResult struct {
	file     string
	err      error
	levels   []synchronizer.Level
	warnings []synchronizer.Warning
	notes    []synchronizer.Warning
}

// check looks at all files even if the first is refused.
func check(cmd *cobra.Command, files []string, tell func(*cobra.Command, *checkResult) error, strict bool) error {
	warned, refused := false, false
	for _, file := range files {
		c := checkResult{file: file}
		var cfg *synchronizer.Config
		if cfg, c.err = synchronizer.LoadConfig(file); c.err == nil {
			c.levels, c.warnings, c.notes = cfg.Levels(), cfg.Warnings(), cfg.Notes()
		}
		refused = refused || c.err != nil
		warned = warned || len(c.warnings) > 0
		if err := tell(cmd, &c); err != nil {
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

func checkText(cmd *cobra.Command, c *checkResult) error {
	tellAdvice(cmd, "warning", c.warnings)
	tellAdvice(cmd, "note", c.notes)
	if c.err != nil {
		_ = told(cmd.ErrOrStderr(), c.err)
		return nil //nolint:nilerr // It has been told.
	}
	more := ""
	if n := len(c.warnings); n > 0 {
		more = "; " + count(n, "warning")
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: ok: %s%s\n", c.file, describe(c.levels), more)
	return err
}

func checkJSON(cmd *cobra.Command, c *checkResult) error {
	encoder := json.NewEncoder(cmd.OutOrStdout())
	encoder.SetEscapeHTML(false)
	return encoder.Encode(struct {
		File     string           `json:"file"`
		OK       bool             `json:"ok"`
		Faults   []yamlconf.Fault `json:"faults"`
		Warnings []yamlconf.Fault `json:"warnings"`
		Notes    []yamlconf.Fault `json:"notes"`
	}{c.file, c.err == nil, faultList(c.file, c.err), append([]yamlconf.Fault{}, c.warnings...), append([]yamlconf.Fault{}, c.notes...)})
}

// describe lists levels as "gsync (group workers, 3 members, 2 predicates)".
func describe(levels []synchronizer.Level) string {
	list := make([]string, len(levels))
	for i, l := range levels {
		who := "group " + l.Group + ", " + count(l.Count, "member")
		if l.Group == "" {
			who = count(l.Count, "thread") + " of each member of " + l.Parent
		}
		list[i] = fmt.Sprintf("%s (%s, %s)", l.Name, who, count(len(l.Predicates), "predicate"))
	}
	return strings.Join(list, ", ")
}

// count gives "1 member" or "3 members".
func count[N int | uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
