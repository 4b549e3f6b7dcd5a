package main

import (
	"bufio"
	"context"
	"io"
	"sync/atomic"
	"time"

	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
)

// The entries that may wait for the reader of stdout, and how long the end of a
// run waits for it.
const (
	feedLimit    = 4096
	feedPatience = 500 * time.Millisecond
)

// feed shows entries on a goroutine of its own, so that a slow reader of
// stdout does not hold up a synchronizer: what it cannot take is counted and
// lost. Entries may be put in before the feed begins.
type feed struct {
	show    func(show.Entry)
	flush   func() error
	entries chan show.Entry
	skipped atomic.Uint64
	begun   bool
	last    []show.Entry // set before quit is closed
	quit    chan struct{}
	done    chan struct{} // closed after err was set
	err     error
}

// newFeed writes what render makes of entries.
func newFeed(w io.Writer, render func(show.Entry) string) *feed {
	b := bufio.NewWriter(w)
	return feedTo(func(e show.Entry) { _, _ = b.WriteString(render(e)) }, b.Flush) // Flush returns the error.
}

// feedTo flushes whenever nothing waits.
func feedTo(each func(show.Entry), flush func() error) *feed {
	return &feed{
		show: each, flush: flush, entries: make(chan show.Entry, feedLimit),
		quit: make(chan struct{}), done: make(chan struct{}),
	}
}

// begin shows the first entry and then the others.
func (f *feed) begin(first any) {
	f.begun = true
	go func() {
		defer close(f.done)
		f.err = f.run(show.Entry{At: time.Now(), Event: first})
	}()
}

// put never blocks.
func (f *feed) put(e show.Entry) {
	select {
	case f.entries <- e:
	default:
		f.skipped.Add(1)
	}
}

// end shows what waits, then the last entries, of which none is left out, and
// returns the first error of writing. It leaves a reader alone that takes nothing.
func (f *feed) end(last ...show.Entry) error {
	over := make(chan struct{})
	close(over)
	return f.drain(over, last)
}

// finishFeed is end, which leaves a reader alone only when the context has ended.
func (f *feed) finishFeed(ctx context.Context, last ...show.Entry) error {
	return f.drain(ctx.Done(), last)
}

func (f *feed) drain(over <-chan struct{}, last []show.Entry) error {
	if !f.begun {
		return nil
	}
	f.last = last
	close(f.quit)
	select {
	case <-f.done:
		return f.err
	case <-over:
	}
	select {
	case <-f.done:
		return f.err
	case <-time.After(feedPatience):
		return nil
	}
}

func (f *feed) run(first show.Entry) error {
	f.show(first)
	for {
		if n := f.skipped.Swap(0); n > 0 {
			f.show(show.Entry{At: time.Now(), Event: show.Skipped(n)})
		}
		select {
		case e := <-f.entries:
			f.show(e)
			continue
		default:
		}
		if err := f.flush(); err != nil {
			return err
		}
		select {
		case e := <-f.entries:
			f.show(e)
		case <-f.quit:
			if len(f.entries) > 0 {
				continue
			}
			for _, e := range f.last {
				f.show(e)
			}
			return f.flush()
		}
	}
}

// watcher turns what one synchronizer tells into entries. Its observe is called
// on one goroutine.
type watcher struct {
	name    string
	feed    interface{ put(show.Entry) }
	firings show.Firings
	ended   chan<- monitor.ProgramEvent // where to tell the end of a program; nil: in the feed
	leads   func()                      // called when it leads; nil: the caller reports that earlier
	epoch   uint64
	refused bool
}

func (w *watcher) put(event any) { w.feed.put(show.Entry{At: time.Now(), From: w.name, Event: event}) }

func (w *watcher) observe(e monitor.Event) {
	switch e := e.(type) {
	case monitor.Epoch:
		for _, d := range e.Dropped {
			w.put(d)
		}
		if e.Epoch != w.epoch {
			w.epoch = e.Epoch
			w.put(e)
		}
	case monitor.Verdict:
		if (e.Fired || w.firings.Verbose) && w.firings.Shows(e.Predicate, e.Silent) {
			w.put(e)
		}
	case monitor.ProgramEvent:
		if w.ended != nil && e.Kind == monitor.ProgramFinish {
			w.ended <- e
			return
		}
		w.put(e)
	case monitor.Plan:
		if len(e.Plan.Moves) > 0 || w.firings.Verbose {
			w.put(e)
		}
	case monitor.Fate:
		if program := e.Signal.Predicate == wire.ProgramSignals; program && w.firings.Verbose || !program && w.firings.Shows(e.Signal.Predicate, false) {
			w.put(e)
		}
	case monitor.Clock, monitor.Reload:
		w.put(e)
	case monitor.Rejection:
		if w.firings.Verbose || !w.refused {
			w.put(show.Refusal{Rejection: e, Last: !w.firings.Verbose})
		}
		w.refused = true
	}
}
