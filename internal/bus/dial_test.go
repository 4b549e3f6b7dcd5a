package bus_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/testwait"
)

// listen returns an address where handle gets every connection.
func listen(t *testing.T, handle func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			handle(c)
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String()
}

// freePort returns an address that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return address
}

func TestDialRefusesAddresses(t *testing.T) {
	const example = "; want for example nats://127.0.0.1:4222"
	const escape = "the user, password or token has a character that a URL reserves: write %2F for /, %23 for #, %3F for ?, %40 for @ and %25 for %"
	tests := map[string]string{
		"":                               `address "": no host` + example,
		"nats://":                        `address "nats://": no host` + example,
		"nats://h:0":                     `address "nats://h:0": port is not 1 to 65535` + example,
		"nats://h:65536":                 `address "nats://h:65536": port is not 1 to 65535` + example,
		"nats://h:port":                  `address "nats://h:port": not a URL` + example,
		"ftp://h":                        `address "ftp://h": scheme "ftp" is none of nats, tls, ws, wss` + example,
		"http://h":                       `address "http://h": scheme "http" belongs to the server's monitoring page: use nats:// and the port for clients, which is 4222 by default`,
		"https://h:8222/varz":            `address "https://h:8222/varz": scheme "https" belongs to the server's monitoring page: use nats:// and the port for clients, which is 4222 by default`,
		"nats//h:4222":                   `address "nats//h:4222": the scheme is not written right: write nats://`,
		"tls:/h":                         `address "tls:/h": the scheme is not written right: write tls://`,
		"nats://::1:4222":                `address "nats://::1:4222": an IPv6 address stands in brackets: write for example nats://[::1]:4222`,
		"fe80::1":                        `address "fe80::1": an IPv6 address stands in brackets: write for example nats://[::1]:4222`,
		"nats://a,,nats://b":             `address "nats://a,,nats://b": no host` + example,
		"nats://user:secret@h:x":         `address "nats://xxxxx@h:x": not a URL` + example,
		"nats://user:se/cret@h":          `address "nats://xxxxx@h": ` + escape,
		"nats://user:se#cret@h":          `address "nats://xxxxx@h": ` + escape,
		"nats://user:se?cret@h":          `address "nats://xxxxx@h": ` + escape,
		"nats://user:se@cret@h":          `address "nats://xxxxx@h": ` + escape,
		"nats://user:100%@h":             `address "nats://xxxxx@h": ` + escape,
		"user:secret@h:99999":            `address "xxxxx@h:99999": port is not 1 to 65535` + example,
		"nats://u:se,cret@h,http://t@h2": `address "nats://xxxxx@h2": a comma separates servers: in a user, password or token write %2C`,
	}
	for address, want := range tests {
		_, err := bus.Dial(t.Context(), address, bus.Options{})
		want = "bus: connect to NATS: " + want
		if err == nil || err.Error() != want {
			t.Errorf("%q: got %v\nwant %s", address, err, want)
		}
	}
}

// TestDialWebSocketOfAPlainPort: the first line of a NATS server is no answer to an upgrade.
func TestDialWebSocketOfAPlainPort(t *testing.T) {
	address := strings.TrimPrefix(startServer(t, embedded.Options{}).URL(), "nats://")
	_, err := bus.Dial(t.Context(), "ws://"+address, bus.Options{})
	want := "bus: connect to NATS at ws://" + address + ": the port speaks plain NATS and not WebSocket: use nats://, or the server's WebSocket port"
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestDialUnreachable(t *testing.T) {
	address := freePort(t)
	begin := time.Now()
	_, err := bus.Dial(t.Context(), "nats://user:secret@"+address, bus.Options{ConnectTimeout: 300 * time.Millisecond})
	at := regexp.QuoteMeta(address)
	// The last attempt may be cut off at the end of the window before it is refused.
	want := "^bus: connect to NATS at nats://xxxxx@" + at + ": no answer for 300ms: dial tcp " + at + ": (connect: connection refused|i/o timeout); " +
		"start a server with `pegasus run` or check the address given with --nats$"
	if err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
		t.Errorf("got %v\nwant %s", err, want)
	}
	if d := time.Since(begin); d < 300*time.Millisecond || d > patience {
		t.Errorf("took %v", d)
	}
}

// TestDialSilent connects to what accepts and says nothing, as a stopped server
// does: neither the window nor ctx may be exceeded by the time of a handshake.
func TestDialSilent(t *testing.T) {
	accepted := make(chan net.Conn, 10)
	address := listen(t, func(c net.Conn) { accepted <- c })
	if _, err := bus.Dial(t.Context(), address, bus.Options{ConnectTimeout: 100 * time.Millisecond}); err == nil ||
		!strings.Contains(err.Error(), "no answer for 100ms") {
		t.Error(err)
	}
	_ = await(t, "a connection", accepted).Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		c := <-accepted
		cancel()
		defer c.Close()
	}()
	if _, err := bus.Dial(ctx, address, bus.Options{ConnectTimeout: time.Hour}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestDialWhatIsNotNATS(t *testing.T) {
	address := listen(t, func(c net.Conn) {
		_, _ = c.Write([]byte("SSH-2.0-OpenSSH_9.7\r\n"))
		_ = c.Close()
	})
	_, err := bus.Dial(t.Context(), address, bus.Options{ConnectTimeout: time.Hour})
	if err == nil || !strings.Contains(err.Error(), "; ") || !strings.HasPrefix(err.Error(), "bus: connect to NATS at "+address+": nats: ") {
		t.Error(err)
	}
}

func TestDialCredentials(t *testing.T) {
	s := startServer(t, embedded.Options{Username: "user", Password: "secret"})
	address := strings.TrimPrefix(s.URL(), "nats://")
	_, err := bus.Dial(t.Context(), "nats://user:wrong@"+address, bus.Options{ConnectTimeout: time.Hour})
	want := fmt.Sprintf("bus: connect to NATS at nats://xxxxx@%s: nats: Authorization Violation; check the user and password, token, key or credentials file", address)
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	flush(t, dial(t, "nats://user:secret@"+address, bus.Options{}))
	flush(t, dial(t, s.URL(), bus.Options{Extra: []nats.Option{nats.UserInfo("user", "secret")}}))
	_, err = bus.Dial(t.Context(), s.URL(), bus.Options{Extra: []nats.Option{nats.RootCAs("/does/not/exist")}})
	if err == nil || !strings.Contains(err.Error(), "/does/not/exist") {
		t.Error(err)
	}
}

// TestDialWaitsForServer starts the server after the first attempt has failed.
func TestDialWaitsForServer(t *testing.T) {
	first := startServer(t, embedded.Options{})
	first.Close()
	type result struct {
		*bus.Bus
		error
	}
	got := make(chan result)
	go func() {
		b, err := bus.Dial(t.Context(), first.URL(), bus.Options{ConnectTimeout: time.Hour})
		got <- result{b, err}
	}()
	time.AfterFunc(100*time.Millisecond, func() { startServer(t, embedded.Options{Port: first.Port()}) })
	r := await(t, "the connection", got)
	if r.error != nil {
		t.Fatal(r.error)
	}
	flush(t, r.Bus)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// TestDialOverrules shows that the caller's options cannot undo ours.
func TestDialOverrules(t *testing.T) {
	s := startServer(t, embedded.Options{})
	back := make(chan struct{}, 1)
	theirs := func(*nats.Conn) { t.Error("their handler was called") }
	b := dial(t, s.URL(), bus.Options{
		OnReconnect: func() { back <- struct{}{} },
		Extra:       []nats.Option{nats.NoReconnect(), nats.ReconnectHandler(theirs), nats.ClosedHandler(theirs), nats.ReconnectBufSize(1 << 20)},
	})
	s.Close()
	testwait.Until(t, "the loss", func() bool { return b.State() == bus.Reconnecting })
	if err := b.Publish("x", nil); !errors.Is(err, bus.ErrDisconnected) {
		t.Error(err)
	}
	startServer(t, embedded.Options{Port: s.Port()})
	await(t, "the server", back)
}

// TestDialNeverGivesUp changes the credentials of the server for longer than
// nats.go would try. That they are refused is told once.
func TestDialNeverGivesUp(t *testing.T) {
	s := startServer(t, embedded.Options{Token: "one"})
	errs, back := make(chan error, 100), make(chan struct{}, 1)
	var attempts atomic.Int32
	b := dial(t, s.URL(), bus.Options{
		OnError:     func(err error) { errs <- err },
		OnReconnect: func() { back <- struct{}{} },
		Explain:     func(err error) error { return fmt.Errorf("%w by its owner", err) },
		Extra: []nats.Option{nats.TokenHandler(func() string {
			attempts.Add(1)
			return "one"
		})},
	})
	s.Close()
	other := startServer(t, embedded.Options{Token: "two", Port: s.Port()})
	begun := attempts.Load()
	want := "bus: nats: Authorization Violation by its owner: renew the credentials; the connection tries again, each 30s at the latest"
	if err := await(t, "a refusal", errs); !errors.Is(err, nats.ErrAuthorization) || !strings.EqualFold(err.Error(), want) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	testwait.Until(t, "more attempts", func() bool { return attempts.Load() >= begun+4 })
	other.Close()
	startServer(t, embedded.Options{Token: "one", Port: s.Port()})
	await(t, "the server", back)
	flush(t, b)
	for len(errs) > 0 { // An attempt during the end of the server is told as well.
		if err := <-errs; errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("told again: %v", err)
		}
	}
}

// TestCloseWhileAway must not wait for the server.
func TestCloseWhileAway(t *testing.T) {
	s := startServer(t, embedded.Options{})
	b := dial(t, s.URL(), bus.Options{})
	s.Close()
	testwait.Until(t, "the loss", func() bool { return b.State() == bus.Reconnecting })
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// TestDeadLink cuts a link without closing it: pings must notice.
func TestDeadLink(t *testing.T) {
	t.Parallel()
	s := startServer(t, embedded.Options{})
	r := newRelay(t, strings.TrimPrefix(s.URL(), "nats://"))
	lost := make(chan error, 1)
	b := dial(t, r.address, bus.Options{OnDisconnect: func(err error) { lost <- err }})
	flush(t, b)
	r.silence()
	if err := await(t, "pings to fail", lost); !errors.Is(err, nats.ErrStaleConnection) {
		t.Error(err)
	}
}

// TestPermitted: one error has all subjects that the server refuses.
func TestPermitted(t *testing.T) {
	url := startWithPermissions(t)
	b := dial(t, url, bus.Options{Extra: []nats.Option{nats.UserInfo("member", "pw")}})
	err := b.Permitted(t.Context(), []string{"everything.>", "own.a", "other"}, []string{"own.a", "forbidden"})
	want := `the server does not permit it to this user: subscribe to "everything.>", subscribe to "other", publish to "forbidden"`
	if !errors.Is(err, bus.ErrPermission) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if err := b.Permitted(t.Context(), []string{"own.a"}, []string{"own.a"}); err != nil {
		t.Error(err)
	}
	if all := dial(t, startServer(t, embedded.Options{Open: true}).URL(), bus.Options{}); b.Open() || !all.Open() {
		t.Error("which server takes anybody is not known")
	}
	if err := b.Permitted(t.Context(), []string{"not a subject"}, nil); err == nil || errors.Is(err, bus.ErrPermission) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Permitted(ctx, []string{"own.a"}, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.Permitted(t.Context(), []string{"own.a"}, nil); !errors.Is(err, bus.ErrClosed) {
		t.Error(err)
	}
}

// TestDenied: errors that are no refusal of a subject have none.
func TestDenied(t *testing.T) {
	for text, want := range map[string]string{
		`nats: permissions violation: Permissions Violation for Publish to "a.b"`:                      `publish to "a.b"`,
		`nats: permissions violation: Permissions Violation for Subscription to "a.>" using queue "q"`: `subscribe to "a.>"`,
		`Permissions Violation for Publish to "a`:                                                      "",
		"nothing": "",
	} {
		d, ok := bus.Denied(fmt.Errorf("%w: %s", bus.ErrPermission, text))
		if ok != (want != "") || ok && d.String() != want {
			t.Errorf("%s: %v %v, want %s", text, d, ok, want)
		}
	}
	if _, ok := bus.Denied(errors.New(`Publish to "a"`)); ok {
		t.Error("another error has a subject")
	}
}

func TestPermissions(t *testing.T) {
	url := startWithPermissions(t)
	errs := make(chan error, 10)
	b := dial(t, url, bus.Options{
		OnError: func(err error) { errs <- err },
		Extra:   []nats.Option{nats.UserInfo("member", "pw")},
	})
	if err := b.Publish("forbidden", nil); err != nil {
		t.Errorf("NATS tells only later, yet: %v", err)
	}
	err := await(t, "the refusal to publish", errs)
	if !errors.Is(err, bus.ErrPermission) || !strings.Contains(err.Error(), `Publish to "forbidden"`) {
		t.Error(err)
	}
	if err := b.Subscribe("everything.>", bus.Limits{}, func(bus.Message) {}); err != nil {
		t.Error(err)
	}
	err = await(t, "the refusal to subscribe", errs)
	if !errors.Is(err, bus.ErrPermission) || !strings.Contains(err.Error(), `Subscription to "everything.>"`) {
		t.Error(err)
	}
	if len(errs) > 0 {
		t.Errorf("told once more: %v", <-errs)
	}
}

// TestWrapLeavesTheConnection closes a bus on a connection that continues.
func TestWrapLeavesTheConnection(t *testing.T) {
	s := startServer(t, embedded.Options{})
	theirs := make(chan error, 10)
	nc, err := nats.Connect(s.URL(), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { theirs <- err }))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	got := make(chan *nats.Msg, 10)
	if _, err := nc.ChanSubscribe("x", got); err != nil {
		t.Fatal(err)
	}
	b, err := bus.Wrap(nc, bus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	echo := collect(t, b, "x")
	publish(t, b, "x", "1")
	await(t, "the echo, which the connection does not rule out", echo)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if n := nc.NumSubscriptions(); n != 1 {
		t.Errorf("%d subscriptions are left", n)
	}
	if err := nc.Publish("x", []byte("2")); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"1", "2"} {
		if m := await(t, "their message", got); string(m.Data) != want {
			t.Errorf("got %q, want %q", m.Data, want)
		}
	}
	nc.Close()
	if _, err := bus.Wrap(nc, bus.Options{}); !errors.Is(err, bus.ErrClosed) {
		t.Error(err)
	}
	if len(theirs) > 0 {
		t.Error(<-theirs)
	}
}

// TestWrapClosedByOwner ends the connection under the bus.
func TestWrapClosedByOwner(t *testing.T) {
	s := startServer(t, embedded.Options{})
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	errs := make(chan error, 1)
	b, err := bus.Wrap(nc, bus.Options{OnError: func(err error) { errs <- err }})
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, b)
	collect(t, b, "x")
	nc.Close()
	if err := await(t, "OnError", errs); !errors.Is(err, bus.ErrClosed) || err.Error() != "bus: connection lost for good, connect again: the connection is closed" {
		t.Error(err)
	}
	if err := b.Publish("x", nil); !errors.Is(err, bus.ErrClosed) {
		t.Error(err)
	}
}
