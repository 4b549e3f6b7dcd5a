package bus_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/testwait"
)

// TestSuite holds every kind of bus to the same promises.
func TestSuite(t *testing.T) {
	backends := map[string]func(*testing.T) backend{"in process": overInProcess, "nats": overNATS, "wrapped": overWrapped}
	cases := map[string]func(*testing.T, backend){
		"wildcards":          testWildcards,
		"no echo":            testNoEcho,
		"order":              testOrder,
		"data is a copy":     testDataIsACopy,
		"bad subjects":       testBadSubjects,
		"too large":          testTooLarge,
		"request":            testRequest,
		"concurrent request": testConcurrentRequests,
		"no responders":      testNoResponders,
		"request in vain":    testRequestInVain,
		"gather":             testGather,
		"slow handler":       testSlowHandler,
		"slow in bytes":      testSlowInBytes,
		"outage":             testOutage,
		"close drains":       testCloseDrains,
		"close is bounded":   testCloseIsBounded,
		"after close":        testAfterClose,
	}
	for backend, start := range backends {
		for name, test := range cases {
			t.Run(backend+"/"+name, func(t *testing.T) { test(t, start(t)) })
		}
	}
}

// overWrapped is NATS with connections of the caller, set up as Dial would.
func overWrapped(t *testing.T) backend {
	t.Helper()
	b := overNATS(t)
	b.connect = func(t *testing.T, opts bus.Options) *bus.Bus {
		t.Helper()
		nc, err := nats.Connect(b.url, nats.NoEcho(), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond),
			nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		w, err := bus.Wrap(nc, opts)
		if err != nil {
			t.Fatal(err)
		}
		closeAfter(t, w)
		return w
	}
	return b
}

// collect subscribes and passes on what comes.
func collect(t *testing.T, b *bus.Bus, subject string) <-chan bus.Message {
	t.Helper()
	ch := make(chan bus.Message, 10_000)
	subscribe(t, b, subject, bus.Limits{}, func(m bus.Message) { ch <- m })
	return ch
}

func subscribe(t *testing.T, b *bus.Bus, subject string, limits bus.Limits, h bus.Handler) {
	t.Helper()
	if err := b.Subscribe(subject, limits, h); err != nil {
		t.Fatal(err)
	}
	flush(t, b)
}

func publish(t *testing.T, b *bus.Bus, subject, data string) {
	t.Helper()
	if err := b.Publish(subject, []byte(data)); err != nil {
		t.Fatal(err)
	}
}

func flush(t *testing.T, b *bus.Bus) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := b.Flush(ctx); err != nil {
		t.Fatal(err)
	}
}

func testWildcards(t *testing.T, b backend) {
	from, to := b.connect(t, bus.Options{}), b.connect(t, bus.Options{})
	patterns := []string{"a.b.c", "a.*.c", "a.>", "*.*.*", ">", "a.b", "*", "a.b.c.>", "b.>"}
	var mu sync.Mutex
	got := map[string]string{}
	for _, p := range patterns {
		subscribe(t, to, p, bus.Limits{}, func(m bus.Message) {
			mu.Lock()
			defer mu.Unlock()
			got[p] += m.Subject + " "
		})
	}
	end := collect(t, to, "end")
	for _, s := range []string{"a.b.c", "a.x.c", "a.b", "a", "a.b.c.d", "end"} {
		publish(t, from, s, "")
	}
	await(t, "the last message", end)
	if err := to.Close(); err != nil { // Waits for the handlers.
		t.Fatal(err)
	}
	want := map[string]string{
		"a.b.c": "a.b.c ", "a.*.c": "a.b.c a.x.c ", "a.>": "a.b.c a.x.c a.b a.b.c.d ", "*.*.*": "a.b.c a.x.c ",
		">": "a.b.c a.x.c a.b a a.b.c.d end ", "a.b": "a.b ", "*": "a end ", "a.b.c.>": "a.b.c.d ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func testNoEcho(t *testing.T, b backend) {
	one, two := b.connect(t, bus.Options{}), b.connect(t, bus.Options{})
	got := collect(t, one, "x")
	publish(t, one, "x", "own")
	flush(t, one) // Else the two connections would have no order.
	publish(t, two, "x", "other")
	if m := await(t, "the other's message", got); string(m.Data) != "other" {
		t.Errorf("got %q, its own message", m.Data)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := one.Request(ctx, "x", nil); !errors.Is(err, bus.ErrNoResponders) {
		t.Errorf("a request to itself: %v", err)
	}
}

func testOrder(t *testing.T, b backend) {
	const publishers, each = 4, 2000
	to := b.connect(t, bus.Options{})
	got := collect(t, to, "order.*")
	for p := range publishers {
		from := b.connect(t, bus.Options{})
		go func() {
			for i := range each {
				if err := from.Publish("order."+strconv.Itoa(p), []byte(strconv.Itoa(i))); err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	next := map[string]int{}
	for range publishers * each {
		m := await(t, "all messages", got)
		if string(m.Data) != strconv.Itoa(next[m.Subject]) {
			t.Fatalf("%s: got %s, want %d", m.Subject, m.Data, next[m.Subject])
		}
		next[m.Subject]++
	}
}

func testDataIsACopy(t *testing.T, b backend) {
	from, to := b.connect(t, bus.Options{}), b.connect(t, bus.Options{})
	got := collect(t, to, "x")
	buf := []byte("before")
	if err := from.Publish("x", buf); err != nil {
		t.Fatal(err)
	}
	copy(buf, "after!")
	if m := await(t, "the message", got); string(m.Data) != "before" {
		t.Errorf("got %q", m.Data)
	}
}

func testBadSubjects(t *testing.T, b backend) {
	c := b.connect(t, bus.Options{})
	nothing := func(bus.Message) {}
	tests := []struct{ subject, publish, subscribe string }{
		{"", "it has 0 bytes, not 1 to 1024", "it has 0 bytes, not 1 to 1024"},
		{strings.Repeat("x", 1025), "it has 1025 bytes, not 1 to 1024", "it has 1025 bytes, not 1 to 1024"},
		{".a", "empty token at byte 0", "empty token at byte 0"},
		{"a..b", "empty token at byte 2", "empty token at byte 2"},
		{"a.", "empty token at byte 2", "empty token at byte 2"},
		{"a b", "space or control character at byte 1", "space or control character at byte 1"},
		{"a\r\nPUB b", "space or control character at byte 1", "space or control character at byte 1"},
		{"a.*", "wildcard at byte 2", ""},
		{"a.>", "wildcard at byte 2", ""},
		{"a.*b", "wildcard at byte 2", "wildcard at byte 2"},
		{"a*", "wildcard at byte 1", "wildcard at byte 1"},
		{">.a", "wildcard at byte 0", "wildcard at byte 0"},
		{"a.é.$b", "", ""},
	}
	check := func(op, subject, want string, err error) {
		t.Helper()
		if want == "" {
			if err != nil {
				t.Errorf("%s %q: %v", op, subject, err)
			}
			return
		}
		text := fmt.Sprintf("bus: %s %q: not a valid subject: %s", op, subject, want)
		if !errors.Is(err, bus.ErrSubject) || err.Error() != text {
			t.Errorf("got %v\nwant %s", err, text)
		}
	}
	for _, tt := range tests {
		check("publish", tt.subject, tt.publish, c.Publish(tt.subject, nil))
		err := c.Subscribe(tt.subject, bus.Limits{}, nothing)
		check("subscribe", tt.subject, tt.subscribe, err)
		if tt.publish != "" {
			_, err = c.Request(t.Context(), tt.subject, nil)
			check("request", tt.subject, tt.publish, err)
		}
	}
	flush(t, c) // The connection has survived.
}

func testTooLarge(t *testing.T, b backend) {
	from, to := b.connect(t, bus.Options{}), b.connect(t, bus.Options{})
	got := collect(t, to, "x")
	if err := from.Publish("x", make([]byte, b.limit)); err != nil {
		t.Error(err)
	}
	if m := await(t, "the largest message", got); len(m.Data) != b.limit {
		t.Errorf("got %d bytes", len(m.Data))
	}
	err := from.Publish("x", make([]byte, b.limit+1))
	want := fmt.Sprintf(`bus: publish "x": the message is larger than the server allows: %d bytes, limit %d`, b.limit+1, b.limit)
	if !errors.Is(err, bus.ErrTooLarge) || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func testRequest(t *testing.T, b backend) {
	client, server := b.connect(t, bus.Options{}), b.connect(t, bus.Options{})
	subscribe(t, server, "echo.*", bus.Limits{}, func(m bus.Message) {
		for range 2 { // The second is of no use, and of no harm.
			if err := server.Reply(m, append([]byte("re: "), m.Data...)); err != nil {
				t.Error(err)
			}
		}
	})
	for i := range 3 {
		got, err := client.Request(t.Context(), "echo.x", []byte(strconv.Itoa(i)))
		if err != nil || string(got) != "re: "+strconv.Itoa(i) {
			t.Errorf("request %d: %q, %v", i, got, err)
		}
	}
	err := server.Reply(bus.Message{Subject: "x"}, nil)
	if !errors.Is(err, bus.ErrNoReply) || err.Error() != `bus: reply to "x": the message is not a request, there is nobody to answer` {
		t.Error(err)
	}
	err = server.Reply(bus.Message{Subject: "x", Reply: "sg.w2"}, nil)
	if !errors.Is(err, bus.ErrReply) || err.Error() != `bus: reply to "x": only a reply subject that begins with _INBOX. is answered: it is "sg.w2"` {
		t.Error(err)
	}
}

func testConcurrentRequests(t *testing.T, b backend) {
	client, server := b.connect(t, bus.Options{}), b.connect(t, bus.Options{})
	subscribe(t, server, "echo", bus.Limits{}, func(m bus.Message) {
		if err := server.Reply(m, m.Data); err != nil {
			t.Error(err)
		}
	})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 100 {
				want := fmt.Sprint(i, j)
				if got, err := client.Request(t.Context(), "echo", []byte(want)); err != nil || string(got) != want {
					t.Errorf("want %q, got %q, %v", want, got, err)
				}
			}
		})
	}
	wg.Wait()
}

// testGather takes many replies of several subscribers, and stops when it is told
// to.
func testGather(t *testing.T, b backend) {
	client := b.connect(t, bus.Options{})
	for _, name := range []string{"a", "b"} {
		server := b.connect(t, bus.Options{})
		subscribe(t, server, "all", bus.Limits{}, func(m bus.Message) {
			for i := range 50 {
				if err := server.Reply(m, fmt.Append(nil, string(m.Data), name, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	got, next := 0, map[byte]int{}
	err := client.Gather(t.Context(), "all", []byte("re "), func(reply []byte) bool {
		from := reply[3]
		if want := fmt.Sprintf("re %c%d", from, next[from]); string(reply) != want {
			t.Errorf("got %s, want %s", reply, want)
		}
		next[from]++
		got++
		return got < 100
	})
	if err != nil || next['a'] != 50 || next['b'] != 50 {
		t.Errorf("%v after %v", err, next)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = client.Gather(ctx, "all", nil, func([]byte) bool { cancel(); return true })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("after the context has ended: %v", err)
	}
	err = client.Gather(t.Context(), "nobody", nil, func([]byte) bool { return true })
	if !errors.Is(err, bus.ErrNoResponders) {
		t.Errorf("nobody answers: %v", err)
	}
	if err := client.Gather(t.Context(), "a..b", nil, nil); !errors.Is(err, bus.ErrSubject) {
		t.Errorf("a bad subject: %v", err)
	}
}

func testNoResponders(t *testing.T, b backend) {
	c := b.connect(t, bus.Options{})
	_, err := c.Request(t.Context(), "nobody", nil)
	if !errors.Is(err, bus.ErrNoResponders) || err.Error() != `bus: request "nobody": nobody subscribes to the subject` {
		t.Error(err)
	}
}

func testRequestInVain(t *testing.T, b backend) {
	client, server := b.connect(t, bus.Options{}), b.connect(t, bus.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	subscribe(t, server, "silent", bus.Limits{}, func(bus.Message) { cancel() })
	if _, err := client.Request(ctx, "silent", nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := client.Request(ctx, "silent", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is done: %v", err)
	}
}

// hold subscribes with a handler that waits for a release of each message.
func hold(t *testing.T, b *bus.Bus, limits bus.Limits) (begun <-chan string, release chan<- struct{}) {
	t.Helper()
	in, out := make(chan string, 1000), make(chan struct{}, 1000)
	subscribe(t, b, "x", limits, func(m bus.Message) {
		in <- string(m.Data)
		<-out
	})
	return in, out
}

func testSlowHandler(t *testing.T, b backend) {
	const limit, more = 10, 25
	errs := make(chan error, 100)
	from, to := b.connect(t, bus.Options{}), b.connect(t, bus.Options{OnError: func(err error) { errs <- err }})
	begun, release := hold(t, to, bus.Limits{Messages: limit})
	for round := range 2 {
		publish(t, from, "x", "first")
		await(t, "the handler", begun)
		for i := range limit + more - 1 {
			publish(t, from, "x", strconv.Itoa(i))
		}
		flush(t, from)
		flush(t, to)
		want := uint64(more * (round + 1))
		if got := to.Dropped(); got != want {
			t.Fatalf("dropped %d, want %d", got, want)
		}
		slow, ok := errors.AsType[*bus.SlowError](await(t, "the report", errs))
		if !ok || slow.Subject != "x" || slow.Dropped <= want-more || slow.Dropped > want {
			t.Fatalf("reported %+v", slow)
		}
		release <- struct{}{}
		for i := range limit - 1 { // The oldest are kept.
			if got := await(t, "a message that was kept", begun); got != strconv.Itoa(i) {
				t.Fatalf("message %d is %q", i, got)
			}
			release <- struct{}{}
		}
		publish(t, from, "x", "taken") // Ends the loss.
		await(t, "a message after the loss", begun)
		release <- struct{}{}
		// The handler returns a moment after it was released.
		publish(t, from, "x", "idle")
		await(t, "another", begun)
		release <- struct{}{}
	}
	if len(errs) > 0 {
		t.Errorf("reported once more: %v", <-errs)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	if got := to.Dropped(); got != 2*more {
		t.Errorf("dropped %d after the end", got)
	}
}

func testSlowInBytes(t *testing.T, b backend) {
	from, to := b.connect(t, bus.Options{}), b.connect(t, bus.Options{})
	begun, release := hold(t, to, bus.Limits{Bytes: 203})
	for i := range 5 { // 101 bytes each with the subject.
		publish(t, from, "x", strings.Repeat(strconv.Itoa(i), 100))
	}
	publish(t, from, "x", "") // Finds room for one byte, too little for its predecessors.
	flush(t, from)
	flush(t, to)
	if got := to.Dropped(); got != 3 {
		t.Errorf("dropped %d, want 3", got)
	}
	for _, want := range []string{strings.Repeat("0", 100), strings.Repeat("1", 100), ""} {
		if got := await(t, "a message", begun); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		release <- struct{}{}
	}
}

func testOutage(t *testing.T, b backend) {
	lost, back := make(chan error, 10), make(chan struct{}, 10)
	from := b.connect(t, bus.Options{})
	to := b.connect(t, bus.Options{OnDisconnect: func(err error) { lost <- err }, OnReconnect: func() { back <- struct{}{} }})
	got := collect(t, to, "x")
	if s := to.State(); s != bus.Connected {
		t.Fatal(s)
	}
	b.stop()
	if err := await(t, "OnDisconnect", lost); err == nil {
		t.Error("no cause")
	}
	testwait.Until(t, "both to notice", func() bool { return to.State() == bus.Reconnecting && from.State() == bus.Reconnecting })
	err := from.Publish("x", []byte("lost"))
	if !errors.Is(err, bus.ErrDisconnected) || err.Error() != `bus: publish "x": the server is away, reconnecting; nothing was sent` {
		t.Error(err)
	}
	if _, err := from.Request(t.Context(), "x", nil); !errors.Is(err, bus.ErrDisconnected) {
		t.Error(err)
	}
	if err := from.Flush(t.Context()); !errors.Is(err, bus.ErrDisconnected) {
		t.Error(err)
	}
	b.start(t)
	await(t, "OnReconnect", back)
	testwait.Until(t, "both to be back", func() bool { return to.State() == bus.Connected && from.State() == bus.Connected })
	flush(t, to)
	publish(t, from, "x", "after")
	if m := await(t, "a message after the outage", got); string(m.Data) != "after" {
		t.Errorf("got %q, which was to be lost", m.Data)
	}
	if len(back) > 0 {
		t.Error("back twice")
	}
}

func testCloseDrains(t *testing.T, b backend) {
	const n = 100
	from, to := b.connect(t, bus.Options{}), b.connect(t, bus.Options{})
	answers := collect(t, from, "answer")
	entered, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	subscribe(t, to, "x", bus.Limits{}, func(m bus.Message) {
		once.Do(func() {
			close(entered)
			<-goOn
		})
		if err := to.Publish("answer", m.Data); err != nil {
			t.Error(err)
		}
	})
	for i := range n {
		publish(t, from, "x", strconv.Itoa(i))
	}
	flush(t, from)
	await(t, "the handler", entered)
	time.AfterFunc(20*time.Millisecond, func() { close(goOn) })
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if m := await(t, "an answer", answers); string(m.Data) != strconv.Itoa(i) {
			t.Fatalf("answer %d is %s", i, m.Data)
		}
	}
}

func testCloseIsBounded(t *testing.T, b backend) {
	from := b.connect(t, bus.Options{})
	to := b.connect(t, bus.Options{DrainTimeout: 50 * time.Millisecond})
	begun, release := hold(t, to, bus.Limits{})
	publish(t, from, "x", "1")
	publish(t, from, "x", "2")
	await(t, "the handler", begun)
	err := to.Close()
	if !errors.Is(err, bus.ErrDrainTimeout) || err.Error() != `bus: close: handlers did not return in time: "x"` {
		t.Error(err)
	}
	close(release)
	if err := to.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
	if len(begun) > 0 {
		t.Errorf("handled %q after the end", <-begun)
	}
}

func testAfterClose(t *testing.T, b backend) {
	c := b.connect(t, bus.Options{OnDisconnect: func(err error) { t.Error("OnDisconnect", err) }, OnError: func(err error) { t.Error(err) }})
	subscribe(t, c, "x", bus.Limits{}, func(bus.Message) {})
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	subErr := c.Subscribe("x", bus.Limits{}, func(bus.Message) {})
	_, reqErr := c.Request(t.Context(), "x", nil)
	for i, err := range []error{c.Publish("x", nil), c.Reply(bus.Message{Reply: "_INBOX.x"}, nil), c.Flush(t.Context()), subErr, reqErr} {
		if !errors.Is(err, bus.ErrClosed) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if got := c.State().String(); got != "closed" {
		t.Error(got)
	}
}
