package embedded_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/bus/bustest"
	"github.com/gopegasus/pegasus/internal/testnats"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 10 * time.Second

func start(t *testing.T, opts embedded.Options) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func dial(t *testing.T, url string, opts ...nats.Option) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(url, append(testnats.Options(t, url), opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

func TestRefusedOptions(t *testing.T) {
	tests := map[string]struct {
		opts embedded.Options
		want string
	}{
		"all addresses": {
			embedded.Options{Host: "0.0.0.0"},
			`host "0.0.0.0" can be reached from other machines and no credentials are set; set keys, a token, or a user and a password, or listen on 127.0.0.1`,
		},
		"a name": {
			embedded.Options{Host: "localhost.example"},
			`host "localhost.example" can be reached from other machines and no credentials are set; set keys, a token, or a user and a password, or listen on 127.0.0.1`,
		},
		"IPv6": {
			embedded.Options{Host: "::"},
			`host "::" can be reached from other machines and no credentials are set; set keys, a token, or a user and a password, or listen on 127.0.0.1`,
		},
		"half": {embedded.Options{Username: "u"}, "user and password belong together; set both or neither"},
		"half of it, elsewhere": {
			embedded.Options{Host: "0.0.0.0", Password: "p"},
			"user and password belong together; set both or neither",
		},
		"both": {embedded.Options{Token: "t", Username: "u", Password: "p"}, "both a token and a user are set; use one of them"},
		"open": {
			embedded.Options{Open: true, Token: "t"},
			"open admits clients without credentials, and a token or a user is set; leave one of them out",
		},
		"open to all addresses": {
			embedded.Options{Host: "0.0.0.0", Open: true},
			`host "0.0.0.0" can be reached from other machines and no credentials are set; set keys, a token, or a user and a password, or listen on 127.0.0.1`,
		},
		"port": {embedded.Options{Port: 65536}, "port 65536 is not a TCP port; use 1 to 65535, or 0 for a free one"},
		"payload": {
			embedded.Options{MaxPayload: -1},
			"max payload of -1 bytes is out of range; use 1 to 2147483647",
		},
		"pending": {
			embedded.Options{MaxPayload: 1000, MaxPending: 999},
			"max pending of 999 bytes holds no message of max payload 1000; raise the former or lower the latter",
		},
		"deadline": {
			embedded.Options{WriteDeadline: -1},
			"write deadline, max connections and max subscriptions must not be negative",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := embedded.Start(tt.opts)
			if err == nil {
				s.Close()
			}
			if err == nil || err.Error() != "embedded: "+tt.want {
				t.Errorf("got %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestListenErrors(t *testing.T) {
	taken := start(t, embedded.Options{})
	_, err := embedded.Start(embedded.Options{Port: taken.Port()})
	want := fmt.Sprintf("embedded: cannot listen on 127.0.0.1:%d: the port is in use by another program; "+
		"stop it, choose another port, or 0 for a free one: listen tcp 127.0.0.1:%[1]d: bind: address already in use", taken.Port())
	if !errors.Is(err, syscall.EADDRINUSE) || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	_, err = embedded.Start(embedded.Options{Host: "192.0.2.1", Token: "t"}) // An address for documentation.
	if err == nil || !strings.HasPrefix(err.Error(), "embedded: cannot listen on 192.0.2.1:0: address not on this machine: give an address of this machine: ") {
		t.Error(err)
	}
}

func TestCredentials(t *testing.T) {
	for name, tt := range map[string]struct {
		opts embedded.Options
		ok   nats.Option
	}{
		"token": {embedded.Options{Host: "0.0.0.0", Token: "secret"}, nats.Token("secret")},
		"user":  {embedded.Options{Host: "0.0.0.0", Username: "u", Password: "secret"}, nats.UserInfo("u", "secret")},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, tt.opts)
			if want := fmt.Sprintf("nats://127.0.0.1:%d", s.Port()); s.URL() != want {
				t.Errorf("got %s, want %s", s.URL(), want)
			}
			if nc, err := nats.Connect(s.URL()); !errors.Is(err, nats.ErrAuthorization) {
				nc.Close()
				t.Errorf("without credentials: %v", err)
			}
			if err := dial(t, s.URL(), tt.ok).Flush(); err != nil {
				t.Error(err)
			}
		})
	}
}

// raw talks to the port as something that is no client, until the server hangs
// up, and returns what it said.
func raw(t *testing.T, s *embedded.Server, send string) string {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	if info, err := r.ReadString('\n'); err != nil || !strings.HasPrefix(info, "INFO ") {
		t.Fatalf("got %q, %v", info, err)
	}
	_, _ = io.WriteString(c, send) // The server may hang up in the middle.
	answer, err := io.ReadAll(r)
	if errors.Is(err, syscall.ECONNRESET) {
		err = nil
	}
	if err != nil {
		t.Fatalf("not cut off: %v", err)
	}
	return string(answer)
}

func TestGarbage(t *testing.T) {
	s := start(t, embedded.Options{})
	nc := dial(t, s.URL())
	for name, send := range map[string]string{
		"HTTP":          "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"binary":        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
		"negative size": "CONNECT {}\r\nPUB x -1\r\n",
		"huge size":     "CONNECT {}\r\nPUB x 99999999999\r\n",
		"endless line":  "CONNECT {}\r\nPUB " + strings.Repeat("x", 10_000),
		"not JSON":      "CONNECT {{{\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			raw(t, s, send)
			if err := nc.Flush(); err != nil {
				t.Errorf("a client beside it: %v", err)
			}
		})
	}
}

func TestOversizePayload(t *testing.T) {
	s := start(t, embedded.Options{Open: true})
	nc := dial(t, s.URL())
	if n := nc.MaxPayload(); n != 64<<10 {
		t.Errorf("max payload %d", n)
	}
	if err := nc.Publish("x", make([]byte, 64<<10+1)); !errors.Is(err, nats.ErrMaxPayload) {
		t.Error(err)
	}
	send := fmt.Sprintf("CONNECT {\"verbose\":false}\r\nPUB x %d\r\n", 64<<10+1)
	if got := raw(t, s, send); !strings.Contains(got, "-ERR 'Maximum Payload Violation'") {
		t.Errorf("the server said %q", got)
	}
	if err := nc.Flush(); err != nil {
		t.Errorf("a client beside it: %v", err)
	}
}

func TestConnectionLimit(t *testing.T) {
	s := start(t, embedded.Options{MaxConnections: 1})
	nc := dial(t, s.URL())
	if second, err := nats.Connect(s.URL(), testnats.Options(t, s.URL())...); err == nil {
		second.Close()
		t.Error("a second client was let in")
	}
	if err := nc.Flush(); err != nil || s.Clients() != 1 {
		t.Errorf("%d clients, %v", s.Clients(), err)
	}
}

// TestRestartOnSamePort: a client comes back to each of four servers, which have four keys.
func TestRestartOnSamePort(t *testing.T) {
	first := start(t, embedded.Options{})
	back := make(chan struct{}, 1)
	b, err := bus.Dial(t.Context(), first.URL(), bus.Options{Extra: testnats.Options(t, first.URL()), OnReconnect: func() { back <- struct{}{} }})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for range 3 {
		first.Close()
		first.Close() // Harmless.
		first = start(t, embedded.Options{Port: first.Port()})
		select {
		case <-back:
		case <-time.After(patience):
			t.Fatal("the client did not come back")
		}
		if err := b.Flush(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestInProcess(t *testing.T) {
	s := start(t, embedded.Options{InProcess: true})
	if s.URL() != "" || s.Port() != 0 {
		t.Errorf("listens on %q, port %d", s.URL(), s.Port())
	}
	if err := dial(t, "", nats.InProcessServer(s)).Flush(); err != nil {
		t.Error(err)
	}
	s.Close()
	if c, err := s.InProcessConn(); err == nil {
		t.Error("connected to a closed server", c.Close())
	}
}

// TestBubbleTimers uses the Flush of nats.go, which pools its timers, in bubbles
// and outside by turns. Without bustest.Bubble this ends the process.
func TestBubbleTimers(t *testing.T) {
	flush := func(t *testing.T) {
		s := start(t, embedded.Options{InProcess: true})
		nc := dial(t, "", nats.InProcessServer(s))
		for range 10 {
			if err := nc.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 3 {
		bustest.Bubble(t, flush)
		t.Run("outside", flush)
		bustest.Bubble(t, flush)
	}
}

// TestBubble runs server and clients in virtual time.
func TestBubble(t *testing.T) { bustest.Bubble(t, inBubble) }

func inBubble(t *testing.T) {
	s := start(t, embedded.Options{InProcess: true})
	o := bus.Options{Extra: []nats.Option{nats.InProcessServer(s)}}
	client, err := bus.Dial(t.Context(), "nats://in-process", o)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	service, err := bus.Dial(t.Context(), "nats://in-process", o)
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close()
	err = service.Subscribe("slow", bus.Limits{}, func(m bus.Message) {
		time.Sleep(time.Hour)
		_ = service.Reply(m, []byte("done"))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := service.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if got, err := client.Request(t.Context(), "slow", nil); err != nil || string(got) != "done" {
		t.Errorf("%q, %v", got, err)
	}
	if d := time.Since(begin); d < time.Hour {
		t.Errorf("took %v", d)
	}
}

func TestLogger(t *testing.T) {
	var mu sync.Mutex
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(writer(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return out.Write(p)
	}), nil))
	s := start(t, embedded.Options{Logger: log, Token: "top-secret"})
	if nc, err := nats.Connect(s.URL(), nats.Token("wrong-secret")); err == nil {
		nc.Close()
		t.Error("connected")
	}
	s.Close()
	mu.Lock()
	defer mu.Unlock()
	for _, want := range []string{"component=nats-server", "Listening for client connections", "level=ERROR", "authentication error"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in the log", want)
		}
	}
	if strings.Contains(out.String(), "secret") {
		t.Error("credentials in the log")
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }
