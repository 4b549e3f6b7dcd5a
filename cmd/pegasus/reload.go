package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

const reloadHelp = `reload has the synchronizers of a run read their configuration file again, as SIGHUP
does, and prints the differences. If a synchronizer cannot follow the file without a
restart, nothing changes, and reload prints the reason with its place in the file.

The process of the run reads the file, on its host, with the flags of that process. A
standby is not asked: it reads its file after a takeover.

` + liveHelp + `

Exit codes: 0 all follow the file, 1 one has refused or nobody answers, 2 wrong usage.`

const reloadExample = `  pegasus reload
  pegasus reload gsync
  pegasus reload --nats nats://127.0.0.1:4222 --tenant blue`

func newReload() *cobra.Command {
	var f liveFlags
	cmd := &cobra.Command{
		Use:               "reload [SYNCHRONIZER]",
		Short:             "Have a run read its configuration again",
		Long:              reloadHelp,
		Example:           reloadExample,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return errors.New("reload takes one synchronizer, or none for all: pegasus reload gsync")
			case len(args) == 1 && f.synchronizer != "" && f.synchronizer != args[0]:
				return fmt.Errorf("reload takes one synchronizer: leave out %s or --synchronizer %s", args[0], f.synchronizer)
			case len(args) == 1:
				f.synchronizer = args[0]
			}
			all, err := answers[synchronizer.Changed](cmd, &f, wire.VerbReload, "")
			return printAnswers(cmd, &f, all, reloadedText, err)
		},
	}
	f.add(cmd)
	return cmd
}

func reloadedText(a *synchronizer.Changed) string {
	if len(a.Changes) == 0 {
		return a.Synchronizer + ": reloaded: nothing is different\n"
	}
	return a.Synchronizer + ": reloaded: " + strings.Join(a.Changes, "; ") + "\n"
}

// watchHangups delivers each SIGHUP, where the system has it, until stop.
func watchHangups() (signals <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}

// kept tells that a changed configuration is refused and the old one stays.
func kept(reason string) monitor.Reload { return monitor.Reload{Reason: oneLine(reason)} }

// reloadAll reads the configuration again and has every synchronizer follow it, or none.
func (s *session) reloadAll(stderr io.Writer) {
	_ = s.reloadKeys() // The feed has its error. The configuration is read again even if the keys cannot be.
	cfg, err := s.changed(stderr)
	for i := 0; err == nil && i < len(s.running); i++ {
		err = s.running[i].Reload(cfg)
	}
	switch {
	case err == nil:
	case errors.Is(err, errTold):
		s.feed.put(show.Entry{At: time.Now(), Event: kept(s.file + " has faults, which stderr tells")})
	default:
		s.feed.put(show.Entry{At: time.Now(), Event: kept(err.Error())})
	}
}

// reloadKeys reads the directory of --keys again, and reports whether it now applies.
func (s *session) reloadKeys() error {
	if s.keys == nil {
		return nil
	}
	if err := s.keys(); err != nil {
		err = fmt.Errorf("the old keys remain valid: %s", strings.TrimPrefix(err.Error(), "embedded: "))
		s.feed.put(show.Entry{At: time.Now(), Event: show.Notice(err.Error())})
		return err
	}
	s.feed.put(show.Entry{At: time.Now(), Event: show.Notice("the server has read " + s.flags.keys + " again")})
	return nil
}

// rereadConfig is reloadAll for one synchronizer that "pegasus reload" asks: whoever asks gets the
// faults of the file.
func (s *session) rereadConfig() (*synchronizer.Config, error) {
	if err := s.reloadKeys(); err != nil {
		return nil, err
	}
	var faults strings.Builder
	cfg, err := s.changed(&faults)
	if errors.Is(err, errTold) {
		err = errors.New(strings.TrimPrefix(strings.TrimSpace(faults.String()), "pegasus: "))
	}
	if err != nil {
		s.feed.put(show.Entry{At: time.Now(), Event: kept(err.Error())})
	}
	if err != nil && s.keys != nil { // Tell the operator that the revocations took effect.
		err = fmt.Errorf("the keys of %s were read again, with their revocations; the configuration was not: %w", s.flags.keys, err)
	}
	return cfg, err
}

// load loads the file and looks whether all that run can go over to it. What the check
// compares stays the same over reloads, so the configuration of the start will do.
func (s *session) load(stderr io.Writer) (*synchronizer.Config, error) {
	cfg, levels, err := s.flags.load(s.file, stderr)
	if err != nil {
		return nil, err
	}
	var faults []error
	for _, l := range s.levels {
		_, err := s.cfg.Changes(cfg, l.Name)
		faults = append(faults, err)
	}
	if len(levels) > len(s.levels) {
		faults = append(faults, fmt.Errorf("%s has %s to run, and %d run: restart to change that", s.file, show.Count(len(levels), "synchronizer"), len(s.levels)))
	}
	return cfg, errors.Join(faults...)
}

// oneLine makes one line of joined errors. It leaves out the pictures of places, which take several.
func oneLine(text string) string {
	var parts []string
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "|"), line == "":
		case strings.HasPrefix(line, "= ") && len(parts) > 0:
			parts[len(parts)-1] += ": " + line[2:]
		default:
			parts = append(parts, line)
		}
	}
	return strings.Join(parts, "; ")
}
