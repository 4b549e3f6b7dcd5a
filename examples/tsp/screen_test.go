package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestPlainScreen(t *testing.T) {
	start := time.Unix(1000, 0)
	var out bytes.Buffer
	s := newScreen(&out, false, start)
	for i := range 25 {
		s.live(fmt.Sprintf("at %d", i), start.Add(time.Duration(i)*100*time.Millisecond))
	}
	s.line("%s is lost", "w2")
	s.detail("only with -v")
	s.end()
	if got, want := out.String(), "at 10\nat 20\nw2 is lost\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestTerminal(t *testing.T) {
	var out bytes.Buffer
	s := &screen{out: &out, width: 10, verbose: true}
	s.live("short", time.Time{})
	s.live("much too long for it", time.Time{})
	s.detail("told")
	s.live("again", time.Time{})
	s.end()
	want := "\rshort\x1b[K" + "\rmuch too \x1b[K" + "\r\x1b[K" + "told\n" + "\ragain\x1b[K" + "\r\x1b[K"
	if got := out.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestPrefixed(t *testing.T) {
	var out bytes.Buffer
	p := &prefixed{screen: &screen{out: &out}, name: "w1"}
	for _, part := range []string{"one\ntw", "o\n", "", strings.Repeat("x", maxLine+1)} {
		if n, err := p.Write([]byte(part)); n != len(part) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	if got, want := out.String(), "w1: one\nw1: two\nw1: "+strings.Repeat("x", maxLine)+"\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
