package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/internal/workcmd"
	"github.com/gopegasus/pegasus/internal/worklog"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

const workHelp = `work is about the tasks that the members of a group share.
Its subcommands simulate such tasks, and show the tasks of a run.`

func newWork() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "work",
		Short: "Try how tasks are shared, and see how they stand",
		Long:  workHelp,
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return fail(cmd.Help()) },
	}
	cmd.AddCommand(append(workcmd.New(workcmd.Shell{Fail: fail, Refuse: told, Read: readYAML, Journals: journalFiles, Complete: configFiles()}), newWorkStatus(), newWorkRemove())...)
	return cmd
}

const workStatusHelp = `status shows the tasks of a running group: for each member its phase, the open tasks
that it has put, the tasks that wait and run there, and the members that have its
tasks. The members themselves are asked; members that do not answer within a second
are named.

` + liveHelp + `

Exit codes: 0 told, 1 no synchronizer or no member answers, 2 wrong usage.`

const workStatusExample = `  pegasus work status
  pegasus work status --nats nats://127.0.0.1:4222 --tenant blue
  pegasus work status --json | jq '.members[] | select(.stuck > 0) | .member'`

func newWorkStatus() *cobra.Command {
	var f liveFlags
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Tell how the tasks of a running group stand",
		Long:    workStatusHelp,
		Example: workStatusExample,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			spaces, err := spacesOf(cmd, &f)
			return printAnswers(cmd, &f, spaces, show.SpaceText, err)
		},
	}
	f.add(cmd)
	return cmd
}

// spacesOf asks the members of each synchronizer's group.
func spacesOf(cmd *cobra.Command, f *liveFlags) (spaces []*show.Space, err error) {
	errs := f.each(cmd, func(ctx context.Context, l *live, p synchronizer.Presence) error {
		var status monitor.Status
		if err := l.asker.Ask(ctx, p, wire.VerbStatus, "", &status); err != nil {
			return err
		}
		reports, silent, err := l.asker.Space(ctx, &status)
		if err == nil {
			spaces = append(spaces, &show.Space{Synchronizer: status.Synchronizer, Group: status.Group, Epoch: status.Epoch, Members: reports, Silent: silent})
		}
		return err
	})
	return spaces, errors.Join(errs...)
}

const workRemoveHelp = `remove deletes the stream of a group whose tasks lie in JetStream, with all tasks and
results in it. It cannot be undone. Members that have it open are named, and it stays:
stop them first. A stream that no group has made is left alone.

` + liveHelp + `

Exit codes: 0 removed, 1 failure, 2 wrong usage.`

const workRemoveExample = `  pegasus work remove pegasus+default+solvers
  pegasus work remove solvers --nats nats://127.0.0.1:4222`

func newWorkRemove() *cobra.Command {
	var f liveFlags
	cmd := &cobra.Command{
		Use:     "remove STREAM",
		Short:   "Delete the stream that the tasks of a group lie in",
		Long:    workRemoveHelp,
		Example: workRemoveExample,
		Args:    oneArgument("work remove needs a stream: pegasus work remove STREAM", "work remove takes one stream"),
		RunE:    func(cmd *cobra.Command, args []string) error { return fail(removeStream(cmd, &f, args[0])) },
	}
	f.add(cmd)
	return cmd
}

// removeStream deletes a stream that no member has open.
func removeStream(cmd *cobra.Command, f *liveFlags, stream string) error {
	ctx := cmd.Context()
	l, err := f.open(ctx, cmd.ErrOrStderr(), bus.Options{})
	if err != nil {
		return err
	}
	defer l.close() //nolint:errcheck // All answers are there.
	all, err := l.asker.Present(ctx)
	if err != nil {
		return err
	}
	for _, p := range all {
		var status monitor.Status
		if err := l.asker.Ask(ctx, p, wire.VerbStatus, "", &status); err != nil {
			return fmt.Errorf("whether the stream is in use cannot be told: %w", err)
		}
		reports, _, err := l.asker.Space(ctx, &status)
		if err != nil {
			continue // Nobody there has opened a space.
		}
		for _, r := range reports {
			if r.Log != nil && r.Log.Stream == stream {
				return fmt.Errorf("stream %s: member %s of group %s has it open: stop the members first", stream, r.Member, status.Group)
			}
		}
	}
	messages, err := worklog.Remove(ctx, l.bus.NATS(), stream)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "stream %s is removed, with %s\n", stream, show.Count(int(messages), "message")) //nolint:gosec // It fits.
	return err
}
