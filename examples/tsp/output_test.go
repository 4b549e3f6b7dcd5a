package main

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// output collects what a program writes, and lets tests wait for it.
type output struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{}
}

func newOutput() *output { return &output{more: make(chan struct{})} }

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(b)
	close(o.more)
	o.more = make(chan struct{})
	return len(b), nil
}

// String is everything so far.
func (o *output) String() string {
	s, _ := o.sofar()
	return s
}

func (o *output) sofar() (string, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String(), o.more
}

// await waits until the program has written something that matches.
func (p *program) await(t *testing.T, o *output, matches func(string) bool) string {
	t.Helper()
	timeout := time.After(safety)
	for {
		text, more := o.sofar()
		if matches(text) {
			return text
		}
		select {
		case <-more:
		case <-p.done:
			if text := o.String(); matches(text) {
				return text
			}
			t.Fatalf("the program ended before:\n%s\n%s", p.stdout, p.stderr)
		case <-timeout:
			t.Fatalf("not in time:\n%s\n%s", p.stdout, p.stderr)
		}
	}
}

func contains(what string) func(string) bool {
	return func(text string) bool { return strings.Contains(text, what) }
}
