package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
)

const programShowHelp = `show tells where a program stands that runs: each block that was started, how
often and what became of it, and where it runs now; and what waits, for a node or for
a verdict.

` + liveHelp + `

Exit codes: 0 told, 1 nobody answers or no program runs there, 2 wrong usage.`

func newProgramShow() *cobra.Command {
	var f liveFlags
	cmd := &cobra.Command{
		Use:     "show",
		Short:   "Tell where the blocks of a program stand",
		Long:    programShowHelp,
		Example: "  pegasus program show --nats nats://127.0.0.1:4222 --tenant blue",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := answers[monitor.Status](cmd, &f, wire.VerbStatus, "")
			var programs []*monitor.ProgramStatus
			for _, s := range all {
				if s.Program != nil {
					programs = append(programs, s.Program)
				}
			}
			if err == nil && len(programs) == 0 {
				err = fail(errors.New("no program runs there: start one with pegasus program run"))
			}
			return show(cmd, &f, programs, programStatusText, err)
		},
	}
	f.add(cmd)
	return cmd
}

func programStatusText(s *monitor.ProgramStatus) string {
	var b strings.Builder
	fmt.Fprintf(&b, "program %s is %s", s.Name, s.Outcome)
	if s.Reason != "" {
		b.WriteString(": " + s.Reason)
	}
	b.WriteString("\n")
	rows := [][]string{{"BLOCK", "STARTS", "DONE", "FAILED", "CANCELLED", "LOST", "NOW", "PATH"}}
	for i := range s.Blocks {
		x := &s.Blocks[i]
		runs := make([]string, len(x.Runs))
		for k, r := range x.Runs {
			if runs[k] = r.Phase + " on " + r.Processor; r.Replica != "" {
				runs[k] = "[" + r.Replica + "] " + runs[k]
			}
		}
		now := "-"
		if len(runs) > 0 {
			now = some(runs)
		}
		row := []string{x.Name}
		for _, n := range []uint64{x.Starts, x.Done, x.Failed, x.Canceled, x.Lost} {
			row = append(row, strconv.FormatUint(n, 10))
		}
		rows = append(rows, append(row, now, x.Path))
	}
	b.WriteString(tabulate(rows))
	if s.LeftOut > 0 {
		fmt.Fprintf(&b, "and %s more\n", count(s.LeftOut, "block"))
	}
	for _, x := range s.Waits {
		name := x.Name
		if x.Replica != "" {
			name += "[" + x.Replica + "]"
		}
		fmt.Fprintf(&b, "%s waits for %s  (%s)\n", name, x.For, x.Path)
	}
	if s.WaitsMore > 0 {
		fmt.Fprintf(&b, "and %d more wait\n", s.WaitsMore)
	}
	return printableLines(b.String())
}
