package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/synchronizer"
)

// session is what runs between the start of run and its end.
type session struct {
	flags   *runFlags
	cfg     *synchronizer.Config
	levels  []synchronizer.Level
	url     address
	feed    *feed
	running []*synchronizer.Synchronizer

	operators *observatory
}

// run starts the synchronizers, waits until the context ends or one of them
// fails, and ends them.
func (s *session) run(ctx context.Context) error {
	err := s.start(ctx)
	if err == nil {
		s.feed.begin(ready{
			url: s.url.shown, secured: s.url.secret != s.url.shown,
			tenant: s.flags.tenant, levels: s.levels, http: s.operators.url(),
		})
		err = s.wait(ctx)
	}
	return errors.Join(err, s.close())
}

func (s *session) start(ctx context.Context) error {
	for _, level := range s.levels {
		w := &watcher{name: level.Name, feed: s.feed, verbose: s.flags.verbose}
		one, err := synchronizer.Start(ctx, s.url.secret, s.cfg, synchronizer.Options{
			Name: level.Name, Tenant: s.flags.tenant, Observe: w.observe, Logger: w.logger(),
			Timeline: clocksync.Timeline(s.flags.timeline), MeterProvider: s.operators.meters(),
		})
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
func (s *session) wait(ctx context.Context) error {
	ended := make(chan error, len(s.running))
	for _, one := range s.running {
		go func() { // Until close at the latest.
			<-one.Done()
			ended <- one.Err()
		}()
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return err
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
	return errors.Join(append(errs, s.feed.end())...)
}
