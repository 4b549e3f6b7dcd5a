package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/synchronizer"
)

const watchHelp = `watch shows a run as it happens: the members with their states, the newest
global state, the verdicts, and the results of the signals. On a terminal it fills
the screen; q ends it, p pauses it, tab shows the next synchronizer. Elsewhere,
and with --lines, it prints lines.

Global states are read once a second; events are shown as they happen, and events
left out are counted. Watching costs the run little and changes nothing in it. It
continues while the NATS server or a synchronizer is away.

` + liveHelp + `

Exit codes: 0 ended by q or a signal, 1 nobody answers at the beginning, 2 wrong
usage.`

const watchExample = `  pegasus watch
  pegasus watch --nats nats://127.0.0.1:4222 --tenant blue
  pegasus watch --lines | grep fired
  pegasus watch --json | jq 'select(.event == "fired")'`

func newWatch() *cobra.Command {
	var f liveFlags
	var lines bool
	var shown show.Firings
	cmd := &cobra.Command{
		Use:     "watch",
		Short:   "Show a run as it happens",
		Long:    watchHelp,
		Example: watchExample,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			full := !lines && !f.json && onTerminal(cmd.InOrStdin(), cmd.OutOrStdout())
			return f.watch(cmd, &shown, full)
		},
	}
	f.add(cmd)
	addPredicate(cmd, &shown.Predicates)
	cmd.Flags().BoolVar(&lines, "lines", false, "print lines on a terminal too")
	return cmd
}

// onTerminal reports whether a person can be shown a full screen.
func onTerminal(in io.Reader, out io.Writer) bool {
	return os.Getenv("TERM") != "dumb" && os.Getenv("CI") == "" && isTerminal(in) && isTerminal(out)
}

func (f *liveFlags) watch(cmd *cobra.Command, shown *show.Firings, full bool) error {
	ctx, cancel := context.WithCancel(cmd.Context())
	shown.Verbose = f.json
	defer cancel()
	s := watchSource{shown: shown, feed: newFeed(cmd.OutOrStdout(), changes(rendering(f.json))), mute: map[synchronizer.Presence]bool{}}
	var screen *tea.Program
	if full {
		screen, s.feed = newScreen(cmd.InOrStdin(), cmd.OutOrStdout())
	}
	l, err := f.open(ctx, cmd.ErrOrStderr(), s.options())
	if err != nil {
		return ended(cmd.Context(), err)
	}
	defer l.close() //nolint:errcheck // Nothing is lost by it.
	names, err := s.begin(ctx, l)
	if err != nil {
		return ended(cmd.Context(), fail(err))
	}
	s.feed.begin(show.Watching{URL: l.shown, Tenant: l.tenant, Names: names})
	polled := make(chan error, 1)
	go func() {
		defer cancel()
		polled <- s.pollStatus(ctx)
	}()
	if full {
		err = runScreen(ctx, screen)
	} else {
		select {
		case <-ctx.Done():
		case <-s.feed.done: // The reader of stdout has gone.
		}
	}
	cancel()
	return ended(cmd.Context(), fail(errors.Join(err, <-polled, s.feed.end())))
}

// ended is no fault if a signal has ended the command.
func ended(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// changes renders a status only where its global state is another one than before.
func changes(render func(show.Entry) string) func(show.Entry) string {
	seen := map[string]string{}
	return func(e show.Entry) string {
		if s, ok := e.Event.(show.Standing); ok {
			now := "none"
			if g := s.State; g != nil {
				now = fmt.Sprint(s.Term, g.Epoch, g.Index, g.InForce)
			}
			if seen[e.From] == now {
				return ""
			}
			seen[e.From] = now
		}
		return render(e)
	}
}
