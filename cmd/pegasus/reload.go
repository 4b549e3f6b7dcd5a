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

	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

// hangups delivers each SIGHUP, where the system has it, until stop.
func hangups() (signals <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}

// kept tells that a changed configuration is refused and the old one stays.
func kept(reason string) monitor.Reload { return monitor.Reload{Reason: oneLine(reason)} }

// reload reads the configuration again and has every synchronizer follow it, or none.
func (s *session) reload() {
	cfg, err := s.changed()
	for i := 0; err == nil && i < len(s.running); i++ {
		err = s.running[i].Reload(cfg)
	}
	switch {
	case err == nil:
		s.cfg = cfg
	case errors.Is(err, errTold):
		s.feed.put(show.Entry{At: time.Now(), Event: kept(s.file + " has faults, which stderr tells")})
	default:
		s.feed.put(show.Entry{At: time.Now(), Event: kept(err.Error())})
	}
}

// reread loads the file and looks whether all that run can go over to it.
func (s *session) reread(stderr io.Writer) (*synchronizer.Config, error) {
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

// oneLine makes one line of joined errors.
func oneLine(text string) string { return strings.ReplaceAll(strings.TrimSpace(text), "\n", "; ") }
