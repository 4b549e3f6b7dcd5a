package main

import (
	"io"
	"strings"
	"testing"
	"time"
)

// TestCrewGivesUp: a worker that ends before the search begins is started again
// a few times.
func TestCrewGivesUp(t *testing.T) {
	var out strings.Builder
	gone := make(chan error, 1)
	c := &crew{
		args: []string{"-frob"}, screen: newScreen(&out, false, time.Now()), begun: func() bool { return false },
		deserted: func(err error) { gone <- err }, workers: map[string]*process{},
	}
	if err := c.start(1); err != nil {
		t.Fatal(err)
	}
	want := "worker w1 ended 4 times before the search began, the last time with exit status 2"
	if err := <-gone; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	c.leave(0)
	for _, line := range []string{
		"w1 ended before the search began (exit status 2): starting it again\n",
		"w1: tsp: flag provided but not defined: -frob\n",
	} {
		if n := strings.Count(out.String(), line); n < restarts {
			t.Errorf("%d times %q in\n%s", n, line, &out)
		}
	}
}

// TestCrewLeaves ends workers that do not end by themselves.
func TestCrewLeaves(t *testing.T) {
	c := &crew{
		args: []string{"-worker", "-nats", "nats://127.0.0.1:1", "-run", "x"}, screen: newScreen(io.Discard, false, time.Now()),
		begun: func() bool { return true }, deserted: func(error) {}, workers: map[string]*process{},
	}
	if err := c.start(2); err != nil {
		t.Fatal(err)
	}
	c.leave(0)
	if len(c.workers) > 0 {
		t.Errorf("%d workers are left", len(c.workers))
	}
	if err := c.launch("w9", 0); err != nil || len(c.workers) > 0 {
		t.Errorf("a worker was started in the end: %v", err)
	}
}
