package work_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/testnats"
	"github.com/gopegasus/pegasus/synchronizer"
	"github.com/gopegasus/pegasus/work"
)

var durableText = strings.Replace(live, "{slots: 1}", "{slots: 1, store: jetstream}", 1)

// newDurable is newLive with a server that has JetStream in a directory.
func newDurable(t *testing.T, dir string, members int) *liveGroup {
	t.Helper()
	server, err := embedded.Start(embedded.Options{JetStream: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return durableOn(t, server, "gsync", durableText, members)
}

// durableOn is a group on a server that is there.
func durableOn(t *testing.T, server *embedded.Server, sync, text string, members int) *liveGroup {
	t.Helper()
	cfg, err := synchronizer.ParseConfig("test.yaml", []byte(text), synchronizer.Members(sync, members))
	if err != nil {
		t.Fatal(err)
	}
	g := &liveGroup{t: t, server: server, cfg: cfg}
	g.start()
	t.Cleanup(func() { _ = g.sync.Close() })
	return g
}

func putNamed(t *testing.T, s *work.Space, n int) {
	t.Helper()
	for i := range n {
		if err := s.Put(limited(t), "task", i, work.ID("task/%d", i)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDurable: tasks, phases and results are as with store: memory.
func TestDurable(t *testing.T) {
	t.Parallel()
	g := newDurable(t, t.TempDir(), 3)
	gate := newGate()
	close(gate.open)
	list := g.spaces([]string{"a", "b", "c"}, gate.option())
	for _, s := range list[1:] {
		serveLive(t, s)
	}
	for range 3 {
		putNamed(t, list[0], 30)
		collect(t, list[0], 30)
	}
	if s := list[0].Stats(); s.Phase != 4 || s.Redone != 0 {
		t.Errorf("%+v", s)
	}
	for it, err := range work.Loop(list[0], "rows", 1, nil, work.Home()).Iterations(limited(t)) {
		if want := `work: loop "rows": store: jetstream has no loops: use store: memory`; it != nil || err == nil || err.Error() != want {
			t.Errorf("%v, %v, want %s", it, err, want)
		}
	}
}

// TestDurableRestart: everything is killed in the middle of a phase, and the same programs on the same directory
// come to the same results, each once.
func TestDurableRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	gate := newGate()
	g := newDurable(t, dir, 2)
	list := g.spaces([]string{"a", "b"}, gate.option())
	serveLive(t, list[1])
	putNamed(t, list[0], 30)
	gate.await(t, 2)
	close(gate.open)
	var known []int
	for r, err := range work.Results[int](limited(t), list[0], "task") {
		if err != nil {
			t.Fatal(err)
		}
		if known = append(known, r.Value); len(known) == 5 {
			break
		}
	}
	g.server.Close() // Nobody can write anything any more.
	for _, s := range list {
		_ = s.Close()
	}
	_ = g.sync.Close()
	g = newDurable(t, dir, 2)
	list = g.spaces([]string{"a", "b"}, gate.option())
	serveLive(t, list[1])
	putNamed(t, list[0], 30)
	collect(t, list[0], 30)
	for _, n := range known {
		if gate.ran(n) != 1 {
			t.Errorf("task %d ran %d times, and its result was told after the first", n, gate.ran(n))
		}
	}
}

// TestDurableOrphan: the member that has put the tasks is cut off. Another one takes over its account, and a third
// one reads the results.
func TestDurableOrphan(t *testing.T) {
	t.Parallel()
	g := newDurable(t, t.TempDir(), 3)
	proxy := newProxy(t, g.server.URL())
	gate := newGate()
	list := g.spacesBy(proxy.of("b"), []string{"a", "b", "c"}, gate.option())
	serveLive(t, list[0])
	putNamed(t, list[1], 30)
	gate.await(t, 3)
	proxy.hold()
	close(gate.open)
	seen := map[int]int{}
	for r, err := range work.Results[int](limited(t), list[2], "task", work.Of("b")) {
		if err != nil {
			t.Fatal(err)
		}
		seen[r.Value]++
	}
	for n := range 30 {
		if seen[n] != 1 {
			t.Errorf("task %d has %d results", n, seen[n])
		}
	}
	proxy.release()
	if err := list[1].Wait(limited(t)); !errors.Is(err, work.ErrDropped) {
		t.Errorf("the member that was cut off: %v", err)
	}
}

// jetStreamOf is JetStream of the server of a group.
func jetStreamOf(t *testing.T, g *liveGroup) jetstream.JetStream {
	t.Helper()
	conn, err := nats.Connect(g.server.URL(), testnats.Options(t, g.server.URL())...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// TestDurableDeleted: somebody deletes the stream while tasks run. Nothing is reported as done, and the error says what to do.
func TestDurableDeleted(t *testing.T) {
	t.Parallel()
	g := newDurable(t, t.TempDir(), 2)
	gate := newGate()
	list := g.spaces([]string{"a", "b"}, gate.option())
	serveLive(t, list[1])
	putNamed(t, list[0], 3)
	gate.await(t, 2)
	if err := jetStreamOf(t, g).DeleteStream(t.Context(), "pegasus+default+g"); err != nil {
		t.Fatal(err)
	}
	close(gate.open)
	const want = "work: stream pegasus+default+g: the stream was deleted, and its tasks with it, or it has no leader now: if nats stream info does not find it, " +
		"open the space again, which creates it, and put the tasks again: nats: no response from stream: the stream is not there"
	if err := list[0].Wait(limited(t)); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if err := list[0].Put(limited(t), "task", 1); err == nil {
		t.Error("a task was put into a stream that is not there")
	}
}

// TestDurableFull: Put waits at three quarters of what the log may have, and goes on once a phase was removed.
func TestDurableFull(t *testing.T) {
	t.Parallel()
	server, err := embedded.Start(embedded.Options{JetStream: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	g := durableOn(t, server, "gsync", strings.Replace(durableText, "store: jetstream", "store: jetstream, log: {most: 1}", 1), 1)
	a := g.spaces([]string{"a"}, work.Func("long", func(_ context.Context, text []byte) (int, error) { return len(text), nil }))[0]
	long := make([]byte, 40<<10)
	for phase := range 3 {
		var waits error
		n := 0
		for ; waits == nil && n < 40; n++ {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			waits = a.Put(ctx, "long", long)
			cancel()
		}
		if want := "the log is filled to three quarters of log.most: work: wait: context deadline exceeded"; phase == 0 && (waits == nil || !strings.HasSuffix(waits.Error(), want)) {
			t.Errorf("phase %d, %d tasks: %v, want %s", phase, n, waits, want)
		}
		if err := a.Wait(limited(t)); err != nil {
			t.Fatal(err)
		}
		if err := a.Wait(limited(t)); err != nil { // The phase before is removed when the next one is over.
			t.Fatal(err)
		}
	}
}

// TestDurableGroups: two groups on one server have a stream each.
func TestDurableGroups(t *testing.T) {
	t.Parallel()
	one := newDurable(t, t.TempDir(), 1)
	two := durableOn(t, one.server, "hsync", strings.NewReplacer("gsync", "hsync", "group: g", "group: h").Replace(durableText), 1)
	two.group = "h"
	gate := newGate()
	close(gate.open)
	a, b := one.spaces([]string{"a"}, gate.option())[0], two.spaces([]string{"a"}, gate.option())[0]
	putNamed(t, a, 5)
	putNamed(t, b, 7)
	collect(t, a, 5)
	collect(t, b, 7)
}

// TestOfWhom: what asks for the results of others is refused where there are none.
func TestOfWhom(t *testing.T) {
	t.Parallel()
	gate := newGate()
	close(gate.open)
	memory := newLive(t, live, 1).spaces([]string{"a"}, gate.option())[0]
	for _, err := range work.Results[int](limited(t), memory, "task", work.Of("b")) {
		if want := `work: the results of tasks that "b" has put for "task": with store: memory only the member that puts a task gets its result: use store: jetstream`; err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	a := newDurable(t, t.TempDir(), 1).spaces([]string{"a"}, gate.option())[0]
	n := 0
	for _, err := range work.Results[int](limited(t), a, "task", work.Of("b")) {
		if want := `work: no member "b" has ever opened the space: give Of the name of a member that has`; err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		n++
	}
	if n != 1 {
		t.Errorf("%d errors", n)
	}
	putNamed(t, a, 3)
	n = 0
	for _, err := range work.Results[int](limited(t), a, "task", work.Of("a")) { // These are its own.
		if n++; err != nil {
			t.Error(err)
		}
	}
	if n != 3 {
		t.Errorf("%d results", n)
	}
}

// TestDurableJunk: a message of somebody else in the stream keeps the phase from ending, since it may hide tasks. The log
// names it once, and the phase ends when it is removed.
func TestDurableJunk(t *testing.T) {
	t.Parallel()
	g := newDurable(t, t.TempDir(), 1)
	var text testlog
	g.log = slog.New(slog.NewTextHandler(&text, nil))
	a := g.spaces([]string{"a"}, work.Func("task", func(_ context.Context, n int) (int, error) { return n, nil }))[0]
	js := jetStreamOf(t, g)
	ack, err := js.Publish(t.Context(), "pegasus+default+g.a.stranger", []byte("junk"))
	if err != nil {
		t.Fatal(err)
	}
	putNamed(t, a, 3)
	over := make(chan error, 1)
	go func() { over <- a.Wait(limited(t)) }()
	want := fmt.Sprintf("message %d: batch of a log: it has another form than this program reads: let all members of the space run the same version, or remove the message if another program has written it", ack.Sequence)
	until(t, func() bool { return strings.Contains(text.String(), want) })
	select {
	case err := <-over:
		t.Fatalf("the phase has ended: %v", err)
	case <-time.After(time.Second): // Several attempts.
	}
	if n := strings.Count(text.String(), "whether the phase is over cannot be decided"); n != 1 {
		t.Errorf("it is told %d times", n)
	}
	stream, err := js.Stream(t.Context(), "pegasus+default+g")
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.DeleteMsg(t.Context(), ack.Sequence); err != nil {
		t.Fatal(err)
	}
	if err := <-over; err != nil {
		t.Error(err)
	}
}

// testlog is what was logged.
type testlog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *testlog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *testlog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
