package main

import (
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// screen is where a run tells how it goes: on a terminal one live line that is
// written over, below lines that stay; elsewhere plain lines, at most one a
// second beside those that tell of something that happened. It may be used from
// any goroutine.
type screen struct {
	verbose bool

	mu       sync.Mutex
	out      io.Writer
	width    int // of the terminal, 0: it is none
	shown    bool
	lastLive time.Time
}

// plainEvery is the least time between two live lines that are not on a
// terminal.
const plainEvery = time.Second

func newScreen(out io.Writer, verbose bool, start time.Time) *screen {
	s := &screen{out: out, verbose: verbose, lastLive: start}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		s.width = 80
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			s.width = w
		}
	}
	return s
}

// line writes a line that stays.
func (s *screen) line(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	say(s.out, format+"\n", args...)
}

// detail writes a line that only -v asks for.
func (s *screen) detail(format string, args ...any) {
	if s.verbose {
		s.line(format, args...)
	}
}

// live shows how the run is at the moment.
func (s *screen) live(text string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.width > 0:
		if r := []rune(text); len(r) >= s.width {
			text = string(r[:s.width-1])
		}
		say(s.out, "\r%s\x1b[K", text)
		s.shown = true
	case now.Sub(s.lastLive) >= plainEvery:
		say(s.out, "%s\n", text)
		s.lastLive = now
	}
}

// end takes the live line away.
func (s *screen) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
}

func (s *screen) clear() {
	if s.shown {
		say(s.out, "\r\x1b[K")
		s.shown = false
	}
}

// prefixed writes what a worker says, line by line, with its name in front.
type prefixed struct {
	screen *screen
	name   string
	rest   []byte
}

// maxLine bounds a line of a worker.
const maxLine = 4096

// Write implements io.Writer.
func (p *prefixed) Write(b []byte) (int, error) {
	for _, c := range b {
		if c != '\n' && len(p.rest) < maxLine {
			p.rest = append(p.rest, c)
			continue
		}
		p.screen.line("%s: %s", p.name, p.rest)
		p.rest = p.rest[:0]
	}
	return len(b), nil
}
