package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

const (
	pollEvery   = time.Second // a status, which keeps the events coming
	searchEvery = 5           // polls between two looks for new synchronizers
)

// watchSource collects what a run tells.
type watchSource struct {
	live  *live
	shown *show.Firings
	feed  *feed
	known []synchronizer.Presence
	mute  map[synchronizer.Presence]bool // did not answer last
}

// options has it told that the server is away, and that it is back.
func (s *watchSource) options() bus.Options {
	return bus.Options{
		OnDisconnect: func(cause error) { s.say("", fmt.Sprintf("the NATS server is away: %v", cause)) },
		OnReconnect:  func() { s.say("", "the NATS server is back") },
		OnError:      func(err error) { s.say("", err.Error()) },
	}
}

func (s *watchSource) say(from, text string) {
	s.feed.put(show.Entry{At: time.Now(), From: from, Event: show.Notice(text)})
}

// begin subscribes, and finds the synchronizers to watch.
func (s *watchSource) begin(ctx context.Context, l *live) (names []string, err error) {
	s.live = l
	if s.known, err = l.who(ctx); err != nil {
		return nil, err
	}
	for _, p := range s.known {
		names = append(names, p.Synchronizer)
	}
	if len(s.shown.Predicates) > 0 {
		if err := s.shown.Check(s.predicates(ctx)); err != nil {
			return nil, err
		}
	}
	all := wire.Subjects{Tenant: l.tenant, Group: "*"}.Events("*")
	if err := l.bus.Subscribe(all, bus.Limits{Messages: feedLimit}, s.told); err != nil {
		return nil, err
	}
	return names, l.bus.Flush(ctx)
}

// predicates are the predicates of the synchronizers that answer.
func (s *watchSource) predicates(ctx context.Context) (names []string) {
	for _, p := range s.known {
		var status monitor.Status
		if err := s.live.asker.Ask(ctx, p, wire.VerbWatch, "", &status); err == nil {
			for i := range status.Predicates {
				names = append(names, status.Predicates[i].Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// told takes a message with events.
func (s *watchSource) told(m bus.Message) {
	for line := range strings.Lines(string(m.Data)) {
		e := &monitor.Line{}
		if err := json.Unmarshal([]byte(line), e); err != nil {
			s.say("", fmt.Sprintf("an event that cannot be read: %v", err))
			continue
		}
		if (s.live.only == "" || s.live.only == e.Synchronizer) && s.shown.ShowsLine(e) {
			s.feed.put(show.Entry{At: e.Time.Local(), From: e.Synchronizer, Event: e})
		}
	}
}

// pollStatus asks for the status of each synchronizer until the context ends, or the
// connection is closed for good, which is an error.
func (s *watchSource) pollStatus(ctx context.Context) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		switch s.live.bus.State() {
		case bus.Closed:
			return errors.New("the connection to the NATS server is closed for good: watch again")
		case bus.Connected:
			s.pollOnce(ctx, n%searchEvery == 0 || len(s.known) == 0 || len(s.mute) > 0)
		case bus.Reconnecting: // That was said.
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (s *watchSource) pollOnce(ctx context.Context, search bool) {
	if search {
		s.search(ctx)
	}
	for _, p := range s.known {
		var status monitor.Status
		err := s.live.asker.Ask(ctx, p, wire.VerbWatch, "", &status)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			delete(s.mute, p)
			s.feed.put(show.Entry{At: time.Now(), From: p.Synchronizer, Event: show.Standing{Status: &status}})
		case errors.Is(err, bus.ErrDisconnected): // That was said.
		case !s.mute[p]:
			s.mute[p] = true
			s.say(p.Synchronizer, err.Error())
		}
	}
}

// search lists the synchronizers that answer now. It drops the others.
func (s *watchSource) search(ctx context.Context) {
	now, err := s.live.asker.Present(ctx)
	if err != nil || len(now) == 0 {
		return
	}
	now = slices.DeleteFunc(now, func(p synchronizer.Presence) bool {
		return s.live.only != "" && p.Synchronizer != s.live.only
	})
	for _, p := range now {
		if !slices.Contains(s.known, p) {
			s.say(p.Synchronizer, "the synchronizer is online")
		}
	}
	s.known = now
	maps.DeleteFunc(s.mute, func(p synchronizer.Presence, _ bool) bool { return !slices.Contains(now, p) })
}
