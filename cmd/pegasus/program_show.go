package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/internal/show"
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
			return printAnswers(cmd, &f, programs, show.Program, err)
		},
	}
	f.add(cmd)
	return cmd
}
