package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/synchronizer"
)

const checkHelp = `check reads configuration files as run does and tells every fault of each on
stderr, with line, column and a caret. For a good file it prints one line.

Exit codes: 0 all files are good, 1 a file is refused or cannot be read,
2 wrong usage.`

func newCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check CONFIG...",
		Short: "Check configuration files",
		Long:  checkHelp,
		Example: `  pegasus check pegasus.yaml
  pegasus check configs/*.yaml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("check needs a configuration file: pegasus check pegasus.yaml")
			}
			return nil
		},
		ValidArgsFunction: configFiles(),
		RunE:              check,
	}
}

// check looks at all files even if the first is refused.
func check(cmd *cobra.Command, files []string) error {
	var result error
	for _, file := range files {
		cfg, err := synchronizer.LoadConfig(file)
		if err != nil {
			_, _ = fmt.Fprintln(cmd.ErrOrStderr(), strings.TrimSuffix(err.Error(), "\n"))
			result = errTold
			continue
		}
		if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: ok: %s\n", file, describe(cfg.Levels())); err != nil {
			return fail(err)
		}
	}
	return result
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
