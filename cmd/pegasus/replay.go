package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/internal/detectcmd"
	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/internal/version"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

const replayHelp = `replay runs synchronizers on the inputs of journals, which run --journal has
written, and prints the events of the recorded run: the same lines as run prints. It
compares all outputs, byte for byte, with the recorded outputs. Of a directory it
uses the journals of the newest run. It sends nothing and needs no server.

With --config it judges the recorded inputs by another configuration as well, and
prints where the verdicts differ. The members reacted to the recorded signals; how
they would have reacted to other signals is unknown. With -v the events of the
recorded run are printed too.

A journal has no values of redacted fields. A predicate that depends on one is
unknown here, the others are judged, and outputs are not compared: the last line
says so, with the exit code 0.

Exit codes: 0 all outputs are as recorded, 1 they are not, or a journal or the
configuration is refused, 2 wrong usage. A journal without its end is replayed as
far as it goes, and replay says so.`

const replayExample = `  pegasus run pegasus.yaml --journal journals
  pegasus replay journals
  pegasus replay journals --json | jq 'select(.event == "fired")'
  pegasus replay journals --config changed.yaml`

// replayFlags are the flags of replay.
type replayFlags struct {
	config        string
	verbose, json bool
}

func newReplay() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:     "replay DIR|FILE",
		Short:   "Step through a recorded run once more",
		Long:    replayHelp,
		Example: replayExample,
		Args: oneArgument("replay needs a journal, or a directory of them: pegasus replay journals",
			"replay takes one journal, or one directory of them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.config, "config", "", "judge by the configuration `FILE` as well, and print each verdict that differs")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "also print every change of a verdict and every refused input")
	flags.BoolVar(&f.json, "json", false, "print one JSON object a line")
	return cmd
}

func (f *replayFlags) run(ctx context.Context, path string, stdout, stderr io.Writer) error {
	files, err := journalFiles(path)
	if err != nil {
		return fail(err)
	}
	var cfg *synchronizer.Config
	if f.config != "" {
		if cfg, err = synchronizer.LoadConfig(f.config); err != nil {
			return told(stderr, err)
		}
	}
	out := &printer{w: bufio.NewWriter(stdout), render: rendering(f.json)}
	for _, file := range files {
		if err = f.file(ctx, file, cfg, out); err != nil {
			break
		}
	}
	return fail(errors.Join(err, out.w.Flush()))
}

// file replays one journal. The error of a difference comes after its last entry.
func (f *replayFlags) file(ctx context.Context, file string, cfg *synchronizer.Config, out *printer) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // Nothing was written.
	w := &watcher{feed: out, firings: show.Firings{Verbose: f.verbose}}
	opt := synchronizer.ReplayOptions{Changed: cfg}
	tell := cfg == nil || f.verbose
	opt.Observe = func(at time.Time, e monitor.Event) {
		if out.at = at; tell {
			w.observe(e)
		}
	}
	opt.Differ = func(d synchronizer.Difference) {
		out.at = d.At
		w.put(show.Difference{Difference: d})
	}
	opt.Begin = func(r *synchronizer.Replayed) { w.name, out.at = r.Synchronizer, r.Started }
	res, err := synchronizer.Replay(detectcmd.ReadUntil(ctx, in), opt)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	w.put(show.Replayed{Replayed: res, File: file, Compared: cfg != nil})
	if res.FirstDifference > 0 {
		return fmt.Errorf("%s: line %d: the output differs from the recorded output%s", file, res.FirstDifference, versions(res.Pegasus))
	}
	return nil
}

// versions says what else may be the reason.
func versions(recorded string) string {
	this := version.Info().Main.Version // As journals have it.
	if recorded == "" || recorded == this {
		return ": the journal was changed, or this is another build of pegasus"
	}
	return fmt.Sprintf(": it was recorded by pegasus %s, and this is %s", recorded, this)
}

// journalFiles are a file, or the journals of the newest run in a directory.
func journalFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("%w: give a journal, or a directory that run --journal has written to", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	newest := ""
	for _, e := range entries { // By name, and so by time.
		if !strings.HasSuffix(e.Name(), synchronizer.JournalSuffix) {
			continue
		}
		if start, _, _ := strings.Cut(e.Name(), "-"); start != newest {
			newest, files = start, nil
		}
		files = append(files, filepath.Join(path, e.Name()))
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: it has no journal, a file *%s: run --journal %s writes one", path, synchronizer.JournalSuffix, path)
	}
	return files, nil
}

// printer writes entries at once, with the time of the recorded run.
type printer struct {
	w      *bufio.Writer
	render func(show.Entry) string
	at     time.Time
}

func (p *printer) put(e show.Entry) {
	e.At = p.at
	_, _ = p.w.WriteString(p.render(e)) // Flush returns the error.
}
