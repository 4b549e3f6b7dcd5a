package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/testnats"
	"github.com/gopegasus/pegasus/internal/wire"
)

// patience is how long a test waits for what must happen; on a healthy machine
// nothing comes near it.
const patience = 20 * time.Second

// process is a run whose output is read line by line.
type process struct {
	t      *testing.T
	cancel context.CancelFunc
	lines  chan string
	code   chan int
	stderr bytes.Buffer // read after code
	seen   []string
}

// launch begins a command that runs until stop.
func launch(t *testing.T, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	p := &process{t: t, cancel: cancel, lines: make(chan string, 10_000), code: make(chan int, 1)}
	go func() {
		code := Execute(ctx, args, strings.NewReader(""), w, &p.stderr)
		_ = w.Close()
		p.code <- code
	}()
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(r); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	t.Cleanup(cancel)
	return p
}

// line waits for a line that contains all the texts, passing over others.
func (p *process) line(texts ...string) string {
	p.t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				p.t.Fatalf("the output ended without a line with %q:\n%s\nexit %d\n%s", texts, strings.Join(p.seen, "\n"), <-p.code, &p.stderr)
			}
			p.seen = append(p.seen, line)
			if containsAll(line, texts) {
				return line
			}
		case <-deadline:
			p.t.Fatalf("no line with %q within %v:\n%s", texts, patience, strings.Join(p.seen, "\n"))
		}
	}
}

func containsAll(line string, texts []string) bool {
	for _, text := range texts {
		if !strings.Contains(line, text) {
			return false
		}
	}
	return true
}

// url is the first line of the output.
func (p *process) url() string {
	p.t.Helper()
	url := p.line()
	if !strings.HasPrefix(url, "nats://127.0.0.1:") {
		p.t.Fatalf("the first line is %q, want a URL", url)
	}
	return url
}

// object waits for a JSON line of that event.
func (p *process) object(event string) map[string]any {
	p.t.Helper()
	var o map[string]any
	line := p.line(`"event":"` + event + `"`)
	if err := json.Unmarshal([]byte(line), &o); err != nil {
		p.t.Fatalf("%s: %v", line, err)
	}
	return o
}

// exit waits for the end.
func (p *process) exit() (code int, stderr string) {
	p.t.Helper()
	select {
	case code = <-p.code:
		return code, p.stderr.String()
	case <-time.After(patience):
		p.t.Fatalf("still running after %v", patience)
		return 0, ""
	}
}

// stop ends the run as a signal does and wants it to succeed.
func (p *process) stop() {
	p.t.Helper()
	p.cancel()
	if code, stderr := p.exit(); code != exitOK || stderr != "" {
		p.t.Errorf("exit %d after the end of the context, stderr %q", code, stderr)
	}
}

// greet sends the hello of a member that says nothing more.
func greet(t *testing.T, url string, s wire.Subjects, member string, h wire.Hello) {
	t.Helper()
	h.Domain, h.Incarnation = clocksync.Domain("test"), 1
	frame, err := wire.AppendHello(nil, &h)
	if err != nil {
		t.Fatal(err)
	}
	b, err := bus.Dial(t.Context(), url, bus.Options{Extra: testnats.Options(t, url)})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Publish(s.State(member), frame); err != nil {
		t.Error(err)
	}
	if err := b.Flush(t.Context()); err != nil { // What others send from now on comes after it.
		t.Error(err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}
