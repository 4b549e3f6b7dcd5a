package work

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/workcore"
	"github.com/gopegasus/pegasus/internal/workreport"
)

// Trace has this member write a line of JSON for each task that its program puts, for each run of a task here that ends without an
// error, and for all data that it writes. `pegasus work sim --trace` runs the tasks of these lines on simulated nodes. Bags,
// objects, calls, tasks that run after others, that [Space.Next] takes or that functions put are no part of a trace: the
// simulator does not run them.
// The space writes one line at a time and waits for w. After an error it writes no more, and Close returns the error.
func Trace(w io.Writer) Option {
	if w == nil {
		return Option{err: errors.New("work: the writer of the trace is nil: leave Trace out")}
	}
	return Option{set: func(s *Space) { s.trace = &tracer{out: w} }}
}

// tracer writes the lines of a trace.
type tracer struct {
	mu  sync.Mutex
	out io.Writer
	err error
}

// write writes a line, unless one has failed before.
func (t *tracer) write(s *Space, l *workreport.TraceLine, at clocksync.Instant) {
	l.Member, l.At = s.link.Self().Name, at.Sub(0).Seconds()
	line, err := json.Marshal(l)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return
	}
	if err == nil {
		_, err = t.out.Write(append(line, '\n'))
	}
	if err != nil {
		t.err = fmt.Errorf("work: trace: a line was not written, and none after it: %w", err)
	}
}

// tracePut notes a task that the program has put.
func (s *Space) tracePut(t *workcore.Task) {
	if f := s.functions[t.Func]; s.trace != nil && f.total == nil && f.object == nil && len(t.After) == 0 {
		s.trace.write(s, &workreport.TraceLine{Put: t.ID, Weight: t.Weight, Bytes: len(t.Body), Reads: t.Reads}, s.link.Now())
	}
}

// traceRun notes a run that has ended.
func (r *run) traceRun(begun clocksync.Instant) {
	if r.f.total == nil && r.inbox == nil {
		now := r.space.link.Now()
		r.space.trace.write(r.space, &workreport.TraceLine{Ran: r.id, Seconds: now.Sub(begun).Seconds()}, now)
	}
}

// close returns the error of the first line that was not written.
func (t *tracer) close() error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}
