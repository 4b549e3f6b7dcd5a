package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gopegasus/pegasus/internal/show"
)

// gate is a writer that waits to be let through.
type gate struct {
	arrived chan struct{}
	open    chan struct{}
	text    strings.Builder // read after the feed has ended
}

func (g *gate) Write(b []byte) (int, error) {
	select {
	case g.arrived <- struct{}{}:
	default:
	}
	<-g.open
	return g.text.Write(b)
}

// plainText renders notices and counts only.
func plainText(e show.Entry) string {
	switch event := e.Event.(type) {
	case show.Ready:
		return "ready\n"
	case show.Notice:
		return string(event) + "\n"
	case show.Skipped:
		return fmt.Sprintf("skipped %d\n", event)
	}
	return "?\n"
}

// TestFeedOfASlowReader loses the newest entries and tells how many.
func TestFeedOfASlowReader(t *testing.T) {
	const tooMany = 7
	g := &gate{arrived: make(chan struct{}, 1), open: make(chan struct{})}
	f := newFeed(g, plainText)
	f.begin(show.Ready{})
	<-g.arrived
	for i := range feedLimit + tooMany {
		f.put(show.Entry{Event: show.Notice(strconv.Itoa(i))})
	}
	close(g.open)
	if err := f.end(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(g.text.String()), "\n")
	if len(lines) != feedLimit+2 || lines[0] != "ready" {
		t.Fatalf("%d lines, the first %q, want %d", len(lines), lines[0], feedLimit+2)
	}
	next := 0
	for _, line := range lines[1:] {
		if line == fmt.Sprintf("skipped %d", tooMany) {
			continue
		}
		if line != strconv.Itoa(next) {
			t.Fatalf("%q where %d was next", line, next)
		}
		next++
	}
	if next != feedLimit {
		t.Errorf("%d entries were told, want %d", next, feedLimit)
	}
}

// TestFeedOfAResult: what must not be left out waits for a reader, however slow that is,
// until the context ends or nobody reads any more.
func TestFeedOfAResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{arrived: make(chan struct{}, 1), open: make(chan struct{})}
		f := newFeed(g, plainText)
		f.begin(show.Ready{})
		<-g.arrived
		for range feedLimit + 1 {
			f.put(show.Entry{Event: show.Notice("x")})
		}
		go func() {
			time.Sleep(10 * feedPatience)
			close(g.open)
		}()
		if err := f.finishFeed(t.Context(), show.Entry{Event: show.Notice("the result")}); err != nil || !strings.HasSuffix(g.text.String(), "\nthe result\n") {
			t.Errorf("%v: %d bytes", err, g.text.Len())
		}

		g = &gate{arrived: make(chan struct{}, 1), open: make(chan struct{})}
		f = newFeed(g, plainText)
		f.begin(show.Ready{})
		<-g.arrived
		f.put(show.Entry{Event: show.Notice("x")})
		go func() {
			time.Sleep(10 * feedPatience)
			close(g.open)
		}()
		if err := f.finishFeed(t.Context()); err != nil || g.text.String() != "ready\nx\n" {
			t.Errorf("%v: %q", err, g.text.String())
		}
		f = newFeed(brokenWriter{}, plainText)
		f.begin(show.Ready{})
		synctest.Wait()
		for range feedLimit {
			f.put(show.Entry{Event: show.Notice("x")})
		}
		if err := f.finishFeed(t.Context(), show.Entry{Event: show.Notice("the result")}); !errors.Is(err, errFull) {
			t.Errorf("got %v, want %v", err, errFull)
		}
	})
}

// TestFeedKeepsWhatCameEarly: lines that were put in before the feed began follow
// the first entry.
func TestFeedKeepsWhatCameEarly(t *testing.T) {
	var text strings.Builder
	f := newFeed(&text, plainText)
	f.put(show.Entry{Event: show.Notice("early")})
	f.begin(show.Ready{})
	if err := f.end(); err != nil || text.String() != "ready\nearly\n" {
		t.Errorf("%q, %v", text.String(), err)
	}
}

func TestFeedTellsThatItCannotWrite(t *testing.T) {
	f := newFeed(brokenWriter{}, plainText)
	f.begin(show.Ready{})
	if err := f.end(); !errors.Is(err, errFull) {
		t.Errorf("got %v, want %v", err, errFull)
	}
	if err := newFeed(io.Discard, plainText).end(); err != nil {
		t.Errorf("a feed that never began ends with %v", err)
	}
}

func TestFeedFlushesEachEntry(t *testing.T) {
	r, w := io.Pipe()
	f := newFeed(w, plainText)
	f.begin(show.Ready{})
	buffer := make([]byte, 100)
	for i := range 3 {
		n, err := r.Read(buffer)
		if err != nil || !strings.HasSuffix(string(buffer[:n]), "\n") {
			t.Fatalf("%q, %v", buffer[:n], err)
		}
		f.put(show.Entry{Event: show.Notice(strconv.Itoa(i))})
	}
	if _, err := r.Read(buffer); err != nil {
		t.Fatal(err)
	}
	if err := f.end(); err != nil {
		t.Error(err)
	}
}
