package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
)

// TestWatcher chooses the printed events.
func TestWatcher(t *testing.T) {
	f := newFeed(nil, show.Entry.Text)
	w := &watcher{name: "gsync", feed: f}
	quiet := monitor.Verdict{Predicate: "overload", Truth: predicates.False}
	gone := monitor.Epoch{Epoch: 2, Members: []string{"w1"}}
	gone.Dropped = []monitor.Dropped{{Name: "w2", Reason: "left"}}
	for _, e := range []monitor.Event{
		monitor.Epoch{Epoch: 1, Members: []string{"w1", "w2"}},
		quiet, gone,
		gone, // The same epoch again: a member left that never was in it.
		monitor.Rejection{},
		monitor.Rejection{},
		monitor.Fate{Signal: &control.Signal{Predicate: "overload"}},
		monitor.Verdict{Predicate: "overload", Truth: predicates.True, Fired: true},
	} {
		w.observe(e)
	}
	want := "Epoch Dropped Epoch Dropped Refusal Fate Verdict"
	if got := kinds(f); got != want {
		t.Errorf("told: %s\nwant: %s", got, want)
	}
	w.firings.Verbose = true
	w.observe(quiet)
	w.observe(monitor.Rejection{})
	if got := kinds(f); got != "Verdict Refusal" {
		t.Errorf("with -v: %s", got)
	}
	log := w.logger().With("a", 1).WithGroup("g")
	log.Info("epoch")
	log.Warn("refused")
	log.Debug("not sent")
	log.Warn("the NATS server is away", "cause", "EOF")
	if e := <-f.entries; e.Event != show.Notice("the NATS server is away; cause: EOF") || len(f.entries) > 0 {
		t.Errorf("log: %v and %d more", e.Event, len(f.entries))
	}
}

// TestFirings: firings that only set memory are printed with -v, or if their predicate is named.
func TestFirings(t *testing.T) {
	silent := monitor.Verdict{Predicate: "count", Truth: predicates.True, Fired: true, Silent: true}
	loud := monitor.Verdict{Predicate: "overload", Truth: predicates.True, Fired: true}
	fate := monitor.Fate{Signal: &control.Signal{Predicate: "overload"}}
	for _, c := range []struct {
		firings show.Firings
		want    string
	}{
		{show.Firings{}, "overload overload"},
		{show.Firings{Verbose: true}, "count overload overload"},
		{show.Firings{Predicates: []string{"count"}}, "count"},
		{show.Firings{Predicates: []string{"overload"}, Verbose: true}, "overload overload"},
	} {
		f := newFeed(nil, show.Entry.Text)
		w := &watcher{feed: f, firings: c.firings}
		var told, watched []string
		for _, e := range []monitor.Event{silent, loud, fate} {
			w.observe(e)
			if l := e.Line(); c.firings.Verbose || c.firings.ShowsLine(&l) {
				watched = append(watched, l.Event)
			}
		}
		for len(f.entries) > 0 {
			switch e := (<-f.entries).Event.(type) {
			case monitor.Verdict:
				told = append(told, e.Predicate)
			case monitor.Fate:
				told = append(told, e.Signal.Predicate)
			}
		}
		if got := strings.Join(told, " "); got != c.want {
			t.Errorf("%+v: %s, want %s", c.firings, got, c.want)
		}
		if !c.firings.Verbose && len(watched) != len(told) {
			t.Errorf("%+v: watch shows %v", c.firings, watched)
		}
	}
	known := []string{"all-idle", "overload"}
	if err := (&show.Firings{Predicates: known}).Check(known); err != nil {
		t.Error(err)
	}
	const want = `--predicate "all-idel": no synchronizer of this run has a predicate of that name: did you mean "all-idle"? there are all-idle, overload`
	if err := (&show.Firings{Predicates: []string{"all-idel"}}).Check(known); err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	const none = `--predicate "x": no synchronizer of this run has a predicate of that name: there are none`
	if err := (&show.Firings{Predicates: []string{"x"}}).Check(nil); err == nil || err.Error() != none {
		t.Errorf("%v\nwant %s", err, none)
	}
}

// TestKeptIsOneLine: an error of several lines does not break the line that tells it.
func TestKeptIsOneLine(t *testing.T) {
	if got := kept("a: one\nb: two\n").Reason; got != "a: one; b: two" {
		t.Errorf("got %q", got)
	}
}

// kinds takes out what waits in a feed.
func kinds(f *feed) string {
	var list []string
	for len(f.entries) > 0 {
		e := <-f.entries
		name := fmt.Sprintf("%T", e.Event)
		list = append(list, name[strings.LastIndexByte(name, '.')+1:])
	}
	return strings.Join(list, " ")
}
