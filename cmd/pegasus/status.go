package main

import (
	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
)

const statusHelp = `status tells where the synchronizers of a run stand: the epoch and its global
state, the members and their states, the predicates, the memory, the signals by
fate, and the counters.

` + liveHelp + `

Exit codes: 0 told, 1 nobody answers, 2 wrong usage.`

const statusExample = `  pegasus status
  pegasus status --nats nats://127.0.0.1:4222 --tenant blue
  pegasus status --json | jq '.members[] | select(.silent) | .name'`

func newStatus() *cobra.Command {
	var f liveFlags
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Tell where the synchronizers of a run stand",
		Long:    statusHelp,
		Example: statusExample,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := answers[monitor.Status](cmd, &f, wire.VerbStatus, "")
			return printAnswers(cmd, &f, all, show.Status, err)
		},
	}
	f.add(cmd)
	return cmd
}
