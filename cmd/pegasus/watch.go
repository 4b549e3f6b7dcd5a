package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/gopegasus/pegasus/monitor"
)

const watchHelp = `watch shows a run while it goes on: the members with their states, the newest
global state, the verdicts, and what became of the signals. On a terminal it fills
the screen; q ends it, p pauses it, tab goes to the next synchronizer. Elsewhere,
and with --lines, it prints lines.

Global states are looked at once a second; events come as they happen, and what
is left out of them is counted. Watching costs the run little and changes nothing
in it. It goes on while the NATS server or a synchronizer is away.

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
	cmd := &cobra.Command{
		Use:     "watch",
		Short:   "Show a run while it goes on",
		Long:    watchHelp,
		Example: watchExample,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			full := !lines && !f.json && onTerminal(cmd.InOrStdin(), cmd.OutOrStdout())
			return f.watch(cmd, full)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&lines, "lines", false, "print lines on a terminal too")
	return cmd
}

// onTerminal reports whether a person can be shown a full screen.
func onTerminal(in io.Reader, out io.Writer) bool {
	if os.Getenv("TERM") == "dumb" || os.Getenv("CI") != "" {
		return false
	}
	r, ok := in.(*os.File)
	w, also := out.(*os.File)
	return ok && also && term.IsTerminal(int(r.Fd())) && term.IsTerminal(int(w.Fd()))
}

// What watch tells beside events and notices.
type (
	// watching is the first entry.
	watching struct {
		url, tenant string
		names       []string
	}
	// standing is a status whose global state is another one than before.
	standing struct{ *monitor.Status }
)

// String says what is watched.
func (w watching) String() string {
	return fmt.Sprintf("watching %s at %s, tenant %s; Ctrl-C ends it", strings.Join(w.names, ", "), w.url, w.tenant)
}

func (f *liveFlags) watch(cmd *cobra.Command, full bool) error {
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	s := newWatchSource()
	l, err := f.open(ctx, cmd.ErrOrStderr(), s.options())
	if err != nil {
		return ended(cmd.Context(), err)
	}
	defer l.close() //nolint:errcheck // Nothing is lost by it.
	names, err := s.begin(ctx, l)
	if err != nil {
		return ended(cmd.Context(), fail(err))
	}
	polled := make(chan error, 1)
	go func() { polled <- s.poll(ctx) }()
	first := watching{l.shown, l.tenant, names}
	if full {
		err = watchScreen(ctx, s, first, cmd.InOrStdin(), cmd.OutOrStdout())
	} else {
		err = f.watchLines(ctx, s, first, cmd.OutOrStdout(), polled)
	}
	cancel()
	return ended(cmd.Context(), fail(err))
}

// ended is no fault if a signal has ended the command.
func ended(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// watchLines tells what comes, line by line, until the context ends.
func (f *liveFlags) watchLines(ctx context.Context, s *watchSource, first watching, stdout io.Writer, polled <-chan error) error {
	render := text
	if f.json {
		render = object
	}
	out := newFeed(stdout, render)
	out.begin(first)
	seen := map[string]string{}
	for {
		select {
		case <-ctx.Done():
			return out.end()
		case err := <-polled:
			_ = out.end()
			return err
		case err := <-out.done: // The reader of stdout has gone.
			return err
		case u := <-s.updates:
			for _, e := range entries(u, seen) {
				out.put(e)
			}
			if n := s.missed.Swap(0); n > 0 {
				out.put(entry{time.Now(), "", skipped(n)})
			}
		}
	}
}

// entries are the lines of an update; a status is told where its global state is
// another one than seen.
func entries(u update, seen map[string]string) []entry {
	switch {
	case u.event != nil:
		return []entry{{u.at, u.from, u.event}}
	case u.status != nil:
		now := "none"
		if g := u.status.State; g != nil {
			now = fmt.Sprint(u.status.Term, g.Epoch, g.Index, g.InForce)
		}
		if seen[u.from] == now {
			return nil
		}
		seen[u.from] = now
		return []entry{{u.at, u.from, standing{u.status}}}
	}
	return []entry{{u.at, u.from, notice{u.notice}}}
}
