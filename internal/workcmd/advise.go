package workcmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/internal/workplan"
	"github.com/gopegasus/pegasus/internal/yamlconf"
)

const adviseHelp = `advise reads the journal of a run and says which line of the section work to change,
with the observation and the line to write. What has cost most comes first. It prints that no
line is to be changed if the members had work most of the time, or if it cannot tell.

Members tell the figures that it needs with record: true in the section work. Without
it advise sees only which members had work. Of a directory it takes the journals of the
newest run. --config names the file in which lines are looked up; without it they are
looked up in the configuration in the journal. It needs no server.

Exit codes: 0 told, with advice or without, 1 a journal or the configuration cannot be
read or is refused, 2 wrong usage.`

const adviseExample = `  pegasus run farm.yaml --journal journals
  pegasus work advise journals
  pegasus work advise journals --config farm.yaml --json | jq '.advice[0]'`

func newAdvise(sh Shell) *cobra.Command {
	file, asJSON := "", false
	cmd := &cobra.Command{
		Use:     "advise DIR|FILE",
		Short:   "Say which line to change after a recorded run",
		Long:    adviseHelp,
		Example: adviseExample,
		Args:    oneFile("advise", "a journal, or a directory of them: pegasus work advise journals"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runAdvise(sh, args[0], file, asJSON, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "look up lines in `FILE`, such as a newer one (default the configuration of the journal)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object for each journal")
	return cmd
}

// runAdvise reads journals and prints what to change.
func runAdvise(sh Shell, path, file string, asJSON bool, stdout, stderr io.Writer) error {
	files, err := sh.Journals(path)
	if err != nil {
		return sh.Fail(err)
	}
	var src []byte
	if file != "" {
		if src, err = sh.Read(file); err != nil {
			return sh.Fail(err)
		}
	}
	for _, name := range files {
		a, err := adviseOn(name, file, src)
		if _, placed := errors.AsType[*yamlconf.Error](err); placed {
			return sh.Refuse(stderr, err)
		}
		if err != nil {
			return sh.Fail(fmt.Errorf("%s: %w", name, err))
		}
		text := adviceText(a)
		if asJSON {
			text = show.JSONLine(a)
		}
		if _, err := io.WriteString(stdout, text); err != nil {
			return sh.Fail(err)
		}
	}
	return nil
}

// adviseOn reads one journal.
func adviseOn(name, file string, src []byte) (*workplan.Advised, error) {
	in, err := os.Open(filepath.Clean(name))
	if err != nil {
		return nil, err
	}
	defer in.Close() //nolint:errcheck // Nothing was written.
	return workplan.Read(in, file, src)
}

// adviceText is advice for people.
func adviceText(a *workplan.Advised) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, %.2f s with work", a.Synchronizer, show.Count(a.Members, "member"), a.Seconds)
	if len(a.Advice) == 0 {
		b.WriteString(": no line to change\n")
		if !a.Figures {
			b.WriteString("members told no figures: add record: true to the section work for more\n")
		}
	} else {
		b.WriteString("\n")
	}
	for i := range a.Advice {
		p := &a.Advice[i]
		fmt.Fprintf(&b, "%s:%d:%d: %s: %.0f%% of the members' time is lost here\n  seen: %s\n  change: %s\n", p.File, p.Line, p.Column, p.Path, 100*p.Lost, p.Reason, p.Change)
	}
	return show.PrintableLines(b.String())
}
