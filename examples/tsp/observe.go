package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/monitor"
)

// tally counts what became of the synchronizer's signals.
type tally struct {
	applied map[string]int // by name; each process that applied one counts
	late    int            // no-such-entry and expired
	stopped map[string]bool
	clocks  string   // by which the last decision was made
	epoch   []string // the members in force
	begun   bool
	changed chan struct{} // capacity 1
}

func newTally() tally {
	return tally{applied: map[string]int{}, stopped: map[string]bool{}, changed: make(chan struct{}, 1)}
}

// observe takes the events of the synchronizer, on its goroutine.
func (c *coordinator) observe(e monitor.Event) {
	switch e := e.(type) {
	case monitor.Epoch:
		c.epoch(e)
	case monitor.Fate:
		c.fate(e)
	case monitor.Verdict:
		c.decided(e)
	}
}

// epoch notes who is no longer there.
func (c *coordinator) epoch(e monitor.Epoch) {
	c.mu.Lock()
	c.tally.begun = c.tally.begun || e.Epoch > 0
	c.tally.epoch = e.Members
	running := c.verdict == ""
	c.mu.Unlock()
	if running {
		c.screen.detail("epoch %d: %s", e.Epoch, strings.Join(e.Members, " "))
	}
	for _, d := range e.Dropped {
		c.drop(d.Name, d.Reason)
	}
}

// begun reports whether the first epoch has come.
func (c *coordinator) begun() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tally.begun
}

func (c *coordinator) fate(e monitor.Fate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &c.tally
	switch {
	case e.Fate == control.Applied && e.Signal.Target != memberName:
		if t.applied[e.Signal.Name]++; e.Signal.Name == "NewSubtask" && c.first.IsZero() {
			c.first = c.now()
		}
		if e.Signal.Kind == control.Cancel {
			t.stopped[e.Signal.Target] = true
		}
	case e.Fate == control.NoSuchEntry, e.Fate == control.Expired:
		t.late++
		c.screen.detail("late signal %s to %s: %s", e.Signal.Name, e.Signal.Target, e.Detail)
	}
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// decided notes what the synchronizer has decided.
func (c *coordinator) decided(e monitor.Verdict) {
	if !e.Fired {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.journal.Info("decision", "predicate", e.Predicate, "decision", e.Decision.String())
	c.tally.clocks = clocks(e)
	c.screen.detail("%s holds by %s (decision %v)", e.Predicate, c.tally.clocks, e.Decision)
}

// clocks says by what the states of a verdict were compared.
func clocks(v monitor.Verdict) string {
	if v.Span.SameClock {
		return "the same clock"
	}
	bound := v.Bound.Truncate(time.Microsecond) + time.Microsecond // Not less than it is.
	return fmt.Sprintf("clocks within %v (%s)", bound, v.Sources)
}

// stopping is how many of the workers in the epoch have not been stopped.
func (c *coordinator) stopping() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, name := range c.tally.epoch {
		if name != memberName && !c.tally.stopped[name] {
			n++
		}
	}
	return n
}
