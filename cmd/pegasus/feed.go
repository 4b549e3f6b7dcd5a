package main

import (
	"bufio"
	"context"
	"io"
	"sync/atomic"
	"time"

	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

// entry is one thing to tell.
type entry struct {
	at    time.Time
	from  string // the synchronizer, empty for the run as a whole
	event any    // a type below, or an Event or *Line of monitor
}

// What is told beside the events of a synchronizer.
type (
	// ready is the first entry: members can join.
	ready struct {
		url     string
		secured bool // the URL lacks the credentials that members need
		tenant  string
		program string // that is to run on the members, if one is
		levels  []synchronizer.Level
		http    string // where metrics and health are served, if anywhere
	}
	// refusal is an input that was refused; more are not told where last is set.
	refusal struct {
		monitor.Rejection
		last bool
	}
	// notice is what a synchronizer logs.
	notice struct{ text string }
	// stopped is the last entry of a synchronizer.
	stopped struct{ synchronizer.Stats }
	// skipped counts entries that were lost because the reader was too slow.
	skipped uint64
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
	show    func(entry)
	flush   func() error
	entries chan entry
	skipped atomic.Uint64
	begun   bool
	last    []entry // set before quit is closed
	quit    chan struct{}
	done    chan struct{} // closed after err was set
	err     error
}

// newFeed writes what render makes of entries.
func newFeed(w io.Writer, render func(entry) string) *feed {
	b := bufio.NewWriter(w)
	return feedTo(func(e entry) { _, _ = b.WriteString(render(e)) }, b.Flush) // Flush returns the error.
}

// feedTo flushes whenever nothing waits.
func feedTo(show func(entry), flush func() error) *feed {
	return &feed{
		show: show, flush: flush, entries: make(chan entry, feedLimit),
		quit: make(chan struct{}), done: make(chan struct{}),
	}
}

// begin shows the first entry and then the others.
func (f *feed) begin(first any) {
	f.begun = true
	go func() {
		defer close(f.done)
		f.err = f.run(entry{at: time.Now(), event: first})
	}()
}

// put never blocks.
func (f *feed) put(e entry) {
	select {
	case f.entries <- e:
	default:
		f.skipped.Add(1)
	}
}

// end shows what waits, then the last entries, of which none is left out, and
// returns the first error of writing. It leaves a reader alone that takes nothing.
func (f *feed) end(last ...entry) error {
	over := make(chan struct{})
	close(over)
	return f.drain(over, last)
}

// finish is end, which leaves a reader alone only when the context has ended.
func (f *feed) finish(ctx context.Context, last ...entry) error { return f.drain(ctx.Done(), last) }

func (f *feed) drain(over <-chan struct{}, last []entry) error {
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

func (f *feed) run(first entry) error {
	f.show(first)
	for {
		if n := f.skipped.Swap(0); n > 0 {
			f.show(entry{at: time.Now(), event: skipped(n)})
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
	feed    interface{ put(entry) }
	verbose bool
	ended   chan<- monitor.ProgramEvent // where to tell the end of a program; nil: in the feed
	epoch   uint64
	refused bool
}

func (w *watcher) put(event any) { w.feed.put(entry{time.Now(), w.name, event}) }

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
		if e.Fired || w.verbose {
			w.put(e)
		}
	case monitor.ProgramEvent:
		if w.ended != nil && e.Kind == monitor.ProgramFinish {
			w.ended <- e
			return
		}
		w.put(e)
	case monitor.Plan:
		if len(e.Plan.Moves) > 0 || w.verbose {
			w.put(e)
		}
	case monitor.Fate:
		if e.Signal.Predicate != wire.ProgramSignals || w.verbose {
			w.put(e)
		}
	case monitor.Clock, monitor.Reload:
		w.put(e)
	case monitor.Rejection:
		if w.verbose || !w.refused {
			w.put(refusal{e, !w.verbose})
		}
		w.refused = true
	}
}
