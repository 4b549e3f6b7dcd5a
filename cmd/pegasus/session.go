package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

// session is what runs between the start of run, or of program run, and its end.
type session struct {
	flags   *runFlags
	file    string
	program string                                               // its name, if one runs
	changed func(stderr io.Writer) (*synchronizer.Config, error) // the file as it is now, if that can be followed
	keys    func() error                                         // reads --keys again; nil without
	cfg     *synchronizer.Config                                 // that it began with
	levels  []synchronizer.Level
	url     address
	feed    *feed
	running []*synchronizer.Synchronizer
	ended   chan monitor.ProgramEvent // of a program: its end
	last    []show.Entry              // that must not be left out

	journals  journals
	operators *observatory
	page      *ownPage // nil: none
}

// run starts the synchronizers, waits until the context ends or one of them
// fails, and ends them.
func (s *session) run(ctx context.Context, stderr io.Writer) error {
	hangups, stop := watchHangups()
	defer stop()
	err := s.start(ctx, stderr)
	if err == nil {
		defer s.note(stderr)()
		s.feed.begin(s.ready(s.levels, s.flags.standby))
		s.page.serve(ctx, s)
		err = s.wait(ctx, stderr, hangups)
	}
	return errors.Join(err, s.close(ctx))
}

// ready tells of those that lead, or stand by.
func (s *session) ready(levels []synchronizer.Level, standby bool) show.Ready {
	return show.Ready{
		URL: s.url.shown(), Secured: s.url.secured(), Keys: s.flags.keys != "",
		Tenant: s.flags.tenant, Program: s.program, Levels: levels, HTTP: s.operators.url(), Standby: standby,
	}
}

// note lets the live commands find the run, until the function it returns is
// called. Without it they need --nats.
func (s *session) note(stderr io.Writer) func() {
	forget, err := noteRun(&localRun{
		URL: s.url.shown(), Tenant: s.flags.tenant, Own: s.url.own, Secured: s.url.own && s.url.secured(), Keys: s.flags.keys != "",
		PID: os.Getpid(), Started: time.Now().UTC(),
	})
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "pegasus: this run is not noted, so status, why and watch need --nats %s: %v\n", s.url.shown(), err)
	}
	return forget
}

func (s *session) start(ctx context.Context, stderr io.Writer) error {
	state, err := stateDir(s.flags.state)
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "pegasus: the term of this run is not kept, so give --state DIR, or --state none: %v\n", err)
	}
	for i, level := range s.levels {
		w := &watcher{name: level.Name, feed: s.feed, firings: show.Firings{Predicates: s.flags.predicates, Verbose: s.flags.verbose}, ended: s.ended}
		if s.flags.standby {
			w.leads = func() { s.feed.put(show.Entry{At: time.Now(), Event: s.ready(s.levels[i:i+1], false)}) }
		}
		opt := synchronizer.Options{
			Name: level.Name, Tenant: s.flags.tenant, Observe: func(e monitor.Event) { w.observe(e); s.page.observe(level.Name, e) }, Logger: w.logger(), Reread: s.rereadConfig,
			Timeline: clocksync.Timeline(s.flags.timeline), MeterProvider: s.operators.provider, State: state, Standby: s.flags.standby,
		}
		if err := s.journals.add(&opt); err != nil {
			return err
		}
		opt.NATS = s.url.options
		one, err := synchronizer.Start(ctx, s.url.URL, s.cfg, opt)
		if err != nil {
			return s.url.Explain(err)
		}
		s.running = append(s.running, one)
	}
	s.operators.running.Store(s)
	return nil
}

// wait returns nil when the context has ended or the program is done, or why a
// synchronizer ended unasked.
func (s *session) wait(ctx context.Context, stderr io.Writer, hangups <-chan os.Signal) error {
	ended := make(chan error, len(s.running))
	for _, one := range s.running {
		go func() { // Until close at the latest.
			<-one.Done()
			ended <- one.Err()
		}()
	}
	for {
		select {
		case <-ctx.Done():
			if s.program != "" {
				return s.leave()
			}
			return nil
		case p := <-s.ended:
			return s.outcome(p)
		case err := <-ended:
			return err
		case <-hangups:
			s.reloadAll(stderr) //nolint:contextcheck // A reload bounds its own waits.
		}
	}
}

// canceling is how long a program that is ended by a signal may take to end its
// blocks.
const canceling = 1500 * time.Millisecond

// leave cancels the program, or leaves it as it is if it can be continued.
func (s *session) leave() error {
	if files := s.journals.files; len(files) > 0 && !s.flags.standby {
		return fmt.Errorf("the program was left before its end: continue it with --resume %s", files[0].Name())
	}
	if err := s.running[0].CancelProgram("the run was ended by a signal"); errors.Is(err, synchronizer.ErrStandby) {
		return nil // Another one runs it.
	} else if err != nil {
		return err
	}
	select {
	case p := <-s.ended:
		return s.outcome(p)
	case <-time.After(canceling):
		return errors.New("the program was cancelled, and some of its blocks have not ended yet")
	}
}

// outcome tells how the program has ended: nil if it is done.
func (s *session) outcome(p monitor.ProgramEvent) error {
	s.last = append(s.last, show.Entry{At: time.Now(), From: s.levels[0].Name, Event: p})
	if p.Outcome == program.Done {
		return nil
	}
	if p.Outcome == program.Failed {
		return errors.New("the program has failed: " + p.Reason)
	}
	return errors.New("the program was cancelled: " + p.Reason)
}

// close ends all synchronizers at once, since each may take a second, and tells
// their counts. A reader of a program's events has time to finish.
func (s *session) close(ctx context.Context) error {
	errs := make([]error, len(s.running))
	var closing sync.WaitGroup
	for i, one := range s.running {
		closing.Go(func() { errs[i] = one.Close() })
	}
	closing.Wait()
	for i, one := range s.running {
		s.last = append(s.last, show.Entry{At: time.Now(), From: s.levels[i].Name, Event: show.Stopped{Stats: one.Stats()}})
	}
	errs = append(errs, s.journals.close())
	if s.program != "" {
		return errors.Join(append(errs, s.feed.finishFeed(ctx, s.last...))...)
	}
	return errors.Join(append(errs, s.feed.end(s.last...))...)
}
