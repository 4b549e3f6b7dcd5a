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
	"github.com/gopegasus/pegasus/synchronizer"
)

// session is what runs between the start of run and its end.
type session struct {
	flags   *runFlags
	file    string
	cfg     *synchronizer.Config // that is in force
	levels  []synchronizer.Level
	url     address
	feed    *feed
	running []*synchronizer.Synchronizer

	journals  journals
	operators *observatory
}

// run starts the synchronizers, waits until the context ends or one of them
// fails, and ends them.
func (s *session) run(ctx context.Context, stderr io.Writer) error {
	hangups, stop := hangups()
	defer stop()
	err := s.start(ctx)
	if err == nil {
		defer s.note(stderr)()
		s.feed.begin(ready{
			url: s.url.shown, secured: s.url.secret != s.url.shown,
			tenant: s.flags.tenant, levels: s.levels, http: s.operators.url(),
		})
		err = s.wait(ctx, hangups, stderr)
	}
	return errors.Join(err, s.close())
}

// note lets the live commands find the run, until the function it returns is
// called. Without it they need --nats.
func (s *session) note(stderr io.Writer) func() {
	forget, err := noteRun(&localRun{
		URL: s.url.shown, Tenant: s.flags.tenant, Secured: s.url.secret != s.url.shown,
		PID: os.Getpid(), Started: time.Now().UTC(),
	})
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "pegasus: this run is not noted, so status, why and watch need --nats %s: %v\n", s.url.shown, err)
	}
	return forget
}

func (s *session) start(ctx context.Context) error {
	for _, level := range s.levels {
		w := &watcher{name: level.Name, feed: s.feed, verbose: s.flags.verbose}
		opt := synchronizer.Options{
			Name: level.Name, Tenant: s.flags.tenant, Observe: w.observe, Logger: w.logger(),
			Timeline: clocksync.Timeline(s.flags.timeline), MeterProvider: s.operators.meters(),
		}
		if err := s.journals.add(&opt); err != nil {
			return err
		}
		one, err := synchronizer.Start(ctx, s.url.secret, s.cfg, opt)
		if err != nil {
			return err
		}
		s.running = append(s.running, one)
		s.operators.watch(level.Name, one)
	}
	s.operators.begun()
	return nil
}

// wait returns nil when the context has ended, or why a synchronizer ended by
// itself.
func (s *session) wait(ctx context.Context, hangups <-chan os.Signal, stderr io.Writer) error {
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
			return nil
		case err := <-ended:
			return err
		case <-hangups:
			s.reload(stderr)
		}
	}
}

// close ends all synchronizers at once, since each may take a second, and tells
// what they have counted.
func (s *session) close() error {
	errs := make([]error, len(s.running))
	var closing sync.WaitGroup
	for i, one := range s.running {
		closing.Go(func() { errs[i] = one.Close() })
	}
	closing.Wait()
	for i, one := range s.running {
		s.feed.put(entry{time.Now(), s.levels[i].Name, stopped{one.Stats()}})
	}
	return errors.Join(append(errs, s.journals.close(), s.feed.end())...)
}
