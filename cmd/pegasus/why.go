package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
)

const whyHelp = `why explains one predicate of a run: its value now, part by part; the missing
conditions, with the member and the time since when; and the last decision with the
states that held together, drawn as intervals on one axis: = is certain, - lies within
the bounds of the clocks, + ends a state that was still open, and < and > mark a state
that continues outside. The name of a predicate with by stands for all its groups.
--svg draws the same decision as a picture.

` + liveHelp + `

Exit codes: 0 told, 1 nobody answers or has such a predicate, 2 wrong usage.`

const whyExample = `  pegasus why all-idle
  pegasus why all-idle --nats nats://127.0.0.1:4222 --tenant blue
  pegasus why all-idle --svg all-idle.svg
  pegasus why all-idle --json | jq .missing`

func newWhy() *cobra.Command {
	var f liveFlags
	var svg string
	cmd := &cobra.Command{
		Use:     "why PREDICATE",
		Short:   "Explain why a predicate fired, or does not",
		Long:    whyHelp,
		Example: whyExample,
		Args: cobra.MatchAll(
			oneArgument("why needs the name of a predicate: pegasus why all-idle; pegasus status lists them", "why takes one predicate"),
			func(_ *cobra.Command, args []string) error { return wire.CheckToken("predicate", args[0]) },
		),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := answers[monitor.Explanation](cmd, &f, wire.VerbWhy, args[0])
			list := ofGroups(all)
			if err = printAnswers(cmd, &f, list, show.Why, err); err == nil && svg != "" {
				err = drawWhy(svg, list)
			}
			return err
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&svg, "svg", "", "draw the last decision into `FILE`")
	return cmd
}

// ofGroups has an explanation for each group of members, in place of a single one for all groups.
func ofGroups(all []*monitor.Explanation) (list []*monitor.Explanation) {
	for _, e := range all {
		if len(e.Groups) == 0 {
			list = append(list, e)
		}
		for i := range e.Groups {
			list = append(list, &e.Groups[i])
		}
	}
	return list
}

// drawWhy writes the picture of the only explanation.
func drawWhy(file string, list []*monitor.Explanation) error {
	if len(list) > 1 {
		names := make([]string, len(list))
		for i, e := range list {
			names[i] = e.Name + " of " + e.Synchronizer
		}
		return fail(fmt.Errorf("--svg: one predicate fits a picture, and %d answer, %s: name a single group, or give --synchronizer", len(list), strings.Join(names, ", ")))
	}
	picture, err := show.WhySVG(list[0])
	if err != nil {
		return fail(fmt.Errorf("--svg: %w", err))
	}
	if err := os.WriteFile(file, []byte(picture), 0o600); err != nil {
		return fail(fmt.Errorf("--svg: %w: give the path of a file that can be written", err))
	}
	return nil
}
