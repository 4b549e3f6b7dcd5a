package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
	"github.com/gopegasus/pegasus/web"
)

// ownPage is the page of a run that the run serves itself. A nil one serves nothing.
type ownPage struct {
	listener net.Listener
	url      string
	page     *web.Page
	feed     *feed // events on their way to it
	session  *session
	serving  sync.WaitGroup
	cancel   context.CancelFunc
}

// newOwnPage listens at an address of the loopback interface; empty: there is no page.
func newOwnPage(address string) (p *ownPage, err error) {
	if address == "" {
		return nil, nil //nolint:nilnil // As documented.
	}
	p = &ownPage{}
	if p.listener, err = listenOnLoopback("ui", address); err != nil {
		return nil, err
	}
	key := rand.Text()
	p.url = "http://" + p.listener.Addr().String() + "/#key=" + key
	if p.page, err = web.New(web.Options{Source: p, Now: time.Now, Key: key}); err != nil {
		return nil, errors.Join(err, p.listener.Close())
	}
	p.feed = feedTo(func(e show.Entry) { publishEntry(p.page, e) }, func() error { return nil })
	return p, nil
}

// observe hands an event to the page. It never blocks.
func (p *ownPage) observe(name string, e monitor.Event) {
	if p != nil {
		p.feed.put(show.Entry{At: time.Now(), From: name, Event: e})
	}
}

// serve begins to serve. The session runs.
func (p *ownPage) serve(ctx context.Context, s *session) {
	if p == nil {
		return
	}
	p.session = s
	ctx, p.cancel = context.WithCancel(ctx)
	p.feed.begin(nil)
	s.feed.put(show.Entry{At: time.Now(), Event: show.Notice("the page of this run: " + p.url)})
	p.serving.Go(func() {
		if err := servePages(ctx, p.listener, p.page); err != nil {
			s.feed.put(show.Entry{At: time.Now(), Event: show.Notice("the page is not served any more: " + err.Error())})
		}
	})
	p.serving.Go(func() { p.pollStatus(ctx) })
}

// pollStatus shows the status of each synchronizer every second, until the context ends.
func (p *ownPage) pollStatus(ctx context.Context) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		for _, one := range p.session.running {
			if status, err := one.Status(ctx); err == nil { // Else it has ended, or stands by: its values grow old.
				p.page.PublishStatus(&status)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Explain implements web.Source.
func (p *ownPage) Explain(ctx context.Context, name, group, predicate string, _ time.Time) (*monitor.Explanation, error) {
	for i, level := range p.session.levels {
		if level.Name != name || level.Group != group {
			continue
		}
		e, err := p.session.running[i].Why(ctx, predicate)
		if errors.Is(err, synchronizer.ErrEnded) {
			return nil, fmt.Errorf("synchronizer %q has ended", name)
		}
		return &e, err
	}
	return nil, fmt.Errorf("synchronizer %q of group %q: this run has none of that name", name, group)
}

// close ends the page.
func (p *ownPage) close() {
	switch {
	case p == nil:
	case p.cancel == nil: // It was never served.
		_ = p.listener.Close()
	default:
		p.cancel()
		p.serving.Wait()
		_ = p.feed.end() // Nothing is written by it.
	}
}
