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

// TestWatcher chooses what is told.
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
	w.verbose = true
	w.observe(quiet)
	w.observe(monitor.Rejection{})
	if got := kinds(f); got != "Verdict Refusal" {
		t.Errorf("with -v: %s", got)
	}
	w.verbose = false
	sets := monitor.Verdict{Predicate: "count", Truth: predicates.True, Fired: true, Remembers: true}
	other := monitor.Verdict{Predicate: "other", Truth: predicates.True, Fired: true}
	sent := monitor.Fate{Signal: &control.Signal{Predicate: "overload"}}
	w.observe(sets)
	w.only = []string{"count", "overload"}
	w.observe(other)
	w.observe(monitor.Fate{Signal: &control.Signal{Predicate: "other"}})
	if got := kinds(f); got != "" {
		t.Errorf("what only sets memory, and another predicate: %s", got)
	}
	w.observe(sent)
	w.verbose = true
	w.observe(sets)
	w.observe(other)
	if got := kinds(f); got != "Fate Verdict" {
		t.Errorf("with --predicate and -v: %s", got)
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
